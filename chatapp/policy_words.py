"""What a policy does, and why a part of a request is in it, in the user's language."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.core.budget import Budget
from memory.core.limits import limits, token_trigger
from memory.core.policy import Policy
from memory.core.window import Segment


def policy_text(policy: Policy, budget: Budget) -> str:
    """What a policy does, in a sentence."""
    if policy.older == "keep":
        return _("Everything is sent, until it no longer fits.")
    if policy.older == "leave-out":
        if policy.trigger_tokens is None:
            text = _("The last %(keep)s messages are sent, older ones are left out.")
        else:
            text = _(
                "The last %(keep)s messages are sent, up to %(tokens)s tokens; older ones are left "
                "out."
            )
        tokens = number_format(token_trigger(policy, budget) or budget.usable)
        return text % {"keep": policy.keep_messages, "tokens": tokens}
    text = _("With %(triggers)s, older messages are folded into a summary; %(kept)s.")
    text %= {"triggers": triggers(policy, budget), "kept": _kept(policy, budget)}
    if policy.rungs:
        text += " " + _("Old tool arguments and results are shortened before that.")
    return text


def triggers(policy: Policy, budget: Budget) -> str:
    """What makes a policy compact: "more than 12 messages or more than 1,152 tokens"."""
    rules = limits(policy, budget)
    parts = []
    if rules.messages is not None:
        parts.append(_("more than %(count)s messages") % {"count": rules.messages})
    if policy.max_turns is not None:
        parts.append(_("more than %(count)s turns") % {"count": policy.max_turns})
    if policy.every_turns is not None:
        text = ngettext(
            "%(count)s turn since the last compaction",
            "%(count)s turns since the last compaction",
            policy.every_turns,
        )
        parts.append(text % {"count": policy.every_turns})
    tokens = budget.usable if rules.tokens is None else rules.tokens
    parts.append(_("more than %(count)s tokens") % {"count": number_format(tokens)})
    return _(" or ").join(parts)


def _kept(policy: Policy, budget: Budget) -> str:
    """What stays verbatim when a policy folds."""
    rules = limits(policy, budget)
    if policy.fold_turns is not None:
        text = ngettext(
            "the oldest turn at a time",
            "the oldest %(count)s turns at a time",
            policy.fold_turns,
        )
        return text % {"count": policy.fold_turns}
    if rules.keep is not None:
        text = _("the newest stay, up to %(count)s tokens") % {"count": number_format(rules.keep)}
    elif rules.keep_messages is not None:
        text = _("the last %(count)s stay") % {"count": rules.keep_messages}
    else:
        target = int(rules.target or budget.usable)
        text = _("the newest stay, %(count)s tokens in all") % {"count": number_format(target)}
    if policy.keep_turns:
        more = _("and at least %(count)s turns where they fit")
        text += " " + more % {"count": policy.keep_turns}
    return text


def tools_label(count: int) -> str:
    """What the schemas of so many tools are."""
    return ngettext("%(count)s tool", "%(count)s tools", count) % {"count": count}


def tools_reason() -> str:
    """Why the schemas of the tools are in a request."""
    return _("what the model may call")


def segment_label(segment: Segment, tool: str = "") -> str:
    """What a segment is; `tool` is the name of the tool whose result it is."""
    if segment.kind == "system":
        return _("System prompt")
    if segment.kind == "tools":
        return _("Note on the tools")
    if segment.kind == "summary":
        return _("Summary v%(version)s") % {"version": segment.version}
    if tool:
        return _("Result of %(tool)s") % {"tool": tool}
    if calls := segment.message.tool_calls:
        text = ngettext("Call of %(tool)s", "%(count)s calls", len(calls))
        return text % {"tool": calls[0].name, "count": len(calls)}
    return {"user": _("You"), "assistant": _("Assistant"), "tool": _("Tool result")}[
        segment.message.role
    ]


def segment_reason(segment: Segment, policy: Policy) -> str:
    """Why a segment is in the window."""
    words = {
        "system-prompt": _("always first"),
        "folded": _("stands for messages %(first)s–%(last)s")
        % {"first": segment.first, "last": segment.last},
        "everything": _("this policy sends everything"),
        "within-last": _("one of the last %(count)s messages") % {"count": policy.keep_messages},
        "not-folded": _("not folded yet"),
        "current-turn": _("current turn, never folded"),
        "working-memory": _("working memory, until the turn ends"),
        "tools-offered": _("beside the system prompt"),
    }
    text = str(words.get(segment.why, segment.why))
    if segment.made and segment.kind == "working":
        text += " · " + _("made up: there is no result yet")
    elif segment.made:
        text += " · " + _("made up: the call has no result")
    if segment.whole:
        text += " · " + _("shortened from %(tokens)s tokens") % {
            "tokens": number_format(segment.whole)
        }
    return text


def left_out(reason: str) -> str:
    """Why messages of the context are not in the window."""
    words = {
        "outside-window": _("older than the window"),
        "omitted": _("left out of this request: no room"),
        "orphan": _("results without their call"),
        "no-room": _("parts of the memory: no room"),
    }
    return str(words.get(reason, reason))


def literal_kind(kind: str) -> str:
    """What a literal is, in the plural."""
    words = {
        "id": _("ids"),
        "code": _("codes"),
        "amount": _("amounts"),
        "number": _("numbers"),
        "date": _("dates"),
        "time": _("times"),
        "email": _("e-mail addresses"),
        "url": _("addresses on the web"),
        "phone": _("phone numbers"),
        "flight": _("flights"),
        "name": _("names"),
        "address": _("postal addresses"),
    }
    return str(words.get(kind, kind))
