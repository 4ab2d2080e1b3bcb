"""Replies as HTML: Markdown without raw HTML, highlighted, and cleaned once more."""

from functools import cache, lru_cache

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr",
    "ul",
}  # fmt: skip
ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "div": {"class"},
    "ol": {"start"},
    "pre": {"dir"},
    "span": {"class"},
}
# Characters beyond which highlighting is left out: some lexers are slow on long input.
HIGHLIGHT_LIMIT = 50_000
# Characters beyond which a reply is shown as plain text.
RENDER_LIMIT = 500_000


@cache
def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlight})
    markdown.enable(["table", "strikethrough"])
    # An image is fetched without a click and could carry what was said to anywhere: it becomes
    # its text, with the address behind a link.
    markdown.disable("image")
    return markdown


def _highlight(code: str, language: str, attributes: str) -> str:
    if not language or len(code) > HIGHLIGHT_LIMIT:
        return ""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return ""
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


@lru_cache(maxsize=1_000)
def render(text: str) -> SafeString:
    """`text` as HTML that can do nothing: no scripts, styles or images; links only to http,
    https and mailto, opened without the page's address."""
    if len(text) > RENDER_LIMIT:
        return mark_safe("<pre>" + nh3.clean_text(text) + "</pre>")
    html = nh3.clean(
        _renderer().render(text),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)
