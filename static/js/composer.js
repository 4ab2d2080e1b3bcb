// The message field: grows, keeps a draft per conversation, sends with Enter (never while an input
// method composes), refuses what is too long, and gives a refused text back.

import { createEditing } from "./editing.js";
import { codePoints, newId, say } from "./strings.js";

const BYTES_MOST = 900_000; // of one frame; the server closes the socket above 1,048,576
const COUNT_FROM = 0.9; // of the longest message: from here on the count is shown

/**
 * onSend(id, text, turn): turn is the number of the one that the text replaces, or null. onStop().
 * isRunning() says whether a turn runs, lastMessage() gives { turn, text } of what can be edited.
 */
export function createComposer({ form, conversation, isRunning, lastMessage, onSend, onStop }) {
  const field = form.querySelector("textarea");
  const send = document.getElementById("send");
  const stop = document.getElementById("stop");
  const problem = document.getElementById("composer-problem");
  const most = Number(field.dataset.max);
  const key = `palimpsest.draft.${conversation}`;
  let reuse = null; // { id, text } of a message that may have arrived: the same text gets the same id

  function store(value) {
    try {
      if (value) localStorage.setItem(key, JSON.stringify(value));
      else localStorage.removeItem(key);
    } catch {
      // private windows may refuse; the draft then lives as long as the page
    }
  }

  function recall() {
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null;
    }
  }

  function complain(text, isCount = false) {
    problem.classList.toggle("count", isCount);
    if (problem.textContent !== text) problem.textContent = text;
  }

  function grow() {
    if (CSS.supports("field-sizing", "content")) return;
    field.rows = 1;
    while (field.rows < 14 && field.scrollHeight > field.clientHeight + 2) field.rows += 1;
  }

  function changed() {
    grow();
    // While a message is edited the draft stays as it was stored.
    if (editing.turn() === null) store(field.value ? { text: field.value, id: reuse?.text === field.value ? reuse.id : null } : null);
    const count = field.value.length > most * COUNT_FROM ? codePoints(field.value) : 0;
    if (count > most) complain(say("tooLong", { count, max: most }));
    else complain(count ? say("count", { count, max: most }) : "", true);
  }

  function submit() {
    const text = field.value;
    if (!text.trim()) return;
    if (isRunning()) return complain(say("busy"));
    const turn = editing.turn();
    if (!trySend(text, turn)) return;
    if (turn === null) field.value = "";
    else editing.end();
    grow();
    complain("");
  }

  function edit() {
    const last = isRunning() ? null : lastMessage();
    if (last) editing.begin(last);
    return Boolean(last);
  }

  /** Sends `text`, in place of the message of `turn` if that is not null; false, with the reason
   *  shown, if it cannot be sent. */
  function trySend(text, turn = null) {
    const count = codePoints(text);
    if (count > most) return complain(say("tooLong", { count, max: most })), false;
    const id = turn === null && reuse?.text === text ? reuse.id : newId();
    if (new TextEncoder().encode(JSON.stringify({ id, text })).length > BYTES_MOST) return complain(say("tooLarge")), false;
    if (turn === null) {
      reuse = { id, text };
      store(reuse);
    }
    onSend(id, text, turn);
    return true;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  field.addEventListener("input", changed);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return; // an input method is choosing
    if (event.shiftKey || event.altKey) return;
    if (event.key === "Escape" && editing.turn() !== null) {
      event.stopPropagation(); // gives up the edit, and stops no reply
      editing.end();
    } else if (event.key === "Enter") {
      event.preventDefault();
      submit();
    } else if (event.key === "ArrowUp" && !field.value && editing.turn() === null && edit()) {
      event.preventDefault();
    }
  });
  stop.addEventListener("click", onStop);

  const editing = createEditing({ field, onChange: changed });
  const draft = recall();
  if (draft?.text && !field.value) {
    field.value = draft.text;
    if (draft.id) reuse = draft;
  }
  grow();

  return {
    trySend,
    edit,
    complain,
    acknowledged(id) {
      if (reuse?.id !== id) return;
      reuse = null;
      store(field.value ? { text: field.value, id: null } : null);
      complain("");
    },
    /** Gives a text back that was not taken, before whatever was written since. */
    giveBack(text, why) {
      field.value = field.value && field.value !== text ? `${text}\n${field.value}` : text;
      changed();
      complain(why);
    },
    /** Stop stands where Send was; a focus that stood on the one moves to the other. */
    setRunning(running) {
      const focused = document.activeElement;
      send.hidden = running;
      stop.hidden = !running;
      stop.disabled = false;
      if (running && focused === send) stop.focus({ preventScroll: true });
      if (!running && focused === stop) send.focus({ preventScroll: true });
      if (!running && problem.textContent === say("busy")) complain("");
    },
    setStopping() {
      stop.disabled = true;
    },
  };
}
