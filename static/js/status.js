// What is going on, in words: a status line (phase and connection) and a polite live region that
// reads a finished reply once. Seconds are shown but not read out.

import { say } from "./strings.js";

const READ_MOST = 4000; // characters of a reply that are read out
const CONNECTING_AFTER = 800; // ms before a slow first connection is mentioned

export function createStatus({ loginUrl, onReconnect }) {
  const line = document.getElementById("status");
  const seconds = document.getElementById("seconds");
  const link = document.getElementById("status-link");
  const retry = document.getElementById("reconnect");
  const announcer = document.getElementById("announce");
  let phase = null; // { turn, name, since }
  let words = "";
  let trouble = "";
  let timer = 0;

  retry.addEventListener("click", onReconnect);
  setInterval(drawSeconds, 1000);

  function draw() {
    const text = trouble || words;
    if (line.textContent !== text) line.textContent = text;
    line.parentElement.classList.toggle("trouble", Boolean(trouble));
    drawSeconds();
  }

  function drawSeconds() {
    const elapsed = phase ? Math.round((Date.now() - phase.since) / 1000) : 0;
    const text = phase && phase.name !== "streaming" && elapsed >= 1 ? say("seconds", { seconds: elapsed }) : "";
    if (seconds.textContent !== text) seconds.textContent = trouble ? "" : text;
    if (!phase) return;
    const place = document.querySelector(`[data-turn="${phase.turn}"] [data-phase]`);
    const shown = text ? `${say(phase.name)} · ${text}` : say(phase.name);
    if (place && place.textContent !== shown) place.textContent = shown;
  }

  return {
    redraw: drawSeconds,
    /** What the running turn is doing; the names are those of docs/protocol.md. */
    phase(turn, name, passed = 0) {
      if (phase?.turn !== turn || phase.name !== name || Math.abs(Date.now() - phase.since - passed * 1000) > 1500) {
        phase = { turn, name, since: Date.now() - passed * 1000 };
      }
      words = name === "streaming" ? say("generating") : say(name);
      draw();
    },
    ended(turn, state) {
      document.querySelector(`[data-turn="${turn}"] .running`)?.classList.add("over");
      const place = document.querySelector(`[data-turn="${turn}"] [data-phase]`);
      phase = null;
      words = say(state);
      if (place) place.textContent = words;
      draw();
    },
    tell(text) {
      words = text;
      draw();
    },
    announce(text) {
      announcer.textContent = "";
      setTimeout(() => { announcer.textContent = text.slice(0, READ_MOST); }, 50);
    },
    /** How the connection stands; see the states of socket.js. */
    connection(state) {
      clearTimeout(timer);
      if (state === "connecting") {
        timer = setTimeout(() => { trouble = say("connecting"); draw(); }, CONNECTING_AFTER);
        return;
      }
      const was = trouble;
      trouble = { offline: say("offline"), reconnecting: say("reconnecting"), gone: say("gone"), "signed-out": say("signedOut") }[state] ?? "";
      if (was && !trouble && was !== say("connecting")) words = say("reconnected");
      retry.hidden = state !== "reconnecting" && state !== "offline";
      link.hidden = state !== "signed-out";
      if (!link.hidden) {
        link.href = `${loginUrl}?next=${encodeURIComponent(location.pathname)}`;
        link.textContent = say("signIn");
      }
      draw();
    },
  };
}
