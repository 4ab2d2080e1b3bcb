// Joins the parts of the page: what a frame of the socket or an act of the reader sets in motion.

import { watchActs } from "./acts.js";
import { createComposer } from "./composer.js";
import { dressMarkdown, enableCopying } from "./copy.js";
import { enableKeys } from "./keys.js";
import { linkParts } from "./link.js";
import { createList } from "./list.js";
import { closeMenus } from "./menus.js";
import { createPanel } from "./panel.js";
import { GONE, openSocket, SIGNED_OUT } from "./socket.js";
import { createStatus } from "./status.js";
import { createStream } from "./stream.js";
import { newId, say } from "./strings.js";
import { createTranscript } from "./transcript.js";

const app = document.getElementById("app");
if (app?.dataset.conversation) startChat(app.dataset);
else enableKeys({ isRunning: () => false, onStop() {} });

function startChat(page) {
  const scroller = document.getElementById("transcript");
  let running = null; // number of the running turn
  let connectedBefore = false;
  let mine = null; // { id, text } of the message sent from here

  const status = createStatus({ loginUrl: page.loginUrl, onReconnect: () => socket.reconnectNow() });
  const resume = (turn) => socket.send({ type: "turn.resume", turn });
  const stream = createStream({ part: "[data-partial]", resume, onStep: refreshAll });
  const thoughts = createStream({ part: "[data-thoughts]", resume });
  const panel = createPanel({
    url: page.panelUrl,
    body: document.getElementById("panel-body"),
    onGone: () => socket.end(GONE),
  });
  const list = createList({ list: document.getElementById("list"), url: page.listUrl });
  const transcript = createTranscript({
    scroller,
    pill: document.getElementById("pill"),
    url: page.transcriptUrl,
    onSwap() {
      stream.attach();
      thoughts.attach();
      status.redraw();
      dressMarkdown(scroller);
    },
    onDivider: (words) => acts.tell(words),
    onError: (words) => status.tell(words),
  });
  const composer = createComposer({
    form: document.getElementById("composer"),
    conversation: page.conversation,
    isRunning: () => running !== null,
    lastMessage: transcript.lastMessage,
    onSend: sendMessage,
    onStop: stopTurn,
  });

  function sendMessage(id, text, replaces) {
    mine = { id, text };
    transcript.showPending(text);
    socket.submit(replaces === null ? { type: "message.send", id, text } : { type: "turn.edit", id, turn: replaces, text });
  }

  async function stopTurn() {
    if (running === null) return;
    composer.setStopping();
    status.tell(say("stopping"));
    if (socket.send({ type: "turn.stop", turn: running })) return;
    const form = document.querySelector(`[data-turn="${running}"] [data-stop]`);
    if (form) await fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" }).catch(() => {});
  }

  function refreshAll() {
    transcript.refreshQuietly();
    panel.refresh();
  }

  function setRunning(turn) {
    running = turn;
    composer.setRunning(turn !== null);
  }

  function onRefused(frame, code) {
    transcript.dropPending({ now: true });
    composer.giveBack(frame.text, code === "too-large" ? say("tooLarge") : say("unsent"));
  }

  const on = {
    hello({ turn, revision }) {
      const shown = document.querySelector(".turn.running")?.dataset.turn ?? null;
      setRunning(turn);
      if (turn !== null) {
        stream.askFor(turn);
        status.phase(turn, stream.textOf(turn) ? "streaming" : "waiting");
      }
      const changed = String(revision) !== panel.revision() || shown !== (turn === null ? null : String(turn));
      if (connectedBefore || changed || transcript.hasRunningCalls()) refreshAll();
      connectedBefore = true;
    },
    "turn.started"({ turn, id }) {
      setRunning(turn);
      status.phase(turn, "waiting");
      if (id) composer.acknowledged(id);
      acts.tell("");
      transcript.dropPending();
      if (id && id === mine?.id) transcript.refresh();
      else transcript.refreshQuietly();
      panel.refresh();
    },
    "turn.status"({ turn, phase, seconds }) {
      if (running === null) setRunning(turn);
      // The request has been made now: the panel shows it.
      if ((phase === "streaming" || phase === "thinking") && seconds === 0) panel.refresh();
      status.phase(turn, phase, seconds);
    },
    "turn.step"(frame) {
      // Twice in a step: its calls are stored, then their results.
      thoughts.step(frame);
      if (!stream.step(frame)) refreshAll();
    },
    "turn.delta"(frame) {
      if (stream.delta(frame)) status.phase(frame.turn, "streaming");
    },
    "turn.thoughts": (frame) => thoughts.delta(frame),
    "turn.text"(frame) {
      stream.whole(frame);
      thoughts.whole({ ...frame, text: frame.thoughts });
      const missedTheEnd = frame.turn === running && frame.state && frame.state !== "running";
      if (missedTheEnd) on["turn.ended"]({ turn: frame.turn, state: frame.state, length: 0, reason: "" });
    },
    "turn.tick"(frame) {
      stream.tick(frame);
      thoughts.tick({ ...frame, length: frame.thoughts });
    },
    async "turn.ended"({ turn, state, length, reason }) {
      if (running === turn) setRunning(null);
      stream.tick({ turn, length });
      status.ended(turn, state === "length" && reason ? "paused" : state);
      panel.refresh();
      list.refresh();
      await transcript.refreshQuietly();
      const text = transcript.lastReply(turn) || stream.textOf(turn);
      if (text) status.announce(`${say("assistantSaid")} ${text}`);
    },
    "memory.changed"({ event, revision }) {
      // A fold says itself what it did, and may have been seen before this frame.
      if (event !== "compaction") acts.outdate(revision);
      transcript.refreshQuietly({ news: false });
      panel.refresh();
      if (event === "settings") list.refresh(); // it has the title and the policy
    },
    "title.changed"() {
      panel.refresh(); // it has the title of the page, which a search may leave out of the list
      list.refresh();
    },
    error({ code, message, id }) {
      if (id && id === mine?.id) {
        transcript.dropPending({ now: true });
        // "busy" in the page's own words, which go away when the reply ends
        if (mine.text) composer.giveBack(mine.text, code === "busy" ? say("busy") : message);
        else status.tell(message);
      } else if (code !== "no-turn") {
        status.tell(message);
      }
    },
  };

  const socket = openSocket({
    path: page.socket,
    onFrame: (frame) => on[frame.type]?.(frame),
    onState: (state) => status.connection(state),
    onRefused,
  });

  // Suggestions and Retry are plain forms; with a socket they need no new page.
  scroller.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-suggestion]")) {
      event.preventDefault();
      if (running === null) composer.trySend(new FormData(form).get("text"));
    } else if (form.matches("[data-retry]") && socket.isReady()) {
      event.preventDefault();
      mine = { id: newId(), text: "" };
      socket.send({ type: "turn.retry", id: mine.id, turn: Number(form.closest("[data-turn]").dataset.turn) });
      transcript.toEnd();
    }
  });

  const acts = watchActs({
    panel,
    loginUrl: page.loginUrl,
    announce: status.announce,
    onChanged(what) {
      transcript.refresh();
      if (what === "settings") list.refresh();
    },
    onSignedOut: () => socket.end(SIGNED_OUT),
    onFailed: status.tell,
  });

  dressMarkdown(scroller);
  linkParts({ reveal: transcript.reveal });
  closeMenus(scroller);
  scroller.addEventListener("click", (event) => event.target.closest("[data-edit]") && composer.edit());
  enableCopying({ onCopied: () => status.tell(say("copied")) });
  enableKeys({ isRunning: () => running !== null, onStop: stopTurn });
}
