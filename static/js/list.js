// The list of conversations: which one is open is marked here, since the fragment does not know.

export function createList({ list, url }) {
  function mark() {
    for (const link of list.querySelectorAll("a")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const name = list.querySelector("[aria-current] .list-title")?.textContent;
    const title = document.getElementById("title");
    if (!name || !title || title.textContent === name) return;
    document.title = document.title.replace(title.textContent, () => name);
    title.textContent = name;
    for (const field of document.querySelectorAll("#rename-field, #id_settings-title")) {
      if (field !== document.activeElement && field.value === field.defaultValue) field.value = field.defaultValue = name;
    }
  }

  list.addEventListener("htmx:afterSwap", mark);

  return {
    refresh() {
      const query = document.getElementById("q").value;
      return window.htmx.ajax("GET", `${url}?q=${encodeURIComponent(query)}`, { source: list, target: list, swap: "innerHTML" }).catch(() => {});
    },
  };
}
