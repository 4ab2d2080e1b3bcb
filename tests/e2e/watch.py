"""What must not happen in a browser while a story is told."""

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, Response

# A violation of the content security policy becomes a console error of our own wording.
TELL_VIOLATIONS = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error("CSP", event.violatedDirective, event.blockedURI, event.sourceFile));"""


class Watch:
    """Notes console errors, page errors, violations of the CSP, requests to other hosts, dialogs
    and 5xx answers of a browser context."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.host = urlsplit(url).netloc
        self.requests: list[str] = []
        self._problems: list[str] = []
        self._allowed: list[str] = []
        context.add_init_script(TELL_VIOLATIONS)
        context.on("console", self._console)
        context.on("weberror", lambda error: self._note(f"page error: {error.error}"))
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("dialog", self._dialog)
        context.on("page", self._page)

    def _note(self, problem: str) -> None:
        self._problems.append(problem)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            place = message.location
            self._note(f"console: {message.text} ({place.get('url')}:{place.get('lineNumber')})")

    def _request(self, request: Request) -> None:
        self._address(request.url)

    def _address(self, url: str) -> None:
        self.requests.append(url)
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self.host:
            self._note(f"request to another host: {url}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self._note(f"{response.status} for {response.url}")

    def _dialog(self, dialog: Dialog) -> None:
        self._note(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _page(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._address(socket.url))

    def allow(self, pattern: str) -> None:
        """Of this story, expect problems like this one (a regular expression)."""
        self._allowed.append(pattern)

    @property
    def problems(self) -> list[str]:
        return [
            problem
            for problem in self._problems
            if not any(re.search(pattern, problem) for pattern in self._allowed)
        ]


def asked_for(watch: Watch, ending: str) -> list[str]:
    """The requested addresses whose path ends like this."""
    return [url for url in watch.requests if urlsplit(url).path.endswith(ending)]


def rect(box: Any) -> dict[str, float]:
    """The bounding box of something that is shown."""
    assert box is not None, "not shown"
    return dict(box)
