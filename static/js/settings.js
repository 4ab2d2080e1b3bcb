// The settings: of the parameters, those that the chosen policy has, with its defaults as
// placeholders. Without a script all of them are shown.

export function fitSettings(body) {
  const form = body.querySelector("#settings-form");
  if (!form) return;
  const preset = form.elements["settings-preset"].value;
  for (const control of form.querySelectorAll("[data-presets]")) {
    const has = control.dataset.presets.split(" ").includes(preset);
    control.closest("[data-setting]").hidden = !has;
    control.disabled = !has; // not sent, so that a value nobody sees is not refused
    if (!has) continue;
    const words = control.getAttribute(`data-default-${preset}`);
    if (control.tagName === "INPUT") control.placeholder = words;
    else control.options[0].textContent = words;
  }
}
