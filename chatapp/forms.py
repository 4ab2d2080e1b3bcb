"""The settings of a conversation, each value checked at its field."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatapp import parameters
from chatapp.parameters import PRESET_LABELS, TOOLSET_LABELS
from chatapp.provider import is_demo, target_for, target_of
from chatapp.tools.toolsets import TOOLSETS
from memory.core.budget import MIN_WINDOW, budget_for
from memory.core.policy import Policy
from memory.core.presets import PARAMETERS, PRESETS, policy_from
from memory.core.text import clean
from memory.models import Conversation

# The longest system prompt, in characters.
MAX_PROMPT = 32_000
MAX_TOKENS = 10_000_000
# The limits of one turn: its steps, and the tokens that they add.
MOST_STEPS, LEAST_TURN_TOKENS = 100, 100


class CleanText(forms.CharField):
    """Text without NUL and lone surrogates, as everywhere, and with line ends as they are typed."""

    def to_python(self, value: Any) -> str:
        if isinstance(value, str):
            value = clean(value).replace("\r\n", "\n")
        return super().to_python(value) or ""


class SettingsForm(forms.Form):
    """Reads and checks a conversation's settings; `changes` are the columns to store.

    Rules of the budget and of the policy are those of the core: what it refuses is shown at the
    field that the rule names.
    """

    title = CleanText(
        label=gettext_lazy("Title"),
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}),
    )
    system_prompt = CleanText(
        label=gettext_lazy("System prompt"),
        max_length=MAX_PROMPT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "dir": "auto"}),
        help_text=gettext_lazy("The first part of every request, word for word."),
    )
    model = forms.ChoiceField(label=gettext_lazy("Model"), required=False)
    window = forms.IntegerField(
        label=gettext_lazy("Context window (tokens)"),
        help_text=gettext_lazy(
            "All that one request and its reply may take. Empty: the model's own."
        ),
        required=False,
        min_value=MIN_WINDOW,
        max_value=MAX_TOKENS,
    )
    reply_reserve = forms.IntegerField(
        label=gettext_lazy("Kept for the reply (tokens)"),
        help_text=gettext_lazy("Taken from the window; the rest is usable for the request."),
        required=False,
        min_value=1,
        max_value=MAX_TOKENS,
    )
    tools = forms.MultipleChoiceField(
        label=gettext_lazy("Tools that the model may use"),
        choices=[(name, TOOLSET_LABELS.get(name, name)) for name in TOOLSETS],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    max_steps = forms.IntegerField(
        label=gettext_lazy("Most steps of a turn"),
        help_text=gettext_lazy("A step is one request and the tools that it calls."),
        required=False,
        min_value=1,
        max_value=MOST_STEPS,
    )
    turn_tokens = forms.IntegerField(
        label=gettext_lazy("Working memory of a turn (tokens)"),
        help_text=gettext_lazy("All that the steps of one turn may add, in tokens."),
        required=False,
        min_value=LEAST_TURN_TOKENS,
        max_value=MAX_TOKENS,
    )
    preset = forms.ChoiceField(
        label=gettext_lazy("Memory policy"),
        choices=[(name, PRESET_LABELS[name]) for name in PRESETS],
    )

    def __init__(self, conversation: Conversation, data: Any = None) -> None:
        super().__init__(data, initial=_initial(conversation), prefix="settings")
        self.conversation = conversation
        default = target_for("").model
        names = [] if is_demo() else [name for name in settings.LLM_MODELS if name != default]
        current = conversation.model
        if current and current != default and current not in names:
            names.append(current)
        self.fields["model"].choices = [  # type: ignore[attr-defined]
            ("", _("%(model)s (default)") % {"model": default}),
            *((name, name) for name in names),
        ]
        usual = target_of(conversation).window
        self.fields["window"].widget.attrs["placeholder"] = str(usual)
        self.fields["reply_reserve"].widget.attrs["placeholder"] = str(
            budget_for(conversation.window or usual).reply_reserve
        )
        self.fields["max_steps"].widget.attrs["placeholder"] = str(settings.TURN_MAX_STEPS)
        self.fields["turn_tokens"].widget.attrs["placeholder"] = str(settings.TURN_TOKENS)
        for name, make in parameters.FIELDS.items():
            self.fields[name] = make()
            self._mark_parameter(name)

    def _mark_parameter(self, name: str) -> None:
        """Tell static/js/settings.js which policies have a parameter, and with what default."""
        field = self.fields[name]
        having = [one for one in PRESETS if name in PARAMETERS[one]]
        field.widget.attrs["data-presets"] = " ".join(having)
        for one in having:
            words = parameters.default_words(PRESETS[one], name)
            field.widget.attrs[f"data-default-{one}"] = words
            if one != self["preset"].value():
                continue
            if isinstance(field, forms.ChoiceField):
                field.choices = [("", words), *parameters.CHOICES[name]]
            else:
                field.widget.attrs["placeholder"] = words

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors:
            self._check_budget(values)
            self._check_policy(values)
        return values

    def _check_budget(self, values: dict[str, Any]) -> None:
        window = values["window"] or target_for(values["model"], values["tools"]).window
        try:
            budget_for(window, values["reply_reserve"])
        except ValueError:
            words = _("The reply must leave room in the window: at most %(most)s.")
            self.add_error("reply_reserve", words % {"most": number_format(window - 1)})

    def _check_policy(self, values: dict[str, Any]) -> None:
        preset = PRESETS[values["preset"]]
        try:
            before = self.conversation.policy_data
            self.policy_data = parameters.policy_data(preset, values, before)
            policy_from(self.policy_data)
        except ValueError as error:
            rule = str(error)
            named = [name for name in PARAMETERS[preset.preset] if name in rule]
            # The rule begins with the parameter that breaks it.
            field = min(named, key=rule.find) if named else "preset"
            self.add_error(field, parameters.rule_in_words(rule, preset, values))

    def changes(self) -> dict[str, Any]:
        """The columns of the conversation and their new values."""
        values = self.cleaned_data
        return {
            "title": " ".join(values["title"].split()) or self.conversation.title,
            "system_prompt": values["system_prompt"],
            "model": values["model"],
            "window": values["window"],
            "reply_reserve": values["reply_reserve"],
            "tools": [name for name in TOOLSETS if name in values["tools"]],
            "max_steps": values["max_steps"],
            "turn_tokens": values["turn_tokens"],
            "policy_data": self.policy_data,
        }


def _initial(conversation: Conversation) -> dict[str, Any]:
    """What is stored; a parameter as its policy has it stays empty, its default is shown there."""
    policy: Policy = conversation.policy
    return {
        "title": conversation.title,
        "system_prompt": conversation.system_prompt,
        "model": conversation.model,
        "window": conversation.window,
        "reply_reserve": conversation.reply_reserve,
        "tools": conversation.tools,
        "max_steps": conversation.max_steps,
        "turn_tokens": conversation.turn_tokens,
        "preset": policy.preset,
    } | parameters.differing(policy)
