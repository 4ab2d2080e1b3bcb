// Copy buttons: of messages, of parts of the request, and of code blocks.

import { say } from "./strings.js";

/** Rendered Markdown: a copy button on every code block; links open beside the chat. */
export function dressMarkdown(root) {
  // What scrolls sideways can be reached and scrolled with the keyboard.
  for (const wide of root.querySelectorAll(".markdown :is(pre, table)")) wide.tabIndex = 0;
  for (const link of root.querySelectorAll(".markdown a[href]")) link.target = "_blank";
  for (const code of root.querySelectorAll(".markdown pre")) {
    if (code.parentElement.classList.contains("code-block")) continue;
    const block = document.createElement("div");
    block.className = "code-block";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-code";
    button.dataset.copy = "code";
    button.textContent = say("copyCode");
    code.replaceWith(block);
    block.append(code, button);
  }
}

function textFor(button) {
  if (button.dataset.copy === "code") return button.parentElement.querySelector("pre").innerText;
  const result = button.closest(".result");
  if (result) return result.querySelector("[data-copied]").textContent;
  const message = button.closest(".message");
  if (message) return message.querySelector(".body").innerText;
  return button.closest(".segment")?.querySelector(".segment-text").textContent ?? "";
}

/** Without a secure context there is no clipboard API: fall back to a selection. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  const focused = document.activeElement;
  area.select();
  document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
}

export function enableCopying({ onCopied }) {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copy(textFor(button));
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1200);
    onCopied();
  });
}
