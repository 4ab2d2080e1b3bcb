"""axe finds nothing serious on any page, in both themes, on a desktop and on a phone."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.e2e.pages import Chat
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

VIEWS = [
    pytest.param("light", {"width": 1360, "height": 850}, id="light desktop"),
    pytest.param("dark", {"width": 1360, "height": 850}, id="dark desktop"),
    pytest.param("light", {"width": 360, "height": 740}, id="light phone"),
    pytest.param("dark", {"width": 360, "height": 740}, id="dark phone"),
]


def serious(chat: Chat) -> list[str]:
    """What axe calls serious or critical on the page as it stands."""
    chat.settle()
    found: list[dict[str, Any]] = Axe().run(chat.page).response["violations"]
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary'][:200]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("theme", "viewport"), VIEWS)
def test_no_page_has_a_serious_fault(
    theme: str,
    viewport: dict[str, int],
    visit: Callable[..., Chat],
    start_server: Callable[..., Server],
) -> None:
    chat = visit(start_server(pace=0), viewport=viewport, color_scheme=theme)
    chat.page.goto(f"{chat.server.url}/login/")
    faults = {"sign-in": serious(chat)}
    chat.sign_in()
    faults["first page"] = serious(chat)
    chat.new()
    faults["empty"] = serious(chat)
    for text in ("My name is Ada.", "show markdown", "What is RAG?", "hi", "Who are you?", "ok"):
        chat.ask(text)
    narrow = chat.page.get_by_role("button", name="Open the memory panel")
    if narrow.is_visible():
        narrow.click()
        faults["sheet"] = serious(chat)
    chat.reset()
    close = chat.page.get_by_role("button", name="Close the memory panel")
    if close.is_visible():
        close.click()
    for number in range(7):
        chat.ask(f"my lucky number is {number}")
    assert "folded" in chat.states()
    faults["fold and reset"] = serious(chat)
    for tab in ("summary", "timeline", "timeline&compare=1", "settings"):
        chat.page.goto(f"{chat.server.url}{chat.address}?tab={tab}")
        chat.ready()
        chat.page.locator("#panel-body details > summary").evaluate_all(
            "all => all.forEach((one) => { one.parentElement.open = true; })"
        )
        faults[tab] = serious(chat)
    chat.page.goto(f"{chat.server.url}{chat.address}?request=1")
    faults["past request"] = serious(chat)
    chat.page.goto(f"{chat.server.url}{chat.address}delete/")
    faults["delete"] = serious(chat)
    assert {page: found for page, found in faults.items() if found} == {}
