"""The settings of a conversation, each value checked at its field."""

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatapp.provider import is_demo, target_for
from memory.core.budget import MIN_WINDOW, budget_for
from memory.core.policy import PRESETS, Policy, policy_from
from memory.core.text import clean
from memory.models import Conversation

# The longest system prompt, in characters.
MAX_PROMPT = 32_000
MAX_TOKENS = 10_000_000
# The parameters of a policy that each kind of policy has.
PARAMETERS = {
    "keep": (),
    "leave-out": ("max_messages",),
    "summary": ("max_messages", "keep_messages", "trigger_percent", "summary_cap", "when"),
}


# What a policy is called where it is chosen; its name says it in the code and in the header.
PRESET_LABELS = {
    "full": gettext_lazy("full: everything is sent"),
    "window": gettext_lazy("window: only the newest messages"),
    "hybrid": gettext_lazy("hybrid: older messages become a summary"),
}


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
        required=False,
        min_value=MIN_WINDOW,
        max_value=MAX_TOKENS,
        help_text=gettext_lazy(
            "All that one request and its reply may take. Empty: the model's own."
        ),
    )
    reply_reserve = forms.IntegerField(
        label=gettext_lazy("Kept for the reply (tokens)"),
        required=False,
        min_value=1,
        max_value=MAX_TOKENS,
        help_text=gettext_lazy("Taken from the window; the rest is usable for the request."),
    )
    preset = forms.ChoiceField(
        label=gettext_lazy("Memory policy"),
        choices=[(name, PRESET_LABELS.get(name, name)) for name in PRESETS],
    )
    max_messages = forms.IntegerField(
        label=gettext_lazy("Most messages"),
        required=False,
        min_value=1,
        max_value=100_000,
        help_text=gettext_lazy(
            "More than this, and older ones leave. Tried sizes: 4 for short questions, 8–10 for "
            "refunds, 10–14 for recommendations, 12–16 for diagnosis."
        ),
    )
    keep_messages = forms.IntegerField(
        label=gettext_lazy("Messages kept verbatim"),
        required=False,
        min_value=1,
        max_value=100_000,
        help_text=gettext_lazy("The newest ones; fewer than the most messages, at least 2."),
    )
    trigger_percent = forms.IntegerField(
        label=gettext_lazy("Compact over (% of usable tokens)"),
        required=False,
        min_value=1,
        max_value=100,
        help_text=gettext_lazy("The other trigger, for few but long messages."),
    )
    summary_cap = forms.IntegerField(
        label=gettext_lazy("Longest summary (tokens)"),
        required=False,
        min_value=1,
        max_value=100_000,
        help_text=gettext_lazy("A longer one is compressed once more, then refused. At least 50."),
    )
    when = forms.ChoiceField(
        label=gettext_lazy("When to compact"),
        required=False,
        choices=[
            ("before_request", gettext_lazy("before the request")),
            ("after_reply", gettext_lazy("after the reply, in the background")),
        ],
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
        window = str(target_for(current).window)
        self.fields["window"].widget.attrs["placeholder"] = window
        self.fields["reply_reserve"].widget.attrs["placeholder"] = str(
            budget_for(conversation.window or target_for(current).window).reply_reserve
        )
        for name in PARAMETERS["summary"]:
            self._mark_parameter(name)

    def _mark_parameter(self, name: str) -> None:
        """Tell static/js/settings.js which policies have a parameter, and with what default."""
        attrs = self.fields[name].widget.attrs
        having = [one for one, preset in PRESETS.items() if name in PARAMETERS[preset.older]]
        attrs["data-presets"] = " ".join(having)
        for one in having:
            attrs[f"data-default-{one}"] = value = _parameter(PRESETS[one], name)
            if one == self["preset"].value() and name != "when":
                attrs["placeholder"] = value

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if not self.errors:
            self._check_budget(values)
            self._check_policy(values)
        return values

    def _check_budget(self, values: dict[str, Any]) -> None:
        window = values["window"] or target_for(values["model"]).window
        try:
            budget_for(window, values["reply_reserve"])
        except ValueError:
            words = _("The reply must leave room in the window: at most %(most)s.")
            self.add_error("reply_reserve", words % {"most": f"{window - 1:,}"})

    def _check_policy(self, values: dict[str, Any]) -> None:
        try:
            self.policy = policy_from(self.policy_data(values))
        except ValueError as error:
            rule = str(error)
            named = [name for name in PARAMETERS["summary"] if name in rule]
            named += ["trigger_percent"] if "share" in rule else []
            # The rule begins with the parameter that breaks it.
            field = min(named, key=rule.find) if named else "preset"
            self.add_error(field, _rule_in_words(rule, values))

    def policy_data(self, values: dict[str, Any]) -> dict[str, Any]:
        """The stored form of the policy: the preset and what differs from it."""
        preset = PRESETS[values["preset"]]
        data: dict[str, Any] = {"preset": preset.preset}
        for name in PARAMETERS[preset.older]:
            value = values.get(name)
            if value in (None, "", _parameter(preset, name)):
                continue
            if name == "trigger_percent":
                data["trigger_share"] = value / 100
                data["target_share"] = min(preset.target_share, value / 100 * 2 / 3)
            else:
                data[name] = value
        return data

    def changes(self) -> dict[str, Any]:
        """The columns of the conversation and their new values."""
        values = self.cleaned_data
        return {
            "title": " ".join(values["title"].split()) or self.conversation.title,
            "system_prompt": values["system_prompt"],
            "model": values["model"],
            "window": values["window"],
            "reply_reserve": values["reply_reserve"],
            "policy_data": self.policy_data(values),
        }


def _initial(conversation: Conversation) -> dict[str, Any]:
    """What is stored; a parameter as its policy has it stays empty, its default is shown there."""
    policy: Policy = conversation.policy
    preset = PRESETS[policy.preset]
    values = {name: _parameter(policy, name) for name in PARAMETERS[policy.older]}
    return {
        "title": conversation.title,
        "system_prompt": conversation.system_prompt,
        "model": conversation.model,
        "window": conversation.window,
        "reply_reserve": conversation.reply_reserve,
        "preset": policy.preset,
        "when": policy.when,
    } | {name: value for name, value in values.items() if value != _parameter(preset, name)}


def _parameter(policy: Policy, name: str) -> Any:
    """A parameter of a policy as its field has it."""
    if name == "trigger_percent":
        return policy.trigger_share and round(policy.trigger_share * 100)
    return getattr(policy, name)


def _rule_in_words(rule: str, values: dict[str, Any]) -> str:
    if rule.startswith("keep_messages (") and "smaller" in rule:
        words = _("Must be smaller than the most messages (%(most)s), or nothing would be folded.")
        return words % {
            "most": values.get("max_messages") or PRESETS[values["preset"]].max_messages
        }
    if "must be a whole number of at least" in rule:
        return _("At least %(least)s.") % {"least": rule.rsplit(" ", 1)[1]}
    return rule
