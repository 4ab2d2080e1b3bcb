"""English and Chinese: the catalogue is complete, and pages and sockets speak it."""

import ast
import json
import re
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.core.management import CommandError, call_command
from django.http import HttpRequest
from django.test import AsyncClient, Client
from django.test.utils import override_settings
from django.urls import reverse
from django.utils import translation
from django.views.defaults import server_error

from chatapp.asgi import application
from chatapp.management.commands import catalogue
from memory import service
from memory.models import Conversation
from tests.chatapp.helpers import say

ROOT = Path(__file__).parents[2]
CHINESE = {"headers": {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}}
# What is the same in both languages: names, keys and units.
SAME = {"Palimpsest", "EN", "README", "JSON", "token", "sha", "ReAct", "hybrid", "Esc"}


def copy_to(folder: Path) -> Path:
    file = folder / "zh_Hans/LC_MESSAGES/django.po"
    file.parent.mkdir(parents=True)
    shutil.copy(ROOT / "locale/zh_Hans/LC_MESSAGES/django.po", file)
    return file


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The Chinese catalogue, compiled and in use whether or not `make setup` ran."""
    folder = tmp_path_factory.mktemp("locale")
    copy_to(folder)
    with override_settings(LOCALE_PATHS=[folder]):
        call_command("catalogue")
        yield


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A page leaves its language behind; the next test does not find it."""
    with translation.override("en"):
        yield


@pytest.fixture
def po(settings: Any, tmp_path: Path) -> Path:
    """A copy of the Chinese catalogue that a test may spoil."""
    settings.LOCALE_PATHS = [tmp_path]
    return copy_to(tmp_path)


class Words(HTMLParser):
    """The words of the interface on a page, shown or read out.

    Not code, keys and names (bdi), and not what people and models wrote (dir="auto").
    """

    silent = ("code", "pre", "kbd", "bdi")
    spoken = ("title", "aria-label", "placeholder")
    void = ("input", "link", "meta")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[tuple[str, bool]] = [("", False)]  # tag, silent
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        silent = tag in self.silent or given.get("dir") == "auto"
        if tag not in self.void:
            self.open.append((tag, silent or self.open[-1][1]))
        # The switch names each language in itself; the title of a code is the whole code.
        if tag == "html" or ("lang" not in given and tag != "code"):
            strings = given.get("id") == "strings"
            for name, value in given.items():
                if name in self.spoken or (strings and name.startswith("data-")):
                    self.texts.append(re.sub(r"\{\w+\}", "", value))

    def handle_endtag(self, tag: str) -> None:
        while self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self.open[-1][1]:
            self.texts.append(data)


def assert_chinese(html: str, *expected: str) -> None:
    """The page is marked as Chinese, says what is expected, and has no English words."""
    assert '<html lang="zh-hans" dir="ltr"' in html
    texts = Words(html).texts
    said = " ".join(" ".join(texts).split())
    assert [text for text in expected if text not in said] == []
    assert set(re.findall(r"[A-Za-z]{2,}", said)) - SAME == set()


@pytest.fixture
def client(user: Any) -> Client:
    signed_in = Client(**CHINESE)
    signed_in.force_login(user)
    return signed_in


# The catalogue


def test_the_catalogue_is_complete_and_up_to_date(po: Path) -> None:
    before = po.read_text()
    call_command("catalogue", check=True)
    call_command("catalogue", update=True)
    assert po.read_text() == before, "run: make catalogue"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"发送"', '""', "untranslated: 'Send'"),
        ('msgid "Send"\n', 'msgid "Sent off"\n', "missing: 'Send'"),
        ('msgid "Send"\n', '#, fuzzy\nmsgid "Send"\n', "fuzzy: 'Send'"),
        ('"发送"', '"“发\\"送”"', "a plain quotation mark, which may end an attribute: 'Send'"),
        ('"第 %(number)s 轮"', '"第 %(n)s 轮"', "other placeholders: 'Turn %(number)s'"),
        ('"{seconds} 秒"', '"秒"', "other placeholders: '{seconds} s'"),
    ],
)
def test_the_check_names_what_is_wrong(po: Path, old: str, new: str, fault: str) -> None:
    text = po.read_text()
    assert text.count(old) == 1
    po.write_text(text.replace(old, new))
    with pytest.raises(CommandError, match=re.escape(f"zh_Hans: {fault}")):
        call_command("catalogue", check=True)


def test_an_update_drops_what_is_gone_and_guesses_nothing(po: Path) -> None:
    text = po.read_text()
    po.write_text(text.replace('msgid "Send"\n', 'msgid "Sent"\n'))
    call_command("catalogue", update=True)
    assert po.read_text() == text.replace('"发送"', '""')


def test_messages_are_found_in_templates_and_python(settings: Any, tmp_path: Path) -> None:
    settings.BASE_DIR = tmp_path
    files = {
        "templates/a.html": """{% load i18n %}
            <p title="{% translate 'Don’t' context "verb" %}">{{ title|default:_("None") }}
              {# Translators: what it is about #}
              {% translate "100%" %}</p>
          {% blocktranslate trimmed count n=2 context "x" with a=b %}
            {{ n }} apple of {{ a }}
          {% plural %}
            {{ n }} apples of {{ a }}
          {% endblocktranslate %}""",
        "chatapp/a.py": 'a = pgettext_lazy("c", "one" " two")\nb = ngettext("cat", "cats", 2)\n',
        "memory/b/c.py": 'class A:\n    a = _("lazy")\n    b = npgettext("d", "dog", "dogs", 1)\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {(message.context, message.id) for message in catalogue.extracted() if message.id}
    assert found == {
        ("verb", "Don’t"),
        (None, "None"),
        (None, "100%%"),
        ("x", ("%(n)s apple of %(a)s", "%(n)s apples of %(a)s")),
        ("c", "one two"),
        (None, ("cat", "cats")),
        (None, "lazy"),
        ("d", ("dog", "dogs")),
    }


def test_words_made_at_import_are_lazy() -> None:
    """A word translated while a module is imported would stay in the server's language."""
    eager = []
    for path in [*ROOT.glob("chatapp/**/*.py"), *ROOT.glob("memory/**/*.py")]:
        tree = ast.parse(path.read_text())
        names = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
            for name in node.names
            if name.name in ("gettext", "ngettext", "pgettext", "npgettext")
        }
        calls = [node.func for node in at_import(tree) if isinstance(node, ast.Call)]
        eager += [f"{path}:{one.lineno}" for one in calls if getattr(one, "id", None) in names]
    assert eager == []


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: everything but the bodies of its functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import(child)


# Pages


@pytest.mark.django_db
def test_the_sign_in_page_is_chinese(settings: Any) -> None:
    settings.DEBUG = True  # with the button for the local user
    response = Client(**CHINESE).get("/login/", REMOTE_ADDR="127.0.0.1", HTTP_HOST="localhost")
    assert_chinese(response.text, "看看模型记得什么", "以本地用户继续", "用户名", "密码", "登录")
    assert response.headers["Content-Language"] == "zh-hans"


def test_the_cookie_of_the_switch_counts_more_than_the_browser(client: Client) -> None:
    assert '<html lang="zh-hans"' in client.get("/").text
    client.post(reverse("set_language"), {"language": "en", "next": "/"})
    assert '<html lang="en"' in client.get("/").text
    client.post(reverse("set_language"), {"language": "zh-hans", "next": "/"})
    english = {"accept-language": "en"}
    assert_chinese(client.get("/", headers=english).text, "模型记得什么？")


def test_the_first_page_is_chinese(client: Client) -> None:
    assert_chinese(client.get("/").text, "模型记得什么？", "开始对话", "还没有对话。")


def test_an_empty_conversation_is_chinese(client: Client, conversation: Conversation) -> None:
    html = client.get(f"/c/{conversation.pk}/").text
    assert_chinese(html, "还没有任何消息", "演示模型（基于规则）", "模型接下来会看到什么", "发送")


@pytest.mark.django_db(transaction=True)
async def test_a_conversation_with_a_reset_and_a_fold_is_chinese(
    runner: Any, scripted: Any, user: Any, make_conversation: Callable[..., Conversation]
) -> None:
    scripted.summaries = ["用户叫小傅哥，在学智能体开发。"]
    policy = {"preset": "hybrid", "max_messages": 4, "keep_messages": 2}
    conversation = await sync_to_async(make_conversation)(policy=policy, title="第一课")
    await say(runner, conversation, "你好")
    await sync_to_async(service.reset)(conversation_id=conversation.pk)
    for text in ("我叫小傅哥，在学智能体开发。" * 5, "今天星期几？", "我叫什么名字？"):
        await say(runner, conversation, text)
    client = Client(**CHINESE)
    await sync_to_async(client.force_login)(user)

    async def page(query: str = "") -> str:
        response = await sync_to_async(client.get)(f"/c/{conversation.pk}/{query}")
        return str(response.text)

    lines = ("记忆在此重置：以上内容模型一概不知", "2 条消息已折叠进摘要 v1", "由模型撰写")
    marks = ("重置之前", "已折叠进 v1", "系统提示词", "代表第 3–4 条消息", "触发线", "撤销 摘要 v1")
    assert_chinese(await page(), *lines, *marks)
    assert_chinese(await page("?request=1"), "模型当时看到了什么", "与实际发送的内容完全一致")


def test_the_panel_alone_is_chinese(client: Client, conversation: Conversation) -> None:
    html = client.get(f"/c/{conversation.pk}/panel/context/").text
    assert "立即压缩" in html
    assert "Compact now" not in html


def test_error_pages_are_chinese(client: Client) -> None:
    missing = client.get("/c/00000000-0000-4000-8000-000000000000/")
    assert missing.status_code == 404
    assert_chinese(missing.text, "这里什么都没有", "返回我的对话")
    strict = Client(enforce_csrf_checks=True, **CHINESE)
    assert_chinese(strict.post("/login/").text, "页面已过期")
    with translation.override("zh-hans"):
        assert_chinese(server_error(HttpRequest()).content.decode(), "服务器出错了")


@pytest.mark.django_db(transaction=True)
async def test_deleting_asks_in_chinese(user: Any, conversation: Conversation) -> None:
    client = AsyncClient()
    await client.aforce_login(user)
    response = await client.get(f"/c/{conversation.pk}/delete/", **CHINESE)
    assert_chinese(response.text, "要删除这个对话吗？", "永久删除")


# The socket


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("cookie", "accepted", "words"),
    [
        ("zh-hans", "en", ("该帧不是 JSON。", "只有最后一轮可以重新运行。")),
        ("en", "zh-CN", ("The frame is not JSON.", "Only the last turn can be run again.")),
        ("", "zh-CN,zh;q=0.9", ("该帧不是 JSON。", "只有最后一轮可以重新运行。")),
        ("xx", "", ("The frame is not JSON.", "Only the last turn can be run again.")),
    ],
)
async def test_error_frames_speak_the_language_of_the_visitor(
    cookie: str, accepted: str, words: tuple[str, ...], runner: Any, user: Any,
    conversation: Conversation,
) -> None:  # fmt: skip
    signed_in = Client()
    await sync_to_async(signed_in.force_login)(user)
    session = signed_in.cookies["sessionid"].value
    headers = {
        "origin": "http://localhost:8000",
        "host": "localhost:8000",
        "cookie": f"sessionid={session}; django_language={cookie}",
        "accept-language": accepted,
    }
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    path = f"/ws/c/{conversation.pk}/"
    socket = WebsocketCommunicator(application, path, headers=encoded)
    await socket.connect()
    await socket.receive_from()  # hello
    heard = []
    for frame in ("{bad", '{"type": "turn.retry", "id": "r", "turn": 7}'):
        await socket.send_to(text_data=frame)
        heard.append(json.loads(await socket.receive_from(timeout=10))["message"])
    assert tuple(heard) == words
    await socket.disconnect()
