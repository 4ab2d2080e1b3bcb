"""The chat page, as somebody uses it. The selectors of the templates stand here only."""

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e.serving import Server
from tests.e2e.watch import Watch

LONG = 40_000  # ms: a reply that counts to a few hundred

# Notes every text of the running reply on the page, so that nothing depends on when one looks.
RECORD = """(() => {
  window.__seen = [];
  new MutationObserver(() => {
    const text = document.querySelector("[data-partial]")?.textContent;
    if (text && text !== window.__seen.at(-1)) window.__seen.push(text);
  }).observe(document, { subtree: true, childList: true, characterData: true });
})();"""


class Chat:
    """One tab with the application."""

    def __init__(self, page: Page, server: Server, watch: Watch) -> None:
        self.page, self.server, self.watch = page, server, watch
        self.field = page.locator("#composer-text")
        self.send_button = page.get_by_role("button", name="Send", exact=True)
        self.stop_button = page.locator("#stop")
        self.transcript = page.locator("#transcript")
        self.turns = page.locator(".turn[data-turn]")
        self.partial = page.locator("[data-partial]")
        self.panel = page.locator("#panel-body")
        self.segments = page.locator("#panel-body .segment")
        self.status = page.locator("#status")
        self.problem = page.locator("#composer-problem")
        self.reset_dialog = page.locator("#reset-dialog")
        self.pill = page.locator("#pill")

    def sign_in(self) -> "Chat":
        self.page.goto(f"{self.server.url}/login/")
        self.page.get_by_role("button", name="Continue as local user").click()
        expect(self.page.locator("#app")).to_be_attached()
        return self

    def new(self) -> "Chat":
        """A new conversation, ready to be written in."""
        name = re.compile("New conversation|Start a conversation")
        self.page.get_by_role("button", name=name).first.click()
        return self.ready()

    def open(self, address: str) -> "Chat":
        self.page.goto(self.server.url + address)
        return self.ready()

    def tab(self) -> "Chat":
        """A second tab with the same conversation."""
        other = Chat(self.page.context.new_page(), self.server, self.watch)
        return other.open(self.address)

    def ready(self) -> "Chat":
        """The page is there and its script has run (the field of htmx tells so)."""
        expect(self.field).to_be_visible()
        self.page.wait_for_function("() => window.htmx !== undefined")
        return self

    @property
    def address(self) -> str:
        found = re.search(r"/c/[0-9a-f-]{36}/", self.page.url)
        assert found, f"no conversation is open: {self.page.url}"
        return found[0]

    # Talking

    def send(self, text: str) -> int:
        """Send a message; the number of its turn, which has begun."""
        number = self.last_number() + 1
        self.field.fill(text)
        self.field.press("Enter")
        expect(self.turn(number)).to_be_attached()
        return number

    def ask(self, text: str) -> str:
        """Send a message, wait for the whole reply, and read it."""
        number = self.send(text)
        self.expect_state(number, "complete")
        return self.reply(number).inner_text()

    def last_number(self) -> int:
        numbers = self.turns.evaluate_all("turns => turns.map((turn) => Number(turn.dataset.turn))")
        return max(numbers, default=0)

    def turn(self, number: int) -> Locator:
        return self.page.locator(f"#turn-{number}")

    def reply(self, number: int) -> Locator:
        return self.turn(number).locator("> .message.assistant > .body")

    def expect_state(self, number: int, state: str, timeout: float = LONG) -> None:
        """The turn has ended in this state and the composer can send again."""
        turn = self.turn(number)
        expect(turn).to_have_attribute("data-turn-state", state, timeout=timeout)
        expect(self.send_button).to_be_visible()

    def states(self) -> list[str]:
        """Of every message, what the model can see of it."""
        return list(
            self.page.locator(".turn > .message[data-state]").evaluate_all(
                "all => all.map((message) => message.dataset.state)"
            )
        )

    def record(self) -> None:
        """From here on, also after a reload, note what the running reply looks like."""
        self.page.add_init_script(RECORD)
        self.page.evaluate(RECORD)

    def seen(self) -> list[str]:
        """What the running reply looked like since `record` or the last reload."""
        return list(self.page.evaluate("() => window.__seen"))

    # The memory

    def tab_link(self, name: str) -> Locator:
        """The link of a tab of the panel."""
        return self.page.locator(".tabs").get_by_role("link", name=name)

    def context(self, number: int | None = None) -> dict[str, Any]:
        """The next request, or the one with this number, as data."""
        part = f"requests/{number}/" if number else ""
        response = self.page.request.get(f"{self.server.url}{self.address}{part}context.json")
        assert response.status == 200
        return dict(json.loads(response.text()))

    def stored(self) -> str:
        """The newest message in the window, as it is stored."""
        return str(self.context()["segments"][-1]["text"])

    def kinds(self) -> list[str]:
        """The kinds of the segments that the panel shows, in order."""
        classes = self.segments.evaluate_all("all => all.map((one) => one.className)")
        return [names.split()[-1] for names in classes]

    def expect_kinds(self, *kinds: str) -> None:
        patterns = [re.compile(rf"\b{kind}\b") for kind in kinds]
        expect(self.segments).to_have_class(patterns)

    def reset(self) -> None:
        """Reset the memory, through its question."""
        self.page.locator("#reset-memory").click()
        expect(self.reset_dialog).to_be_visible()
        self.reset_dialog.get_by_role("button", name="Reset memory").click()
        expect(self.reset_dialog).to_be_hidden()

    # Looking

    def settle(self) -> None:
        """Wait until nothing is fetched and no animation runs that ends by itself."""
        self.page.wait_for_function("() => !document.querySelector('.htmx-request')")
        self.page.evaluate(
            """() => Promise.all(document.getAnimations().filter((one) =>
              one.effect.getComputedTiming().endTime !== Infinity).map((one) => one.finished))"""
        )

    def shot(self, folder: Path, name: str) -> None:
        file = folder / f"{name}.png"
        self.page.screenshot(path=file)
        assert file.stat().st_size > 5_000

    def top_of(self, element: Locator) -> float:
        return float(element.evaluate("element => element.getBoundingClientRect().top"))

    def expect_no_sideways_scroll(self, parts: str = "html, body, #transcript") -> None:
        wide = self.page.evaluate(
            """(parts) => Array.from(document.querySelectorAll(parts))
              .filter((one) => one.scrollWidth > one.clientWidth)
              .map((one) => `${one.tagName}#${one.id} ${one.scrollWidth} > ${one.clientWidth}`)""",
            parts,
        )
        assert wide == [], wide
