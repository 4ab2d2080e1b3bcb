"""A typed function as a tool: its schema, its arguments, and what is refused at decoration."""

import json
import uuid
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from chatapp.tools.registry import Tool, Toolbox, ToolContext, ToolError, tool


def made(name: str = "look", **options: Any) -> Tool:
    @tool(name=name, **options)
    def look(what: str) -> str:
        """Look at it."""
        return what

    return look


def test_the_schema_comes_from_signature_and_docstring() -> None:
    @tool(timeout=2.5, retrieval=True)
    def book_table(
        guests: Annotated[int, Field(ge=1, le=8, description="how many come")],
        day: Literal["today", "tomorrow"],
        dishes: list[str],
        note: Annotated[str, Field(description="wishes")] = "none",
        *,
        context: ToolContext,
    ) -> str:
        """Book a table
        for guests.

        More than the model needs to know.
        """
        return ""

    assert book_table.schema() == {
        "type": "function",
        "function": {
            "name": "book_table",
            "description": "Book a table for guests.",
            "parameters": {
                "type": "object",
                "properties": {
                    "guests": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 8,
                        "description": "how many come",
                    },
                    "day": {"type": "string", "enum": ["today", "tomorrow"]},
                    "dishes": {"type": "array", "items": {"type": "string"}},
                    "note": {
                        "anyOf": [{"type": "string"}, {"type": "null"}],
                        "description": "wishes",
                    },
                },
                "required": ["guests", "day", "dishes", "note"],
                "additionalProperties": False,
            },
        },
    }
    assert (book_table.timeout, book_table.retrieval, book_table.needs_context) == (2.5, True, True)


def test_a_parameter_that_is_nullable_itself_is_not_made_so_twice() -> None:
    @tool
    def search(limit: Annotated[int | None, Field(description="most")] = None) -> str:
        """Search."""
        return ""

    assert search.parameters["properties"]["limit"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "description": "most",
    }


def test_the_decorator_needs_no_parentheses_and_takes_async_functions() -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        return ""

    assert wait.name == "wait"
    assert (wait.timeout, wait.retrieval, wait.needs_context) == (10.0, False, False)
    assert wait.parameters["properties"] == {}


def test_annotations_written_as_text_are_understood() -> None:
    def look(depth: "int | None" = None) -> str:
        """Look."""
        return ""

    assert tool(look).read({"depth": 3}) == {"depth": 3}


@tool
def order(number: str, copies: int = 1, json: str | None = None, _x: bool = False) -> str:
    """Order. Two of the names would clash with a pydantic model's own."""
    return number


def test_arguments_are_read_as_the_types_say() -> None:
    given = {"number": 88231, "copies": "2", "json": "j", "_x": True}
    assert order.read(given) == {"number": "88231", "copies": 2, "json": "j", "_x": True}


def test_null_and_a_missing_key_both_mean_the_default() -> None:
    assert order.read({"number": "a", "copies": None, "json": None}) == {"number": "a"}


def test_a_required_parameter_may_be_null_where_its_type_says_so() -> None:
    @tool
    def look(where: str | None) -> str:
        """Look."""
        return ""

    assert look.read({"where": None}) == {"where": None}
    with pytest.raises(ValidationError):
        look.read({})


@pytest.mark.parametrize("values", [{}, {"number": None}, {"number": "a", "other": 1}])
def test_arguments_that_do_not_fit_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        order.read(values)


def test_schemas_cannot_be_changed_through_what_is_handed_out() -> None:
    box = Toolbox([made()])
    before = json.dumps(box.schemas())
    box.schemas()[0]["function"]["parameters"]["properties"].clear()
    assert json.dumps(box.schemas()) == before


def test_a_toolbox_keeps_its_order_whatever_the_order_of_the_names() -> None:
    box = Toolbox([made("c"), made("a", retrieval=True), made("b")])
    assert [one["function"]["name"] for one in box.schemas()] == ["c", "a", "b"]
    assert list(box.subset(["b", "gone", "c"])) == ["c", "b"]
    assert json.dumps(box.subset({"b", "c"}).schemas()) == json.dumps(
        box.subset(["c", "b"]).schemas()
    )
    assert box.retrieval == {"a"}
    assert "a" not in box.subset(["b"])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools named look"):
        Toolbox([made(), made()])


@pytest.mark.parametrize("name", ["a b", "größe", "x" * 65, "f.g", "<svg>"])
def test_names_that_providers_refuse_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 64 letters"):
        made(name)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_is_a_positive_number_of_seconds(timeout: float) -> None:
    with pytest.raises(ValueError, match="positive number of seconds"):
        made(timeout=timeout)


def no_annotation(x) -> str:  # type: ignore[no-untyped-def]
    """Do."""
    return ""


def any_type(x: Any) -> str:
    """Do."""
    return ""


def mapping(x: dict[str, int]) -> str:
    """Do."""
    return ""


def bare_list(x: list) -> str:  # type: ignore[type-arg]
    """Do."""
    return ""


def moment(x: datetime) -> str:
    """Do."""
    return ""


def bytes_literal(x: Literal[b"a"]) -> str:
    """Do."""
    return ""


def list_of_bad(x: list[Annotated[bytes, "why"]] | None = None) -> str:
    """Do."""
    return ""


def several(*x: int) -> str:
    """Do."""
    return ""


def keywords(**x: int) -> str:
    """Do."""
    return ""


def by_place(x: int, /) -> str:
    """Do."""
    return ""


def undefined(x: "Missing") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Do."""
    return ""


def other_context(context: str) -> str:
    """Do."""
    return ""


def renamed_context(where: ToolContext) -> str:
    """Do."""
    return ""


def broken_pattern(x: Annotated[str, Field(pattern="(")]) -> str:
    """Do."""
    return ""


def no_docstring(x: int) -> str:
    return ""


def generator(x: int) -> Any:
    """Do."""
    yield x


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (no_annotation, "parameter 'x': it has no annotation"),
        (any_type, "typing.Any is none of"),
        (mapping, "is none of str, int"),
        (bare_list, "is none of"),
        (moment, "is none of"),
        (bytes_literal, "is none of"),
        (list_of_bad, "is none of"),
        (several, "cannot be given by name"),
        (keywords, "cannot be given by name"),
        (by_place, "cannot be given by name"),
        (undefined, "'Missing' is not defined"),
        (other_context, "must be a ToolContext"),
        (renamed_context, "is none of"),
        (broken_pattern, "pattern|unclosed|regex"),
        (no_docstring, "a docstring must say"),
        (generator, "a generator is no tool"),
    ],
)
def test_a_signature_that_makes_no_schema_is_refused_at_decoration(
    function: Any, told: str
) -> None:
    with pytest.raises(TypeError, match=told) as refused:
        tool(function)
    assert f"tool {function.__name__}" in str(refused.value)


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "yes"), ("zh-hans", "是"), ("ZH", "是"), ("de", "yes"), ("", "yes")],
)
def test_a_context_speaks_chinese_where_the_conversation_does(language: str, said: str) -> None:
    context = ToolContext(uuid.UUID(int=1), language, lambda: datetime(2026, 6, 29, tzinfo=UTC))
    assert context.say(("yes", "是")) == said


def test_a_refusal_is_an_error_of_its_own() -> None:
    assert issubclass(ToolError, Exception)
    assert not issubclass(ToolError, ValueError)
