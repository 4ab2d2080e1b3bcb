"""Long conversations, written straight into the database."""

from typing import Any

from django.contrib.auth import get_user_model

from memory.models import Conversation, Message, Summary, Turn, TurnState

TEXT = "some words about the weather in the mountains and what to take along " * 2
# What the model of a chat writes: prose with some Markdown.
REPLY = (
    "**Layers** keep you warm:\n\n- a *thin* one against the skin\n- wool or fleece\n"
    "- a shell against `wind` and rain\n\nThe forecast for the mountains changes by the hour."
)


def fill(turns: int, policy: dict[str, Any], *, reply: str = TEXT) -> Conversation:
    """A conversation of `turns` finished turns, all but the last six messages folded."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    conversation = Conversation.objects.create(
        owner=owner,
        policy_data=policy,
        title=f"{turns} turns",
        system_prompt="You are a helpful assistant.",
        next_position=2 * turns + 1,
        next_turn=turns + 1,
    )
    rows = Turn.objects.bulk_create(
        [
            Turn(
                conversation=conversation,
                number=number,
                client_id=f"t{number}",
                state=TurnState.COMPLETE,
            )
            for number in range(1, turns + 1)
        ],
        batch_size=2_000,
    )
    Message.objects.bulk_create(
        [
            Message(
                conversation=conversation,
                turn=turn,
                position=2 * index + offset,
                role=role,
                content=text,
                tokens=32,
                encoding="o200k_base",
                counts=True,
            )
            for index, turn in enumerate(rows)
            for offset, role, text in ((1, "user", TEXT), (2, "assistant", reply))
        ],
        batch_size=2_000,
    )
    Summary.objects.create(
        conversation=conversation,
        version=1,
        kind=Summary.Kind.MODEL,
        text="The user asked about the weather in the mountains. " * 8,
        first_position=1,
        last_position=2 * turns - 6,
        messages_folded=6,
        tokens_before=900,
        tokens_after=90,
    )
    return conversation
