// The memory panel: fetched again when the memory changed; keeps what is opened and scrolled;
// feeds the small bars and numbers beside the message field.

export function createPanel({ url, body }) {
  let kept = null;
  let held = false; // an act of the reader is under way; its answer is the panel

  const view = () => body.querySelector("#context");
  const isNext = () => !view()?.dataset.number;

  function address() {
    return isNext() ? url : `${url}?request=${view().dataset.number}`;
  }

  function refresh() {
    if (held) return undefined;
    // With a source of its own: requests without one share one queue, which keeps only the last.
    const fetched = window.htmx.ajax("GET", address(), { source: body, target: body, swap: "innerHTML" });
    if (!isNext()) refreshGauge();
    return fetched;
  }

  /** While a past request is shown, the gauge still speaks of the next one. */
  async function refreshGauge() {
    const response = await fetch(url, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
    if (!response.ok || response.redirected) return;
    draw(new DOMParser().parseFromString(await response.text(), "text/html"));
  }

  function draw(source) {
    const context = source.querySelector("#context");
    const bar = source.querySelector("[data-bar]");
    if (!context || !bar) return;
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

  body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target !== body) return;
    kept = {
      top: view()?.scrollTop ?? 0,
      open: Array.from(body.querySelectorAll("details[open][id]"), (details) => details.id),
    };
  });
  body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target !== body || !kept) return;
    for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
    if (view()) view().scrollTop = kept.top;
    if (isNext()) draw(document);
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

  return {
    refresh,
    revision: () => view()?.dataset.revision ?? "",
    hold: (on) => { held = on; },
  };
}
