// Reset, undo and compact: the reader's own acts show their effect at once, and say it beside the
// buttons. The answer of the server is the panel as it is afterwards.

import { say } from "./strings.js";

/**
 * announce(words): read out. onChanged(): the memory changed. onSignedOut(), onFailed(words): a
 * fetch by htmx went wrong.
 */
export function watchActs({ panel, loginUrl, announce, onChanged, onSignedOut, onFailed }) {
  const note = document.getElementById("panel-note");
  const dialog = document.getElementById("reset-dialog");
  let revision = "";

  const isAct = (detail) => detail.requestConfig?.elt.dataset.changes === "memory";

  function tell(words) {
    note.textContent = words;
    if (words) announce(words); // the note itself may be behind a closed sheet
  }

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (!isAct(detail)) return;
    revision = panel.revision();
    panel.hold(true);
    tell(say(detail.requestConfig.elt.dataset.doing));
  });

  // A session that has ended answers with the page to sign in: that is not a panel.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const address = detail.xhr.responseURL;
    if (!address || new URL(address).pathname !== loginUrl) return;
    detail.shouldSwap = false;
    onSignedOut();
  });

  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!isAct(detail)) {
      if (!detail.successful) onFailed(say("loadFailed"));
      return;
    }
    panel.hold(false);
    dialog.hidePopover();
    // The button that was pressed has gone with the old panel or the dialog.
    const focused = document.activeElement;
    if (focused === document.body || dialog.contains(focused)) {
      document.getElementById("reset-memory")?.focus({ preventScroll: true });
    }
    if (!detail.successful) return tell(reasonOf(detail.xhr));
    tell(panel.revision() === revision ? say("nothingChanged") : "");
    onChanged();
  });

  return { tell };
}

function reasonOf(request) {
  const isWords = request?.getResponseHeader("Content-Type")?.startsWith("text/plain");
  return isWords && request.responseText ? request.responseText : say("requestFailed");
}
