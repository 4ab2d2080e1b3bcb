// The memory panel: the tab that is shown is fetched again when the memory changed; what is opened,
// scrolled or being written in it stays. Feeds the small bars and numbers beside the message field.

import { createDrafts } from "./drafts.js";
import { fitSettings } from "./settings.js";
import { entitle } from "./title.js";

const NARROW = "(max-width: 52rem)"; // the panel is a sheet

/** url: the fragment of the next request. onGone(): there is none, since the conversation is gone. */
export function createPanel({ url, body, onGone }) {
  const drafts = createDrafts(body);
  const sheet = document.getElementById("panel");
  let kept = null;
  let held = false; // an act of the reader is under way; its answer is the panel

  const view = () => body.querySelector("[data-tab]");
  const isNext = () => view()?.dataset.tab === "context" && !view().dataset.number;

  function refresh() {
    if (held) return undefined;
    if (drafts.isDirty()) return refreshGauge();
    // With a source of its own: requests without one share one queue, which keeps only the last.
    // Without a server nothing is fetched; the socket's next hello asks for it again.
    return window.htmx.ajax("GET", view().dataset.url, { source: body, target: body, swap: "innerHTML" }).catch(() => {});
  }

  /** Whatever is shown, the gauge speaks of the next request. */
  async function refreshGauge() {
    const response = await fetch(url, { headers: { "HX-Request": "true" }, credentials: "same-origin" }).catch(() => null);
    if (response?.status === 404) return onGone();
    if (!response?.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    draw(page);
    if (page.querySelector("#context")?.dataset.revision !== view()?.dataset.revision) drafts.tellNewer();
  }

  /** The tags of the page's head, which come with each view that is fetched. */
  function tagsOf(source) {
    return (source.querySelector("[data-head-tags]")?.content ?? source).querySelector("#head-tags");
  }

  function draw(source) {
    const context = source.querySelector("#context");
    const bar = source.querySelector("[data-bar]");
    if (!context || !bar) return;
    entitle(tagsOf(source).dataset.title);
    for (const copy of document.querySelectorAll("[data-bar-copy]")) {
      copy.replaceChildren(...Array.from(bar.children, (part) => document.importNode(part, true)));
    }
    for (const text of document.querySelectorAll("[data-gauge]:not(#context)")) text.textContent = context.dataset.gauge;
    for (const text of document.querySelectorAll("[data-gauge-short]:not(#context)")) text.textContent = context.dataset.gaugeShort;
    const words = source.querySelector("[data-panel-error]") ?? source.querySelector("[data-panel-forecast]");
    const forecast = document.getElementById("forecast");
    const text = words?.textContent ?? "";
    if (forecast.textContent !== text) forecast.textContent = text;
  }

  /** The tab links and the address say what is shown, so that the address is a link to it. */
  function nameView() {
    const { tab, address } = view().dataset;
    for (const link of document.querySelectorAll("[data-tab-link]")) {
      if (link.dataset.tabLink === tab) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (address !== location.pathname + location.search) history.replaceState(history.state, "", address + location.hash);
  }

  body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target !== body || !event.detail.shouldSwap) return;
    const { elt, path } = event.detail.requestConfig;
    // The answer to the act under way is the panel; what was asked for before it would take the
    // form that waits for it out of the page.
    if (elt === body && held) {
      event.detail.shouldSwap = false;
      return;
    }
    // Meanwhile the reader went elsewhere, or began to write.
    if (elt === body && (path !== view()?.dataset.url || drafts.isDirty())) {
      event.detail.shouldSwap = false;
      refresh();
      return;
    }
    drafts.keep(elt);
    const open = Array.from(body.querySelectorAll("details[open][id]"));
    kept = {
      tab: view()?.dataset.tab,
      top: view()?.scrollTop ?? 0,
      open: open.filter((details) => !details.contains(elt)).map((details) => details.id),
      byLink: elt.matches("a"),
    };
  });
  body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target !== body || !kept) return;
    for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
    drafts.restore();
    fitSettings(body);
    document.getElementById("head-tags").replaceWith(document.importNode(tagsOf(body), true));
    if (view() && view().dataset.tab === kept.tab) view().scrollTop = kept.top;
    if (view()) nameView();
    if (isNext()) draw(document);
    else if (!kept.byLink) refreshGauge();
  });
  // What the server refused is shown at its field, to whoever just tried to save.
  body.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.xhr?.status === 422) body.querySelector("[aria-invalid='true']")?.focus();
  });

  body.addEventListener("change", () => fitSettings(body));
  body.addEventListener("click", (event) => {
    const link = event.target.closest("[data-discard]");
    if (!link) return;
    event.preventDefault();
    drafts.discard(link.closest("form"));
    fitSettings(body);
    refresh();
  });

  // Arrow keys step through the requests while one of the two arrows has the focus.
  body.addEventListener("keydown", (event) => {
    if (!event.target.closest("[data-request-nav]")) return;
    const id = { ArrowLeft: "request-previous", ArrowRight: "request-next" }[event.key];
    if (!id) return;
    event.preventDefault();
    const arrow = document.getElementById(id);
    arrow.focus();
    if (arrow.href) arrow.click();
  });

  // A sheet or drawer that was open on a small screen has no place on a large one.
  for (const [id, query] of [["panel", "(min-width: 52.01rem)"], ["side", "(min-width: 75.01rem)"]]) {
    matchMedia(query).addEventListener("change", (event) => {
      const element = document.getElementById(id);
      if (event.matches && element?.matches(":popover-open")) element.hidePopover();
    });
  }

  function open() {
    if (matchMedia(NARROW).matches && !sheet.matches(":popover-open")) sheet.showPopover();
  }

  document.addEventListener("click", (event) => event.target.closest("[data-open-panel]") && open());
  fitSettings(body);
  if (view()?.dataset.number) refreshGauge(); // the page shows a request of the past
  if (new URLSearchParams(location.search).has("tab")) open();

  return {
    refresh,
    refreshGauge,
    tab: () => view()?.dataset.tab ?? "",
    revision: () => view()?.dataset.revision ?? "",
    /** What the server says of the act that it answered with this view. */
    note: () => body.querySelector("[data-note]")?.dataset.note ?? "",
    hold: (on) => { held = on; },
    isHeld: () => held,
  };
}
