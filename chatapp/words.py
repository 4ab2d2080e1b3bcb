"""The codes of the memory and the provider, in the user's language."""

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory import store, versions
from memory.compaction import RENEWAL, Outcome
from memory.core.policy import Policy
from memory.models import Conversation, MemoryEvent, TurnState


def turn_error(code: str, detail: str) -> str:
    """Why a turn ended, in plain words and with what to do."""
    words = {
        "connect": _("The model's server cannot be reached. Is it running?"),
        "timeout": _("The model's server took too long to answer."),
        "auth": _("The model's server refused the key. Check LLM_API_KEY."),
        "rate-limit": _("The model's server asks for a pause (rate limit). Try again in a moment."),
        "quota": _("The account at the model's server has no credit left, or reached its limit."),
        "no-model": _("The model's server does not know this model or address."),
        "too-long": _("The model's server says that the request is too long for its window."),
        "server": _("The model's server reported an error."),
        "refused": _("The model's server refused the request."),
        "stream": _("The connection broke before the reply was complete."),
        "empty": _("The model answered with nothing, twice."),
        "internal": _("Something went wrong here. The log of the server says more."),
        "window-system_prompt": _("The system prompt alone is too large for the context window."),
        "window-tools": _("The tools alone are too large for the context window."),
        "window-turn": _("The steps of this turn are too large for the context window."),
        "window-message": _("This message is too large for the context window."),
        "window-history": _(
            "The whole conversation no longer fits into the context window, and this policy leaves "
            "nothing out. Choose another policy, or reset the memory."
        ),
    }
    text = words.get(code, "")
    tokens, _slash, usable = detail.partition("/")
    if usable and code.startswith("window-"):
        text += " " + _("(%(tokens)s tokens, %(usable)s are usable)") % {
            "tokens": number_format(tokens),
            "usable": number_format(usable),
        }
    elif detail and text:
        text += f" ({detail})"
    return text


def start_refused(error: Exception) -> tuple[str, str]:
    """The protocol's code and the words for why no turn was started."""
    match error:
        case store.Busy():
            return "busy", _("A reply is still being written; stop it or wait for its end.")
        case store.IdReused():
            return "id-reused", _("This id was used for another message.")
        case _:
            return "not-last", _("Only the last turn can be run again.")


def edit_refused(error: Exception) -> str:
    """Why an edited summary was not taken, and what to do."""
    if isinstance(error, versions.Stale):
        return _(
            "Another version became active while you were editing. Your text is kept here: look at "
            "the new version, then save again."
        )
    if str(error) == "empty":
        return _("The text is empty. To do without the summary, undo it or reset the memory.")
    return _("The text is too long: it may take at most half of the usable tokens.")


def state_reason(state: str, code: str, detail: str, *, kept: bool) -> str:
    """What an ended turn says about itself; empty for one that is complete. `kept` is whether there
    is anything that it wrote, thought or called."""
    if state == TurnState.FAILED:
        return turn_error(code, detail) or turn_error("internal", "")
    limits = {
        "max-steps": _("The turn reached its most steps, so no further tool was used."),
        "turn-tokens": _("The steps of this turn reached their most tokens."),
        "repeated-calls": _("The model repeated a call that had failed, again and again."),
    }
    if state == TurnState.LENGTH and code in limits:
        more = _("What the tools gave is kept; Continue goes on from there.")
        return f"{limits[code]} {more}"
    if not kept and state == TurnState.INTERRUPTED:
        return _("Interrupted: the server was restarted.")
    words = {
        TurnState.STOPPED: _("Stopped by you. What was written so far is kept.") if kept else "",
        TurnState.LENGTH: _("Cut off at the longest reply that the server allows."),
        TurnState.FILTERED: _("The provider's content filter ended the reply."),
        TurnState.INTERRUPTED: _("Interrupted: the server was restarted. The text so far is kept."),
    }
    return str(words.get(TurnState(state), ""))


def failure(code: str) -> str:
    """Why a summariser's answer was not taken."""
    words = {
        "empty": _("the summariser answered with nothing"),
        "refusal": _("the summariser refused"),
        "error": _("the summariser answered with an error text"),
        "remark": _("the summariser talked about the task"),
        "markup": _("the summariser answered with a tool call or marks"),
        "reasoning": _("the summariser only thought aloud"),
        "cut": _("the summary was cut off by the length limit"),
        "filtered": _("the summary was filtered by the provider"),
        "over-cap": _("the summary was longer than its cap"),
        "not-shorter": _("the summary was not shorter than what it replaces"),
        "too-short": _("the answer was too short to be a summary"),
        "archive-not-shorter": _("not even the archive was shorter than the messages"),
        "timeout": _("the summariser took too long"),
        "out-of-time": _("there was no time left"),
        "bad-answer": _("the summariser's answer had no readable form"),
    }
    return str(words.get(code) or turn_error(code, "") or code)


def compaction_notice(event: MemoryEvent | None) -> str:
    """What went wrong in the last compaction, in words; empty if nothing did."""
    if event is None or not event.detail.get("failures"):
        return ""
    reasons = "; ".join(dict.fromkeys(failure(code) for code in event.detail["failures"]))
    if event.kind == MemoryEvent.Kind.COMPACTION_FAILED and event.detail["trigger"] == RENEWAL:
        text = _("The raw text is still archived: no summary could be written (%(reasons)s).")
    elif event.kind == MemoryEvent.Kind.COMPACTION_FAILED:
        text = _("The last compaction changed nothing: %(reasons)s. The old summary and all "
                 "messages stay.")  # fmt: skip
    elif event.summary and event.summary.kind == "archive":
        text = _("The summary could not be written (%(reasons)s), so the raw text was archived.")
    else:
        text = _("The summary was written after failed tries (%(reasons)s).")
    return text % {"reasons": reasons}


def nothing_folded(outcome: Outcome, policy: Policy) -> str:
    """Why the owner's "compact now" changed nothing; empty if an event says what came of it."""
    if outcome.event is not None:
        return ""
    words = {
        "keep": _("Nothing was folded: this policy sends everything and never compacts."),
        "leave-out": _(
            "Nothing was folded: this policy leaves older messages out and never folds them."
        ),
        "no-messages": _(
            "Nothing was folded: the context holds no messages before the current turn."
        ),
        "within-kept": _("Nothing was folded: this policy keeps all that is left verbatim."),
        "superseded": _("Nothing was folded: the memory changed meanwhile. Try again."),
        "out-of-time": _("Another compaction is still running; its result will be shown here."),
    }
    if outcome.reason == "within-kept" and policy.keep_messages is not None:
        text = _(
            "Nothing was folded: all that is not folded yet is within the last %(keep)s messages, "
            "which this policy keeps verbatim."
        )
        return text % {"keep": policy.keep_messages}
    codes = (outcome.reason, outcome.status, *outcome.failures)
    return str(next((words[code] for code in codes if code in words), ""))


def forecast(count: int) -> str:
    """What the next message will set off."""
    text = ngettext(
        "Your next message will fold %(count)s message into the summary first.",
        "Your next message will fold %(count)s messages into the summary first.",
        count,
    )
    return text % {"count": count}


def undo_label(event: MemoryEvent | None) -> str:
    """What an undo would take back; empty if there is nothing."""
    if event is None:
        return ""
    if event.kind == MemoryEvent.Kind.RESET:
        return _("the reset")
    if event.kind == MemoryEvent.Kind.EDIT:
        return _("the edit")
    if event.kind == MemoryEvent.Kind.RESTORE:
        return _("the restored version")
    version = event.summary.version if event.summary else ""
    return _("summary v%(version)s") % {"version": version}


def policy_name(conversation: Conversation) -> str:
    return str(conversation.policy_data.get("preset", "hybrid"))
