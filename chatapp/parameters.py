"""The parameters of the policies as fields of a form: empty means what the policy itself has."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.core.policy import Policy
from memory.core.presets import DEFAULT, PARAMETERS, PRESETS, policy_from

# The largest parameter of a policy, in messages, turns or tokens.
MOST = 1_000_000
# Shares, which people read as per cent.
SHARES = ("trigger_share", "keep_share", "summary_ratio")

# What a policy is called where it is chosen; its name says it in the code and in the header.
PRESET_LABELS = {
    "full": gettext_lazy("full: everything is sent"),
    "window": gettext_lazy("window: only the newest messages"),
    "double-window": gettext_lazy("double-window: the newest messages, by number and tokens"),
    "summary": gettext_lazy("summary: all but a few messages become a summary"),
    "hybrid": gettext_lazy("hybrid: older messages become a summary"),
    "hybrid-tokens": gettext_lazy("hybrid-tokens: the same, by tokens, shortening first"),
    "rounds": gettext_lazy("rounds: the oldest turns move into the summary, two at a time"),
    "consolidator": gettext_lazy("consolidator: half the window, then down to a third"),
    "harness": gettext_lazy("harness: for agents; shorten, keep the raw text, summarise"),
    "layered": gettext_lazy("layered: newest messages, summary, long-term memory"),
}

# What a set of tools is called where it is switched on.
TOOLSET_LABELS = {
    "shop": gettext_lazy("Demo shop: orders, parcels, refunds, products"),
    "memory": gettext_lazy("Memory: search and read earlier messages"),
}

CHOICES: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "when": (
        ("before_request", gettext_lazy("before the request")),
        ("after_reply", gettext_lazy("after the reply, in the background")),
    ),
    "template": (
        ("dialogue", gettext_lazy("dialogue: who said what")),
        ("service", gettext_lazy("service: orders, amounts, results")),
        ("task", gettext_lazy("task: goal, decisions, open steps")),
    ),
    "rungs": (("1", gettext_lazy("yes")), ("0", gettext_lazy("no"))),
    "offload": (("1", gettext_lazy("yes")), ("0", gettext_lazy("no"))),
}


def _whole(label: Any, help_text: Any, *, least: int = 1, most: int = MOST) -> forms.IntegerField:
    """A field for a whole number that may stay empty."""
    return forms.IntegerField(
        label=label, help_text=help_text, required=False, min_value=least, max_value=most
    )


def _choice(name: str, label: Any, help_text: Any = "") -> forms.ChoiceField:
    choices = [("", gettext_lazy("as the policy has it")), *CHOICES[name]]
    return forms.ChoiceField(label=label, help_text=help_text, required=False, choices=choices)


# In the order in which they are shown.
FIELDS: Mapping[str, Callable[[], forms.Field]] = {
    "max_messages": lambda: _whole(
        gettext_lazy("Most messages"),
        gettext_lazy(
            "More than this, and older ones leave. Tried sizes: 4 for short questions, 8–10 for "
            "refunds, 10–14 for recommendations, 12–16 for diagnosis."
        ),
    ),
    "keep_messages": lambda: _whole(
        gettext_lazy("Messages kept verbatim"),
        gettext_lazy("The newest ones; fewer than the most messages, at least 2."),
    ),
    "max_turns": lambda: _whole(
        gettext_lazy("Most turns"),
        gettext_lazy("With more, the oldest ones move into the summary."),
    ),
    "fold_turns": lambda: _whole(
        gettext_lazy("Turns folded at once"), gettext_lazy("Fewer than the most turns.")
    ),
    "trigger_share": lambda: _whole(
        gettext_lazy("Compact over (% of usable tokens)"),
        gettext_lazy("For few but long messages. The consolidator's is a share of the window."),
        most=100,
    ),
    "trigger_tokens": lambda: _whole(
        gettext_lazy("Most tokens"), gettext_lazy("More than this, and older messages leave.")
    ),
    "keep_share": lambda: _whole(
        gettext_lazy("Kept verbatim (% of usable tokens)"),
        gettext_lazy("The newest messages up to this; at most half of what compacts."),
        most=100,
    ),
    "keep_turns": lambda: _whole(
        gettext_lazy("Turns kept verbatim"),
        gettext_lazy("At least so many, where they fit."),
        least=0,
    ),
    "keep_least": lambda: _whole(
        gettext_lazy("Kept verbatim, at least (tokens)"),
        gettext_lazy("A quarter of a large window is kept, but not less than this."),
        least=0,
    ),
    "keep_most": lambda: _whole(
        gettext_lazy("Kept verbatim, at most (tokens)"), gettext_lazy("And not more than this.")
    ),
    "rungs": lambda: _choice(
        "rungs",
        gettext_lazy("Shorten first"),
        gettext_lazy("Old tool arguments and results are cut before any summary is made."),
    ),
    "summary_cap": lambda: _whole(
        gettext_lazy("Longest summary (tokens)"),
        gettext_lazy("A longer one is compressed once more, then refused. At least 50."),
    ),
    "summary_ratio": lambda: _whole(
        gettext_lazy("Longest summary (% of what it replaces)"), "", most=100
    ),
    "template": lambda: _choice("template", gettext_lazy("What a summary looks for")),
    "offload": lambda: _choice(
        "offload",
        gettext_lazy("Keep the raw messages in a file"),
        gettext_lazy("The summary names it. It is deleted with the conversation."),
    ),
    "every_turns": lambda: _whole(
        gettext_lazy("Compact every so many turns"),
        gettext_lazy("Besides the other triggers. Empty: not by time."),
    ),
    "when": lambda: _choice("when", gettext_lazy("When to compact")),
}


def shown(policy: Policy, name: str) -> Any:
    """A parameter of a policy as its field has it; None where the policy has no such rule."""
    value = getattr(policy, name)
    if name in SHARES:
        return value and round(value * 100)
    return str(int(value)) if isinstance(value, bool) else value


def stored(name: str, value: Any) -> Any:
    """A field's value as the policy has it."""
    if name in SHARES:
        return value / 100
    return value == "1" if name in ("rungs", "offload") else value


def default_words(policy: Policy, name: str) -> str:
    """What a policy itself has, to be shown where its field is empty."""
    value = shown(policy, name)
    if name in CHOICES:
        return _("as the policy has it: %(value)s") % {"value": dict(CHOICES[name])[value]}
    return "" if value is None else str(value)


def toolset_words(names: Iterable[str]) -> str:
    """Sets of tools by their labels; empty for none."""
    return "; ".join(str(TOOLSET_LABELS.get(name, name)) for name in names)


def in_words(data: Mapping[str, Any]) -> str:
    """A stored policy: its name, and each parameter that differs from it."""
    parts = [str(data.get("preset", DEFAULT))]
    for name, value in data.items():
        if name in FIELDS:
            words = round(value * 100) if name in SHARES else value
            if name in CHOICES:
                key = str(int(value)) if isinstance(value, bool) else value
                words = dict(CHOICES[name]).get(key, value)
            elif isinstance(words, int):
                words = number_format(words)
            parts.append(f"{FIELDS[name]().label} {words}")
    return " · ".join(parts)


def policy_data(
    preset: Policy, values: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """The stored form of a policy: the preset and what differs from it.

    `before` is what was stored. Where the preset stays, what has no field stays too, and what a
    field shows rounded is not changed by saving it as it is.
    """
    names = PARAMETERS[preset.preset]
    data: dict[str, Any] = {"preset": preset.preset}
    same = before.get("preset", DEFAULT) == preset.preset
    if same:
        data |= {name: value for name, value in before.items() if name not in names}
    for name in names:
        value = values.get(name)
        if value in (None, "", shown(preset, name)):
            continue
        kept = same and name in before and shown(policy_from(before), name) == value
        data[name] = before[name] if kept else stored(name, value)
    return data


def differing(policy: Policy) -> dict[str, Any]:
    """The parameters of a policy that are not those of its preset, as their fields have them."""
    preset = PRESETS[policy.preset]
    values = {name: shown(policy, name) for name in PARAMETERS[policy.preset]}
    return {name: value for name, value in values.items() if value != shown(preset, name)}


def rule_in_words(rule: str, preset: Policy, values: Mapping[str, Any]) -> str:
    """A rule of the policy that was broken, in the user's language where it is a common one."""
    if "must be smaller than max_" in rule:
        name = "max_messages" if "max_messages" in rule else "max_turns"
        most = values.get(name) or getattr(preset, name)
        if name == "max_turns":
            return _("Must be smaller than the most turns (%(most)s).") % {"most": most}
        words = _("Must be smaller than the most messages (%(most)s), or nothing would be folded.")
        return words % {"most": most}
    if "must be at most keep_most" in rule:
        return _("Must not be more than what is kept at most.")
    if "must be a whole number of at least" in rule:
        return _("At least %(least)s.") % {"least": rule.rsplit(" ", 1)[1]}
    return rule
