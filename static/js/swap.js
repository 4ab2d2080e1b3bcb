// Replaces the items of the transcript by newer ones, keeping every node that is unchanged, so
// that opened details, selections and the focus survive.

const TOKEN = /name="csrfmiddlewaretoken" value="[^"]*"/g; // differs each time it is rendered
const sources = new WeakMap(); // node -> the HTML it came from

function sourceOf(node) {
  if (!sources.has(node)) sources.set(node, node.outerHTML.replace(TOKEN, ""));
  return sources.get(node);
}

/** Remembers how the nodes looked before scripts touched them. */
export function remember(items) {
  for (const node of items.children) sourceOf(node);
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
  const old = new Map();
  for (const node of items.children) {
    const source = sourceOf(node);
    if (!old.has(source)) old.set(source, []);
    old.get(source).push(node);
  }
  const focused = document.activeElement;
  const added = [];
  const kept = new Set();
  const wanted = Array.from(fresh.children, (node) => {
    const same = old.get(sourceOf(node))?.shift();
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
  items.dataset.older = fresh.dataset.older;
  for (const node of added) window.htmx?.process(node);
  restoreFocus(focused, items);
  return added;
}

function restoreFocus(focused, items) {
  if (!focused || focused.isConnected || document.activeElement !== document.body) return;
  const same = focused.id && document.getElementById(focused.id);
  (same || items.closest("[tabindex]"))?.focus({ preventScroll: true });
}
