// The list of conversations: which one is open is marked here, since the fragment does not know.

export function createList({ list, url }) {
  function mark() {
    for (const link of list.querySelectorAll("a")) {
      if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
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
