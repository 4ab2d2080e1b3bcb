// Hovering or focusing a part of the request marks its messages in the transcript, and the other
// way round. A tool's result is marked at the row of its call.

const MESSAGE = ".message[data-position], .result[data-position]";

function within(part, position) {
  const { position: only, first, last } = part.dataset;
  if (only) return only === position;
  return Boolean(first) && Number(first) <= Number(position) && Number(position) <= Number(last);
}

/** Opens what an element is folded into. */
export function unfold(element) {
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

/** reveal(id): loads what is older until the message is there; resolves to it or to null. */
export function linkParts({ reveal }) {
  let marked = [];

  function mark(elements) {
    for (const element of marked) element.classList.remove("marked");
    marked = elements;
    for (const element of marked) element.classList.add("marked");
  }

  const cards = () => Array.from(document.querySelectorAll(".segment[data-segment]"));
  const withBar = (card) => [card, document.querySelector(`[data-bar] [data-segment="${card.dataset.segment}"]`)].filter(Boolean);
  const shownAt = (message) => message.closest(".call") ?? message;

  function messagesOf(part) {
    const all = Array.from(document.querySelectorAll(MESSAGE));
    return all.filter((message) => within(part, message.dataset.position)).map(shownAt);
  }

  function fromPart(element) {
    const card = cards().find((candidate) => candidate.dataset.segment === element.dataset.segment);
    if (card) mark([...withBar(card), ...messagesOf(card)]);
  }

  function fromMessage(message) {
    const card = cards().find((candidate) => within(candidate, message.dataset.position));
    mark([shownAt(message), ...(card ? withBar(card) : [])]);
  }

  function pointed(event) {
    const part = event.target.closest?.("[data-bar] [data-segment], .segment[data-segment]");
    if (part) return fromPart(part);
    const source = event.target.closest?.("[data-marks]");
    if (source) return mark([source, ...messagesOf(source)]);
    const message = event.target.closest?.(".call")?.querySelector(MESSAGE) ?? event.target.closest?.(MESSAGE);
    if (message) return fromMessage(message);
    if (marked.length) mark([]);
  }

  document.addEventListener("pointerover", (event) => event.pointerType !== "touch" && pointed(event));
  document.addEventListener("focusin", pointed);

  // On a phone the sheet covers the transcript: it closes before a message is shown.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-show-message]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const sheet = link.closest("[popover]:popover-open");
    if (sheet) sheet.hidePopover();
    const message = await reveal(link.hash.slice(1));
    if (!message) return;
    unfold(message);
    location.hash = message.id; // marks it as the target
    message.scrollIntoView({ block: "center" });
  });
}
