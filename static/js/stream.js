// The text of running steps: applies deltas by code-point offset, asks again at a gap, and appends
// to one Text node per animation frame. Nothing is parsed or read back from the page.

import { codePoints } from "./strings.js";

const RESUME_AGAIN = 3000; // ms without an answer

/** `part` selects where a turn's text stands. resume(turn): asks the server for the whole text.
 *  onStep(turn): another step has begun, so what the one before has written is stored; without it
 *  (thoughts) nothing of that one is shown any more. */
export function createStream({ part, resume, onStep = null }) {
  const replies = new Map(); // turn -> { step, text, length, unwritten, node, askedAt }
  let frame = 0;

  function begin(turn, step) {
    replies.set(turn, { step, text: "", length: 0, unwritten: "", node: null, askedAt: 0 });
    return replies.get(turn);
  }

  /** What is known of the turn's running step, which is the page's or a later one. */
  function replyOf(turn) {
    return replies.get(turn) ?? begin(turn, stepOf(placeholder(turn)));
  }

  /** The same once a frame has named its step; null where that one is over. */
  function replyAt(turn, step) {
    const reply = replyOf(turn);
    if (step <= reply.step) return step === reply.step ? reply : null;
    const fresh = begin(turn, step);
    place(turn, fresh);
    onStep?.(turn);
    return fresh;
  }

  function askFor(turn) {
    const reply = replyOf(turn);
    if (Date.now() - reply.askedAt < RESUME_AGAIN) return;
    reply.askedAt = Date.now();
    if (!resume(turn)) reply.askedAt = 0;
  }

  /** False for what belongs to a step that is over. */
  function delta({ turn, step, offset, text }) {
    let reply = replyAt(turn, step);
    if (!reply) return false;
    // Thoughts of a request that is made again begin anew; text never does.
    if (offset === 0 && reply.length && !onStep) {
      reply = begin(turn, step);
      placeholder(turn)?.replaceChildren();
    }
    if (offset > reply.length) return askFor(turn), true;
    const piece = offset === reply.length ? text : Array.from(text).slice(reply.length - offset).join("");
    if (!piece) return true;
    reply.text += piece;
    reply.length += codePoints(piece);
    reply.unwritten += piece;
    schedule();
    return true;
  }

  /** The answer to a resume: it may be older than deltas that came meanwhile. */
  function whole({ turn, step, text }) {
    const reply = replyAt(turn, step);
    replyOf(turn).askedAt = 0;
    const length = codePoints(text);
    if (!reply || length < reply.length) return;
    reply.text = text;
    reply.length = length;
    place(turn, reply);
  }

  /** Without a step it speaks of the one that is known. */
  function tick({ turn, step = replyOf(turn).step, length }) {
    const reply = replyAt(turn, step);
    if (reply && length > reply.length) askFor(turn);
  }

  function placeholder(turn) {
    return document.querySelector(`[data-turn="${turn}"] ${part}`);
  }

  function stepOf(element) {
    return Number(element?.dataset.step ?? 0);
  }

  function place(turn, reply) {
    const element = placeholder(turn);
    reply.unwritten = "";
    reply.node = null;
    if (!element) return;
    // The page was rendered later than what is known: deltas or a resume will catch up with it.
    if (stepOf(element) > reply.step) return void begin(turn, stepOf(element));
    if (stepOf(element) < reply.step) setAside(element, reply.step);
    if (reply.text.length < element.textContent.length) return;
    reply.node = document.createTextNode(reply.text);
    element.replaceChildren(reply.node);
    fold(element, !reply.text);
  }

  /** Thoughts are hidden until there are any. */
  function fold(element, hidden) {
    if (!onStep) element.parentElement.hidden = hidden;
  }

  /** What an earlier step wrote stands above until the transcript with it is there. */
  function setAside(element, step) {
    if (element.textContent && onStep) {
      const earlier = document.createElement("div");
      earlier.className = "thought plain-text";
      earlier.dir = "auto";
      earlier.textContent = element.textContent;
      element.before(earlier);
    }
    element.replaceChildren();
    element.dataset.step = step;
    fold(element, true);
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
        append(reply);
      } else {
        place(turn, reply);
      }
    }
  }

  function append(reply) {
    const box = reply.node.parentElement;
    // Thoughts scroll in a box of their own, which follows them while its end is in view.
    const follows = !onStep && box.scrollHeight - box.scrollTop - box.clientHeight < 24;
    reply.node.appendData(reply.unwritten);
    reply.unwritten = "";
    if (follows) box.scrollTop = box.scrollHeight;
  }

  /** After the transcript was swapped: writes what is known into the new placeholders. */
  function attach() {
    for (const [turn, reply] of replies) {
      if (!reply.node?.isConnected) place(turn, reply);
    }
  }

  return {
    delta, whole, tick, attach, askFor,
    /** True if the step is another one than that which was known; `onStep` was called for it. */
    step({ turn, step }) {
      const before = replyOf(turn);
      return replyAt(turn, step) !== before;
    },
    textOf: (turn) => replies.get(turn)?.text ?? "",
  };
}
