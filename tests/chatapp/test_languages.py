"""English and Chinese: pages and sockets speak the language of the visitor."""

import re
from collections.abc import Callable, Collection, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db.models import Model
from django.http import HttpRequest
from django.test import AsyncClient, Client
from django.test.utils import override_settings
from django.urls import reverse
from django.utils import translation
from django.views.defaults import server_error

from memory import service
from memory.core.policy import TEMPLATES
from memory.core.presets import PRESETS
from memory.models import Conversation, MemoryEvent, Message, Summary
from tests.chatapp.helpers import copy_catalogue, fill, fold, say
from tests.sockets import Page, cookie_of

CHINESE = {"headers": {"accept-language": "zh-CN,zh;q=0.9,en;q=0.8"}}
# What is the same in both languages: names, keys and units.
SAME = {"Palimpsest", "EN", "README", "JSON", "token", "sha", "ReAct", "hybrid", "Esc"}


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The Chinese catalogue, compiled and in use whether or not `make setup` ran."""
    folder = tmp_path_factory.mktemp("locale")
    copy_catalogue(folder)
    with override_settings(LOCALE_PATHS=[folder]):
        call_command("catalogue")
        yield


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A page leaves its language behind; the next test does not find it."""
    with translation.override("en"):
        yield


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


def assert_chinese(html: str, *expected: str, same: Collection[str] = ()) -> None:
    """The page is marked as Chinese, says what is expected, and has no English words but for what
    is the `same` in both languages."""
    assert '<html lang="zh-hans" dir="ltr"' in html
    texts = Words(html).texts
    said = " ".join(" ".join(texts).split())
    assert [text for text in expected if text not in said] == []
    for name in sorted(same, key=len, reverse=True):
        said = said.replace(name, "")
    assert set(re.findall(r"[A-Za-z]{2,}", said)) - SAME == set()


@pytest.fixture
def client(user: Any) -> Client:
    signed_in = Client(**CHINESE)
    signed_in.force_login(user)
    return signed_in


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
    assert_chinese(await page("?tab=summary"), "摘要 v1", "“立即压缩”无需等到那时。")
    events = ("压缩 消息太多", "上下文起始消息", "重置", "在第 3 条消息之前")
    assert_chinese(await page("?tab=timeline"), *events, "至今的开销", "节省", "换成其他策略")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_settings_of_every_policy_are_chinese(
    preset: str, client: Client, make_conversation: Callable[..., Conversation]
) -> None:
    conversation = make_conversation(policy={"preset": preset}, title="第一课")
    html = client.get(f"/c/{conversation.pk}/?tab=settings").text
    names = (*PRESETS, *TEMPLATES, "demo")
    assert_chinese(html, "当前生效：", "摘要上限", "原样保留的下限", same=names)


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


@pytest.mark.django_db(transaction=True)
async def test_why_nothing_was_folded_is_said_in_chinese(
    runner: Any, user: Any, conversation: Conversation
) -> None:
    client = AsyncClient()
    await client.aforce_login(user)
    response = await client.post(f"/c/{conversation.pk}/memory/compact/", **CHINESE, follow=True)
    assert_chinese(response.text, "没有折叠任何消息：上下文中在当前轮次之前没有消息。")


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
    cookies = await cookie_of(user) + f"; django_language={cookie}".encode()
    page = Page(conversation.pk, cookies, languages=accepted.encode())
    await page.socket.connect()
    await page.until("hello")
    heard = []
    for frame in ("{bad", '{"type": "turn.retry", "id": "r", "turn": 7}'):
        await page.socket.send_to(text_data=frame)
        heard.append((await page.next())["message"])
    assert tuple(heard) == words
    await page.socket.disconnect()


@pytest.mark.parametrize("model", [Conversation, Message, Summary, MemoryEvent])
def test_every_field_of_the_admin_has_a_chinese_name(model: type[Model]) -> None:
    fields = [field for field in model._meta.fields if not field.primary_key]
    with translation.override("zh-hans"):
        names = {field.name: str(field.verbose_name) for field in fields}
    english = [name for name, words in names.items() if not re.search("[一-鿿]|^token$", words)]
    assert english == []


def test_a_version_in_the_admin_is_labelled_in_chinese(
    client: Client, admin_user: Any, conversation: Conversation
) -> None:
    fill(conversation, 8)
    client.force_login(admin_user)
    url = reverse("admin:memory_summary_change", args=[fold(conversation, 6).pk])
    labels = re.findall(r"<label[^>]*>\s*([^<]+?)\s*</label>", client.get(url, **CHINESE).text)
    assert [label for label in labels if re.fullmatch(r"[\x00-\x7f]+", label)] == []
    assert "压缩前 token:" in labels
