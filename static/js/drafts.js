// Forms of the panel in which somebody is writing (form[data-keep]): nothing that arrives meanwhile
// takes the text away. data-keep names what is edited, so that a text that is put back says when
// something else stands there by now.

function isChanged(control) {
  if (!control.name || control.type === "hidden" || control.disabled) return false;
  if (control.type === "checkbox") return control.checked !== control.defaultChecked;
  if (control.tagName !== "SELECT") return control.value !== control.defaultValue;
  const options = Array.from(control.options);
  return control.value !== (options.find((option) => option.defaultSelected) ?? options[0])?.value;
}

/** Whether something is in the form that was not saved; data-unsaved: the server refused it. */
function isDirty(form) {
  return "unsaved" in form.dataset || Array.from(form.elements).some(isChanged);
}

export function createDrafts(body) {
  const kept = new Map(); // id of the form -> { of, values }, values by the controls' ids

  const forms = () => Array.from(body.querySelectorAll("form[data-keep]"));
  const tellNewer = (form) => form.querySelector("[data-newer]")?.removeAttribute("hidden");

  function valuesOf(form) {
    const controls = Array.from(form.elements).filter((control) => control.name && control.type !== "hidden");
    return controls.map(({ id, value, checked }) => [id, { value, checked }]);
  }

  function putBack(form, { of, values }) {
    for (const [id, value] of values) if (id && form.elements[id]) Object.assign(form.elements[id], value);
    form.closest("details")?.setAttribute("open", "");
    if (form.dataset.keep !== of) tellNewer(form);
  }

  return {
    isDirty: () => forms().some(isDirty),
    tellNewer: () => forms().filter(isDirty).forEach(tellNewer),
    /** Before the reader goes elsewhere; `sent` is the form whose text is being saved. */
    keep(sent) {
      for (const form of forms()) {
        if (form !== sent && isDirty(form)) kept.set(form.id, { of: form.dataset.keep, values: valuesOf(form) });
      }
    },
    /** After a swap: what was kept of the forms that are there now. */
    restore() {
      for (const form of forms()) {
        const draft = kept.get(form.id);
        kept.delete(form.id);
        if (draft) putBack(form, draft);
      }
    },
    /** Gives up what is in the form. */
    discard(form) {
      form.reset();
      delete form.dataset.unsaved;
      form.closest("details")?.removeAttribute("open");
    },
  };
}
