// The title of the open conversation, wherever the page has it.

export function entitle(name) {
  const title = document.getElementById("title");
  if (!name || title.textContent === name) return;
  document.title = document.title.replace(title.textContent, () => name);
  title.textContent = name;
  for (const field of document.querySelectorAll("#rename-field, #id_settings-title")) {
    if (field !== document.activeElement && field.value === field.defaultValue) field.value = field.defaultValue = name;
  }
}
