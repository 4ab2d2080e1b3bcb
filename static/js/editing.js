// Editing the last message in the message field: the draft waits until that is sent or given up.

/** onChange(): the field has another text now. */
export function createEditing({ field, onChange }) {
  const banner = document.getElementById("editing");
  const described = field.getAttribute("aria-describedby");
  let edited = null; // { turn, draft }

  function show(text) {
    banner.hidden = edited === null;
    field.setAttribute("aria-describedby", edited === null ? described : `${banner.id} ${described}`);
    field.value = text;
    onChange();
  }

  function end() {
    const draft = edited?.draft ?? field.value;
    edited = null;
    show(draft);
  }

  document.getElementById("editing-cancel").addEventListener("click", () => {
    end();
    field.focus({ preventScroll: true });
  });

  return {
    end,
    /** Number of the turn whose message is in the field, or null. */
    turn: () => edited?.turn ?? null,
    begin({ turn, text }) {
      edited = { turn, draft: edited?.draft ?? field.value };
      show(text);
      field.focus({ preventScroll: true });
      field.setSelectionRange(text.length, text.length);
    },
  };
}
