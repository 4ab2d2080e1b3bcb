// Replaces the items of the transcript by newer ones, keeping every node that is unchanged, so
// that opened details, selections and the focus survive; of a turn that changed also its parts.

const TOKEN = /name="csrfmiddlewaretoken" value="[^"]*"/g; // differs each time it is rendered
const PARTED = ".turn[id]";
const sources = new WeakMap(); // node -> the HTML it came from

function sourceOf(node) {
  if (!sources.has(node)) sources.set(node, node.outerHTML.replace(TOKEN, ""));
  return sources.get(node);
}

/** Remembers how the nodes looked before scripts touched them. */
export function remember(items) {
  for (const node of items.children) {
    sourceOf(node);
    if (node.matches(PARTED)) remember(node);
  }
}

/** The `.items` element of a fragment. */
export function parse(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const items = page.querySelector("[data-items]");
  if (!items) throw new Error("not a transcript");
  return document.adoptNode(items);
}

/** Makes the children of `items` those of `fresh`; returns the nodes that are new. */
export function swap(items, fresh) {
  remember(fresh);
  const focused = document.activeElement;
  const open = Array.from(items.querySelectorAll("details[open][id]"), (details) => details.id);
  const added = exchange(items, fresh);
  items.dataset.older = fresh.dataset.older;
  for (const node of added) window.htmx?.process(node);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  restoreFocus(focused, items);
  return added;
}

function exchange(items, fresh) {
  const old = new Map();
  for (const node of items.children) {
    const source = sourceOf(node);
    if (!old.has(source)) old.set(source, []);
    old.get(source).push(node);
  }
  const added = [];
  const kept = new Set();
  const isFree = (node) => !kept.has(node);
  const wanted = Array.from(fresh.children, (node) => {
    const same = old.get(sourceOf(node))?.find(isFree) ?? changed(items, node, isFree, added);
    if (same) kept.add(same);
    else added.push(node);
    return same ?? node;
  });
  for (const node of Array.from(items.children)) if (!kept.has(node)) node.remove();
  let place = items.firstElementChild;
  for (const node of wanted) {
    if (node === place) place = place.nextElementSibling;
    else items.insertBefore(node, place);
  }
  return added;
}

/** The turn of `items` that has become `node`, with its parts exchanged, if there is one. */
function changed(items, node, isFree, added) {
  const turn = node.matches(PARTED) && Array.from(items.children).find((one) => one.id === node.id && isFree(one));
  if (!turn) return undefined;
  sources.set(turn, sourceOf(node));
  for (const { name, value } of node.attributes) turn.setAttribute(name, value);
  added.push(...exchange(turn, node));
  return turn;
}

function restoreFocus(focused, items) {
  if (!focused || focused.isConnected || document.activeElement !== document.body) return;
  const within = focused.closest("details[id]");
  const same = focused.id ? document.getElementById(focused.id) : within && document.getElementById(within.id)?.querySelector("summary");
  (same || items.closest("[tabindex]"))?.focus({ preventScroll: true });
}
