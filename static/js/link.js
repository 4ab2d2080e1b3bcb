// Hovering or focusing a part of the request marks its messages in the transcript, and the other
// way round.

function within(part, position) {
  const { position: only, first, last } = part.dataset;
  if (only) return only === position;
  return Boolean(first) && Number(first) <= Number(position) && Number(position) <= Number(last);
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
  const messages = () => Array.from(document.querySelectorAll(".message[data-position]"));
  const withBar = (card) => [card, document.querySelector(`[data-bar] [data-segment="${card.dataset.segment}"]`)].filter(Boolean);

  function fromPart(element) {
    const card = cards().find((candidate) => candidate.dataset.segment === element.dataset.segment);
    if (!card) return;
    mark([...withBar(card), ...messages().filter((message) => within(card, message.dataset.position))]);
  }

  function fromMessage(message) {
    const card = cards().find((candidate) => within(candidate, message.dataset.position));
    mark([message, ...(card ? withBar(card) : [])]);
  }

  function pointed(event) {
    const part = event.target.closest?.("[data-bar] [data-segment], .segment[data-segment]");
    if (part) return fromPart(part);
    const source = event.target.closest?.("[data-marks]");
    if (source) return mark([source, ...messages().filter((message) => within(source, message.dataset.position))]);
    const message = event.target.closest?.(".message[data-position]");
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
    location.hash = message.id; // marks it as the target
    message.scrollIntoView({ block: "center" });
  });
}
