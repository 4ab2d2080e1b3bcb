// Keys that work anywhere: `?` lists them, Esc stops the reply (or closes what is open, which
// the browser does by itself).

export function enableKeys({ isRunning, onStop }) {
  const list = document.getElementById("keys");

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey) return;
    const writing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "?" && !writing) {
      event.preventDefault();
      list.togglePopover();
    }
    if (event.key === "Escape" && isRunning() && !document.querySelector(":popover-open")) {
      event.preventDefault();
      onStop();
    }
  });
}
