"""The raw messages of compactions in a file: what is in it, who names it, and when it goes."""

import json
import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from memory import offload, versions
from memory.fork import fork
from memory.models import Conversation
from tests.chatapp.compacting import GOOD, Model, archived, compact, newest, question, system_sent
from tests.chatapp.helpers import LONG
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)

POLICY = {"preset": "harness", "keep_least": 400, "keep_most": 400}


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.OFFLOAD_DIR = tmp_path / "offload"
    return tmp_path / "offload"


@pytest.fixture
def talk() -> Talk:
    """Eight turns of about 155 tokens, of which the policy keeps two."""
    made = Talk(POLICY, window=2_400)
    say(made, 8)
    return made


def say(talk: Talk, turns: int) -> None:
    for _ in range(turns):
        talk.run(question(talk.turns + 1), reply=LONG)


def fold(talk: Talk) -> int:
    """Compact; the last position that the new version stands for."""
    assert compact(talk, Model("m", GOOD)).status == "committed"
    return newest(talk).last_position


def rows(talk: Talk) -> list[dict[str, Any]]:
    text = offload.path_of(talk.conversation.pk).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def kept(talk: Talk) -> list[int]:
    return [row["position"] for row in rows(talk)]


def test_the_file_has_each_folded_message_as_it_was_said(talk: Talk) -> None:
    last = fold(talk)
    assert last == 12
    assert kept(talk) == list(range(1, last + 1))
    first, second = rows(talk)[:2]
    assert first == {"position": 1, "turn": 1, "role": "user", "content": question(1)}
    assert second == {"position": 2, "turn": 1, "role": "assistant", "content": LONG}


def test_calls_and_whole_results_are_kept_although_the_window_had_them_shortened() -> None:
    talk = Talk(POLICY, window=2_400)
    big = "row 7 is blue; " * 150
    talk.run("Look at the table.", results=(big, "你好"))
    say(talk, 6)
    fold(talk)
    _, call, table, hello = rows(talk)[:4]
    assert call["tool_calls"][0]["function"]["name"] == "look_up"
    assert (table["role"], table["content"], table["tool_call_id"]) == ("tool", big, "call_0")
    assert hello["content"] == "你好"


def test_each_position_is_there_once_after_undo_and_another_fold(talk: Talk) -> None:
    fold(talk)
    talk.undo()
    say(talk, 2)
    second = fold(talk)
    assert kept(talk) == list(range(1, second + 1))
    say(talk, 8)
    third = fold(talk)
    assert third > second
    assert kept(talk) == list(range(1, third + 1))


def test_a_reset_that_was_taken_back_leaves_neither_a_gap_nor_doubles(talk: Talk) -> None:
    assert fold(talk) == 12
    talk.reset()
    say(talk, 6)
    assert fold(talk) == 24
    assert kept(talk) == [*range(1, 13), *range(17, 25)]
    talk.undo()
    talk.undo()
    say(talk, 1)
    last = fold(talk)
    assert last > 24
    assert sorted(kept(talk)) == list(range(1, last + 1))


def test_a_replaced_turn_is_no_part_of_what_the_summary_stands_for(talk: Talk) -> None:
    talk.again()
    say(talk, 6)
    last = fold(talk)
    assert last > 18
    assert kept(talk) == [*range(1, 15), *range(17, last + 1)]


def test_the_file_has_also_what_an_earlier_policy_folded_without_one(talk: Talk) -> None:
    change = versions.change_settings
    talk_id = talk.conversation.pk
    policy = talk.fresh().policy_data
    change(conversation_id=talk_id, changes={"policy_data": {**policy, "offload": False}})
    first = fold(talk)
    assert newest(talk).file == ""
    assert not offload.path_of(talk_id).exists()
    assert ".jsonl" not in system_sent(talk)
    change(conversation_id=talk_id, changes={"policy_data": policy})
    say(talk, 6)
    assert fold(talk) > first
    assert kept(talk) == list(range(1, newest(talk).last_position + 1))


def test_the_summary_names_the_file_in_the_request_and_in_its_tab(
    talk: Talk, client: Client
) -> None:
    fold(talk)
    name = f"{talk.conversation.pk}.jsonl"
    assert newest(talk).file == name
    assert f"The summarised messages are kept word for word in {name}." in system_sent(talk)
    client.force_login(talk.conversation.owner)
    html = client.get(reverse("panel_summary", args=[talk.conversation.pk])).text
    assert f"The raw messages are kept in {name}." in html


def test_an_archive_names_it_too(talk: Talk) -> None:
    archived(talk)
    assert newest(talk).file
    assert kept(talk)[0] == 1


def test_a_fork_does_not_name_the_file_of_its_original(talk: Talk) -> None:
    last = fold(talk)
    copy = fork(conversation_id=talk.conversation.pk, position=16, title="copy")
    summary = copy.active_summary()
    assert summary is not None
    assert (summary.last_position, summary.file) == (last, "")


# Where it does not work


SPOILT = {
    "no JSON": b"\xff{\n",
    "no position": b'{"role": "user"}\n',
    "no object": b"7\n",
}


@pytest.mark.parametrize("content", SPOILT.values(), ids=SPOILT.keys())
def test_a_file_that_cannot_be_read_is_left_alone_and_not_named(
    content: bytes, talk: Talk, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.mkdir()
    path = offload.path_of(talk.conversation.pk)
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING, "memory.offload"):
        fold(talk)
    assert newest(talk).file == ""
    assert GOOD in system_sent(talk)
    assert ".jsonl" not in system_sent(talk)
    assert path.read_bytes() == content
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_where_nothing_can_be_written_the_fold_goes_on_without_a_file(
    talk: Talk, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "memory.offload"):
        fold(talk)
    assert newest(talk).file == ""
    assert [record.levelname for record in caplog.records] == ["WARNING"]


# It goes with its conversation


def test_deleting_the_conversation_deletes_its_file_and_no_other(
    client: Client, user: Any, make_conversation: Any, folder: Path
) -> None:
    mine, other = make_conversation(), make_conversation()
    for one in (mine, other):
        assert offload.append(one.pk, [{"position": 1}]) == f"{one.pk}.jsonl"
    client.force_login(user)
    response = client.post(reverse("conversation_delete", args=[mine.pk]))
    assert response.status_code == 302
    assert list(Conversation.objects.all()) == [other]
    assert [file.name for file in folder.iterdir()] == [f"{other.pk}.jsonl"]
    # One that never had a file can be deleted as well.
    offload.path_of(other.pk).unlink()
    client.post(reverse("conversation_delete", args=[other.pk]))
    assert not Conversation.objects.exists()


def test_deleting_the_owner_deletes_the_files_too(talk: Talk) -> None:
    fold(talk)
    assert rows(talk)
    talk.conversation.owner.delete()
    assert not offload.path_of(talk.conversation.pk).exists()


def test_a_line_that_broke_off_is_written_again(settings: Any, tmp_path: Path) -> None:
    settings.OFFLOAD_DIR = tmp_path
    identity = uuid4()
    rows = [{"position": number, "content": "x"} for number in (1, 2)]
    offload.append(identity, rows)
    path = offload.path_of(identity)
    path.write_bytes(path.read_bytes()[:-5])
    assert offload.kept(identity) == {1}
    offload.append(identity, rows[1:])
    assert offload.kept(identity) == {1, 2}
