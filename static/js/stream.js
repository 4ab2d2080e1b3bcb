// The text of running replies: applies deltas by code-point offset, asks again at a gap, and
// appends to one Text node per animation frame. Nothing is parsed or read back from the page.

import { codePoints } from "./strings.js";

const RESUME_AGAIN = 3000; // ms without an answer

/** resume(turn): asks the server for the whole text. */
export function createStream({ resume }) {
  const replies = new Map(); // turn -> { text, length, unwritten, node, askedAt }
  let frame = 0;

  function replyOf(turn) {
    if (!replies.has(turn)) replies.set(turn, { text: "", length: 0, unwritten: "", node: null, askedAt: 0 });
    return replies.get(turn);
  }

  function askFor(turn) {
    const reply = replyOf(turn);
    if (Date.now() - reply.askedAt < RESUME_AGAIN) return;
    reply.askedAt = Date.now();
    if (!resume(turn)) reply.askedAt = 0;
  }

  function delta({ turn, offset, text }) {
    const reply = replyOf(turn);
    if (offset > reply.length) return askFor(turn);
    const piece = offset === reply.length ? text : Array.from(text).slice(reply.length - offset).join("");
    if (!piece) return;
    reply.text += piece;
    reply.length += codePoints(piece);
    reply.unwritten += piece;
    schedule();
  }

  /** The answer to a resume: it may be older than deltas that came meanwhile. */
  function whole({ turn, text }) {
    const reply = replyOf(turn);
    reply.askedAt = 0;
    const length = codePoints(text);
    if (length < reply.length) return;
    reply.text = text;
    reply.length = length;
    place(turn, reply);
  }

  function tick({ turn, length }) {
    if (length > replyOf(turn).length) askFor(turn);
  }

  function placeholder(turn) {
    return document.querySelector(`[data-turn="${turn}"] [data-partial]`);
  }

  function place(turn, reply) {
    const element = placeholder(turn);
    reply.unwritten = "";
    reply.node = null;
    if (!element) return;
    reply.node = document.createTextNode(reply.text);
    element.replaceChildren(reply.node);
  }

  function schedule() {
    // A hidden tab has no animation frames; its text is written when it is shown.
    if (!frame) frame = requestAnimationFrame(write);
  }

  function write() {
    frame = 0;
    for (const [turn, reply] of replies) {
      if (!reply.unwritten) continue;
      if (reply.node?.isConnected) {
        reply.node.appendData(reply.unwritten);
        reply.unwritten = "";
      } else {
        place(turn, reply);
      }
    }
  }

  /** After the transcript was swapped: writes what is known into the new placeholders. */
  function attach() {
    for (const [turn, reply] of replies) {
      if (reply.length && !reply.node?.isConnected) place(turn, reply);
    }
  }

  return {
    delta, whole, tick, attach, askFor,
    textOf: (turn) => replies.get(turn)?.text ?? "",
    forget: (turn) => replies.delete(turn),
  };
}
