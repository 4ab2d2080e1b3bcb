// One socket per conversation: connects, says how it stands, reconnects, and sends an
// unacknowledged message again with the same id. Knows frames, not the page.

const BACKOFF_FIRST = 500; // ms, doubled with every failure
const BACKOFF_MOST = 15_000; // ms
const SILENCE_MOST = 12_000; // ms; while a turn runs the server speaks every two seconds
const SENDS_MOST = 4; // of one message

export const GONE = 4404;
export const SIGNED_OUT = 4401;
const TOO_LARGE = 1009;

/**
 * onFrame(frame), onState(state, seconds), onRefused(message, code): called by the socket.
 * States: connecting, open, reconnecting, offline, gone, signed-out.
 */
export function openSocket({ path, onFrame, onState, onRefused }) {
  const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${path}`;
  let socket = null;
  let failures = 0;
  let timer = 0;
  let heardAt = 0;
  let ready = false; // after `hello`
  let over = false; // closed for good
  let running = false; // a turn runs, so silence is suspicious
  let unacknowledged = null; // { frame, sends }

  function connect() {
    clearTimeout(timer);
    if (over || (socket && socket.readyState <= WebSocket.OPEN)) return;
    if (failures === 0) onState("connecting");
    socket = new WebSocket(url);
    heardAt = Date.now();
    const mine = socket;
    mine.onmessage = (event) => mine === socket && receive(event.data);
    mine.onclose = (event) => mine === socket && closed(event.code);
  }

  function receive(data) {
    heardAt = Date.now();
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return; // not ours
    }
    if (frame.type === "hello") {
      ready = true;
      failures = 0;
      running = frame.turn !== null;
      onState("open");
    }
    if (frame.type === "turn.started") running = true;
    if (frame.type === "turn.ended") running = false;
    const answered = unacknowledged && frame.id && frame.id === unacknowledged.frame.id;
    if (answered && (frame.type === "turn.started" || frame.type === "error")) unacknowledged = null;
    onFrame(frame);
    if (frame.type === "hello") transmit();
  }

  function transmit() {
    if (!unacknowledged || !ready) return;
    if (unacknowledged.sends >= SENDS_MOST) return refuse("unsent");
    unacknowledged.sends += 1;
    socket.send(JSON.stringify(unacknowledged.frame));
  }

  function refuse(code) {
    const { frame } = unacknowledged;
    unacknowledged = null;
    onRefused(frame, code);
  }

  function closed(code) {
    ready = false;
    socket = null;
    if (code === GONE || code === SIGNED_OUT) {
      over = true;
      if (unacknowledged) refuse("unsent");
      return onState(code === GONE ? "gone" : "signed-out");
    }
    if (code === TOO_LARGE && unacknowledged) refuse("too-large");
    retryLater();
  }

  function retryLater() {
    const most = Math.min(BACKOFF_MOST, BACKOFF_FIRST * 2 ** failures);
    const wait = most * (0.5 + Math.random() / 2);
    failures += 1;
    onState(navigator.onLine ? "reconnecting" : "offline", Math.ceil(wait / 1000));
    timer = setTimeout(connect, wait);
  }

  function reconnectNow() {
    if (!socket) connect();
  }

  // A half-open connection does not close by itself.
  setInterval(() => {
    const waiting = ready ? running || unacknowledged : socket;
    if (!waiting || Date.now() - heardAt < SILENCE_MOST) return;
    const dead = socket;
    closed(4000);
    dead.close();
  }, 3000);

  addEventListener("online", reconnectNow);
  addEventListener("offline", () => !ready && onState("offline"));
  document.addEventListener("visibilitychange", () => document.hidden || reconnectNow());
  addEventListener("pagehide", () => { over = true; socket?.close(); });
  addEventListener("pageshow", (event) => { if (event.persisted) { over = false; connect(); } });
  connect();

  return {
    reconnectNow,
    isReady: () => ready,
    /** Sends at once or not at all; true if it was handed to the connection. */
    send(frame) {
      if (!ready) return false;
      socket.send(JSON.stringify(frame));
      return true;
    },
    /** Sends a message until it is acknowledged or refused. */
    submit(frame) {
      unacknowledged = { frame, sends: 0 };
      // The caller empties the field first; what is refused goes back into it.
      if (over) queueMicrotask(() => refuse("unsent"));
      else transmit();
    },
    /** As if the server had closed with this code: a fetch told what it would say. */
    end(code) {
      const open = socket;
      clearTimeout(timer);
      closed(code);
      open?.close();
    },
  };
}
