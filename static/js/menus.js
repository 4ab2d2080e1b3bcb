// The small menus of the messages are details; they close as menus do.

export function closeMenus(root) {
  const opened = () => Array.from(root.querySelectorAll("details.more[open]"));

  document.addEventListener("click", (event) => {
    for (const menu of opened()) if (!menu.contains(event.target)) menu.open = false;
  });
  root.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest("details.more[open]");
    if (!menu) return;
    event.stopPropagation(); // Esc closes this, and stops no reply
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
