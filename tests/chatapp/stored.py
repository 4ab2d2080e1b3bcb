"""A conversation driven through the store, as a runner would: no provider, no event loop."""

from dataclasses import replace
from typing import Any

from django.contrib.auth import get_user_model

from chatapp.provider import target_for, target_of
from memory import service, snapshots, store, versions
from memory.core.messages import Message, ToolCall
from memory.core.tokens import message_tokens
from memory.core.wire import body_hash
from memory.encodings import counter_for
from memory.models import Conversation, MemoryEvent, Request, Summary, Turn, TurnState
from memory.rows import Written, append


class Talk:
    """`sent` are the requests so far with the bodies that left, in order."""

    def __init__(self, policy: dict[str, Any], **fields: Any) -> None:
        owner, _ = get_user_model().objects.get_or_create(username="ada")
        self.conversation = store.create_conversation(
            owner=owner, policy=policy, system_prompt="Be brief."
        )
        Conversation.objects.filter(pk=self.conversation.pk).update(**fields)
        self.counter = counter_for(target_for("").model)
        self.turns = 0
        self.sent: list[tuple[Request, dict[str, Any]]] = []

    def fresh(self) -> Conversation:
        return Conversation.objects.get(pk=self.conversation.pk)

    def assembled(self) -> service.Assembled:
        target = target_of(self.fresh())
        return service.assemble(conversation_id=self.conversation.pk, target=target)

    def body(self) -> Any:
        return self.assembled().body

    def run(
        self,
        text: str | None,
        *,
        replaces: int | None = None,
        reply: str | None = "ok",
        results: tuple[str, ...] = (),
    ) -> Turn:
        """A turn: with `results` its first step calls so many tools at once. One that does not fit
        fails before anything is sent."""
        self.turns += 1
        turn, _ = store.start_turn(
            conversation_id=self.conversation.pk,
            client_id=str(self.turns),
            message=None if text is None else self.counted(Message("user", text)),
            encoding=self.counter.name,
            owner="",
            replaces=replaces,
        )
        fits = self.step(turn)
        if fits and results:
            self.call(turn, results)
            fits = self.step(turn)
        said = Written(self.counted(Message("assistant", reply))) if reply and fits else None
        store.finish_turn(
            turn_id=turn.pk,
            state=TurnState.COMPLETE if said else TurnState.FAILED,
            reply=said,
            encoding=self.counter.name,
        )
        return turn

    def counted(self, message: Message) -> Message:
        return replace(message, tokens=message_tokens(message, self.counter))

    def call(self, turn: Turn, results: tuple[str, ...]) -> None:
        """Store a step with calls and their results, as the transcript has them."""
        calls = tuple(
            ToolCall(f"call_{index}", "look_up", '{"what": "rows"}')
            for index in range(len(results))
        )
        messages = [Message("assistant", "", tool_calls=calls)]
        messages += [
            Message("tool", text, tool_call_id=one.id)
            for one, text in zip(calls, results, strict=True)
        ]
        conversation = self.fresh()
        for message in messages:
            append(conversation, turn, [Written(self.counted(message))], self.counter.name)

    def step(self, turn: Turn) -> bool:
        """Send the request as it stands now; False if it does not fit."""
        now = self.assembled()
        if now.window is None or now.body is None:
            return False
        request = snapshots.take(
            conversation_id=self.conversation.pk,
            turn=turn,
            window=now.window,
            options=dict(target_of(self.fresh()).options),
            policy=now.policy,
            encoding=now.counter.name,
        )
        snapshots.mark_sent(request_id=request.pk, sha256=body_hash(now.body))
        self.sent.append((request, now.body))
        return True

    def fold(self, groups: int, **draft: Any) -> Summary | None:
        """Commit a summary of the next `groups` groups, as the engine would; None where there is
        nothing to fold."""
        now = self.assembled()
        head = now.context.prior[:groups]
        if not head or now.policy.older != "summary":
            return None
        old = now.context.summary
        values: dict[str, Any] = {
            "kind": "model",
            "text": f"Folded up to {head[-1].last}.",
            "first": old.first if old else head[0].first,
            "last": head[-1].last,
            "folded": len(head),
            "tokens_before": 50,
            "tokens_after": 9,
            "parent_version": old.version if old else None,
        }
        committed = versions.commit_summary(
            conversation_id=self.conversation.pk,
            revision=self.fresh().memory_revision,
            draft=versions.Draft(**(values | draft)),
        )
        assert committed is not None
        return committed[0]

    def again(self) -> None:
        """Run the last turn again, if there is one."""
        last = self.conversation.turns.filter(active=True).order_by("-number").first()
        if last is not None:
            self.run(None, replaces=last.number)

    def reset(self) -> MemoryEvent | None:
        return service.reset(conversation_id=self.conversation.pk)

    def undo(self) -> None:
        service.undo(conversation_id=self.conversation.pk)
