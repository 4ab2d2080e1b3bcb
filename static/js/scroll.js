// Follows the end of the transcript only while the reader is there; otherwise a pill says what is
// new. Content can be changed under the reader's eyes without a jump.

const NEAR = 40; // px from the end that still count as the end
const FAR = 400; // px from the end from which the way back is offered

/** onEnd(): the reader has come back to the end. onTop(): the reader is near the beginning. */
export function createScroll({ scroller, pill, texts, onEnd, onTop }) {
  let following = true;
  let news = false;
  let last = scroller.scrollTop;

  const distance = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;

  function toEnd() {
    following = true;
    news = false;
    scroller.scrollTop = scroller.scrollHeight;
    last = scroller.scrollTop;
    draw();
  }

  function draw() {
    pill.hidden = following || (!news && distance() < FAR);
    pill.classList.toggle("news", news);
    pill.querySelector("[data-pill-text]").textContent = news ? texts.news : texts.end;
  }

  scroller.addEventListener("scroll", () => {
    const was = following;
    if (distance() < NEAR) following = true;
    else if (scroller.scrollTop < last - 1) following = false;
    last = scroller.scrollTop;
    if (following && !was) {
      news = false;
      onEnd();
    }
    if (scroller.scrollTop < FAR) onTop();
    draw();
  }, { passive: true });

  // Opening a summary at the end must not pull it away from the reader.
  scroller.addEventListener("click", (event) => {
    if (event.target.closest("summary") && !event.target.closest(".more")) following = false;
  });

  // If all is still in view, the end is too.
  scroller.addEventListener("toggle", () => {
    if (following || scroller.scrollHeight > scroller.clientHeight) return;
    toEnd();
    onEnd();
  }, true);

  pill.addEventListener("click", () => {
    toEnd();
    onEnd();
  });

  const observer = new ResizeObserver(() => following && toEnd());
  observer.observe(scroller);

  /** The first message that is visible and where it stands, to put it there again. */
  function anchor() {
    const top = scroller.getBoundingClientRect().top;
    for (const element of scroller.querySelectorAll(".message[id], [data-item][id]")) {
      const box = element.getBoundingClientRect();
      if (box.top >= top - 4 && box.height) return { id: element.id, at: box.top };
    }
    return null;
  }

  function keep(change) {
    if (following) {
      change();
      return toEnd();
    }
    const before = anchor();
    const fromEnd = scroller.scrollHeight - scroller.scrollTop;
    change();
    const same = before && document.getElementById(before.id);
    if (same) scroller.scrollTop += same.getBoundingClientRect().top - before.at;
    else scroller.scrollTop = scroller.scrollHeight - fromEnd;
    last = scroller.scrollTop;
    draw();
  }

  return {
    keep, toEnd,
    isFollowing: () => following,
    observe: (content) => observer.observe(content),
    tellNews() {
      if (following) return;
      news = true;
      draw();
    },
  };
}
