"""Replies as HTML: formatted, and unable to do anything."""

import re
from html.parser import HTMLParser

import pytest

from chatapp.markdown import TAGS, render


def test_a_reply_is_formatted() -> None:
    html = render("# Title\n\n- **bold**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~gone~~")
    for tag in ("<h1>", "<li>", "<strong>", "<table>", "<td>", "<s>"):
        assert tag in html


def test_code_is_highlighted_by_classes_alone() -> None:
    html = render('```python\ndef f():\n    return "<b>"\n```')
    assert '<span class="k">def</span>' in html
    assert "style=" not in html
    assert "&lt;b&gt;" in html
    assert "<pre><code" in render("```nosuchlanguage\nx\n```")


HOSTILE = [
    "<script>window.__p=1</script>",
    "<img src=x onerror=window.__p=1>",
    "&lt;img src=x onerror=window.__p=1&gt;",
    "<svg onload=window.__p=1>",
    '"><script>window.__p=1</script>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "<a href=javascript:alert(1)>x</a>",
    "<style>body{background:url(https://collector.test/)}</style>",
    "<link rel=stylesheet href=https://collector.test/c.css>",
    "<video poster=https://collector.test/p.png>",
    "<iframe src=https://collector.test/>",
    "`<img src=x onerror=1>`",
    "```html\n<img src=x onerror=1>\n```",
    '[x](https://a.test/ "onmouseover=alert(1)")',
]


class Tags(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += attrs


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_becomes_active(text: str) -> None:
    tags = Tags(render(text))
    assert tags.names <= TAGS - {"img"}
    for name, value in tags.attributes:
        assert name in {"href", "title", "class", "rel", "start", "dir"}, name
        assert name != "href" or re.match(r"(https?|mailto):", value or ""), value


def test_an_image_is_not_fetched_but_stays_readable() -> None:
    html = render("![chart](https://collector.test/c.gif?d=KX-40718)")
    assert "<img" not in html
    assert "chart" in html


def test_links_keep_only_harmless_schemes_and_do_not_tell_where_they_are() -> None:
    html = render("[a](https://example.org) [b](mailto:a@example.org) [c](ftp://example.org)")
    assert 'href="https://example.org"' in html
    assert 'rel="noopener noreferrer nofollow"' in html
    assert "ftp:" not in re.findall(r'href="([^"]*)"', html)


def test_a_very_long_reply_is_shown_as_plain_text() -> None:
    assert render("*x* " * 200_000).startswith("<pre>")
