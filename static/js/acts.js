// Reset, undo, compact, edits and settings: the reader's own acts show their effect at once, and say
// it beside the buttons. The answer of the server is the panel's tab as it is afterwards.

import { say } from "./strings.js";

/**
 * announce(words): read out. onChanged(what): "memory", "summary" or "settings" changed.
 * onSignedOut(), onFailed(words): a fetch by htmx went wrong.
 */
export function watchActs({ panel, loginUrl, announce, onChanged, onSignedOut, onFailed }) {
  const note = document.getElementById("panel-note");
  const dialog = document.getElementById("reset-dialog");
  let revision = "";

  const changes = (detail) => detail.requestConfig?.elt.dataset.changes ?? "";

  function tell(words) {
    note.textContent = words;
    if (words) announce(words); // the note itself may be behind a closed sheet
  }

  // Undo and reset stand beside several tabs; each is answered with the one that is shown.
  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.elt.dataset.changes) detail.parameters.tab = panel.tab();
  });

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (!changes(detail)) return;
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

  // A part is missing, or all of the conversation: the panel finds out which.
  document.addEventListener("htmx:responseError", ({ detail }) => {
    if (detail.xhr.status === 404) panel.refreshGauge();
  });

  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    const what = changes(detail);
    if (!what) {
      if (!detail.successful) onFailed(say("loadFailed"));
      return;
    }
    panel.hold(false);
    if (detail.xhr.status === 422) return tell(""); // the reason stands at its field
    dialog.hidePopover();
    // The button that was pressed has gone with the old panel or the dialog.
    const focused = document.activeElement;
    if (focused === document.body || dialog.contains(focused)) {
      const near = what === "memory" && document.getElementById("reset-memory");
      (near || document.querySelector("[data-tab-link][aria-current]")).focus({ preventScroll: true });
    }
    if (!detail.successful) {
      panel.refresh(); // what was held back meanwhile
      return tell(reasonOf(detail.xhr));
    }
    const unchanged = what === "memory" && panel.revision() === revision;
    tell(panel.note() || (unchanged ? say("nothingChanged") : ""));
    onChanged(what);
  });

  return {
    tell,
    /** The memory has changed elsewhere: what was said of it need not hold any more. */
    outdate(to) {
      if (!panel.isHeld() && to > Number(panel.revision())) tell("");
    },
  };
}

function reasonOf(request) {
  const isWords = request?.getResponseHeader("Content-Type")?.startsWith("text/plain");
  return isWords && request.responseText ? request.responseText : say("requestFailed");
}
