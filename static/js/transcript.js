// The transcript: fetches it again when something happened, without a jump; waits with that while
// the reader is further up; loads what is older; marks once what has just been folded.

import { unfold } from "./link.js";
import { createScroll } from "./scroll.js";
import { say } from "./strings.js";
import { parse, remember, swap } from "./swap.js";

const SEEN = ["window", "current", "working"]; // states of what the model can see

/** onSwap(): after every change of the items. onDivider(words): something was just folded or reset. */
export function createTranscript({ scroller, pill, url, onSwap, onDivider, onError }) {
  const items = scroller.querySelector("[data-items]");
  let pages = 1; // how many the reader has loaded
  let fetching = null;
  let again = false;
  let deferred = false;
  let pending = null; // the message that is being sent
  remember(items);

  const scroll = createScroll({
    scroller, pill,
    texts: { news: say("newBelow"), end: say("toEnd") },
    onEnd: () => deferred && refresh(),
    onTop: loadOlder,
  });
  scroll.observe(items);

  async function get(before) {
    const address = before ? `${url}?before=${before}` : url;
    const response = await fetch(address, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    return parse(await response.text());
  }

  /** The newest page, and the older ones that a reader further up is looking at. */
  async function load() {
    const fresh = await get("");
    if (scroll.isFollowing()) pages = 1;
    for (let page = 1; page < pages && fresh.dataset.older; page += 1) prepend(fresh, await get(fresh.dataset.older));
    return fresh;
  }

  function prepend(target, older) {
    target.querySelector("#older")?.remove();
    target.prepend(...older.children);
    target.dataset.older = older.dataset.older;
  }

  /** Fetches the transcript again; calls that come meanwhile become one more fetch. */
  async function refresh() {
    again = true;
    deferred = false;
    fetching ??= (async () => {
      while (again) {
        again = false;
        apply(await load());
      }
    })().catch(() => onError(say("loadFailed"))).finally(() => { fetching = null; });
    return fetching;
  }

  function apply(fresh) {
    const before = { states: states(), resets: items.querySelectorAll(".divider.reset").length };
    scroll.keep(() => {
      const added = swap(items, fresh);
      if (pending) items.append(pending);
      onSwap();
      markFolded(before.states, added);
      const resets = Array.from(items.querySelectorAll(".divider.reset"));
      if (resets.length > before.resets) tellOf(resets.pop());
    });
  }

  function states() {
    const all = new Map();
    for (const message of items.querySelectorAll(".message[data-position]")) all.set(message.dataset.position, message.dataset.state);
    return all;
  }

  function markFolded(before, added) {
    let some = false;
    for (const message of items.querySelectorAll('.message[data-state="folded"]')) {
      const was = before.get(message.dataset.position);
      if (!SEEN.includes(was)) continue;
      message.classList.add("just-folded");
      message.addEventListener("animationend", () => message.classList.remove("just-folded"), { once: true });
      some = true;
    }
    const fold = added.filter((node) => node.classList.contains("fold")).pop();
    if (!fold || !some) return;
    tellOf(fold);
  }

  function tellOf(divider) {
    divider.classList.add("arrived");
    onDivider(divider.querySelector("[data-say]").textContent.trim().replace(/\s+/g, " "));
  }

  async function loadOlder() {
    const link = items.querySelector("[data-load-older]");
    if (!link || fetching) return;
    link.parentElement.classList.add("loading");
    fetching = get(items.dataset.older).then((older) => {
      pages += 1;
      remember(older);
      const nodes = Array.from(older.children);
      scroll.keep(() => prepend(items, older));
      for (const node of nodes) window.htmx?.process(node);
    }).catch(() => onError(say("loadFailed"))).finally(() => {
      link.parentElement?.classList.remove("loading");
      fetching = null;
      if (again) refresh();
    });
    await fetching;
  }

  scroller.addEventListener("click", (event) => {
    if (!event.target.closest("[data-load-older]")) return;
    event.preventDefault();
    loadOlder();
  });

  async function reveal(id) {
    for (let wait = fetching; wait; wait = fetching) await wait;
    while (!document.getElementById(id) && items.querySelector("[data-load-older]")) {
      const before = items.dataset.older;
      await loadOlder();
      if (items.dataset.older === before) break; // it failed, and said so
    }
    return document.getElementById(id);
  }

  scroll.toEnd();
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && scroller.contains(target)) {
    unfold(target);
    target.scrollIntoView({ block: "center" });
  }

  return {
    refresh,
    reveal,
    toEnd: scroll.toEnd,
    /** As `refresh`, but a reader who is further up is not disturbed, only told of news. */
    refreshQuietly({ news = true } = {}) {
      if (scroll.isFollowing()) return refresh();
      deferred = true;
      if (news) scroll.tellNews();
      return Promise.resolve();
    },
    showPending(text) {
      pending = document.getElementById("pending-message").content.firstElementChild.cloneNode(true);
      pending.querySelector("[data-text]").textContent = text;
      items.querySelector(".welcome")?.remove();
      items.append(pending);
      scroll.toEnd();
    },
    dropPending({ now = false } = {}) {
      if (now) pending?.remove();
      pending = null;
    },
    /** The message that can be edited: the user's last one. */
    lastMessage() {
      const turn = items.querySelector("[data-edit]")?.closest("[data-turn]");
      return turn && { turn: Number(turn.dataset.turn), text: turn.querySelector(":scope > .message.user .body").textContent };
    },
    /** Whether it shows calls without a result. */
    hasRunningCalls: () => items.querySelector(".call.running") !== null,
    lastReply: (turn) => Array.from(items.querySelectorAll(`[data-turn="${turn}"] > .message.assistant .body`)).pop()?.innerText ?? "",
  };
}
