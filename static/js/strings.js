// What the scripts say comes, translated, from the data attributes of #strings.

const strings = document.getElementById("strings")?.dataset ?? {};

/** The text of `key` with `{name}` replaced by `values.name`; empty if there is none. */
export function say(key, values = {}) {
  return (strings[key] ?? "").replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** An id for a message: random, and also available without a secure context. */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Length in Unicode code points, as the server counts. */
export function codePoints(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
