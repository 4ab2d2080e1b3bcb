"""What every template may use."""

from typing import Any

from django.http import HttpRequest

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "theme"


def interface(request: HttpRequest) -> dict[str, Any]:
    """The theme from its cookie, so that the page has it before the first paint."""
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    return {"theme": theme if theme in THEMES else "auto"}
