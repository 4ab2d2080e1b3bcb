"""The sets of tools that a conversation can be given."""

from collections.abc import Iterable, Mapping

from chatapp.tools.recall import MEMORY, read_message
from chatapp.tools.registry import Toolbox
from chatapp.tools.shop import SHOP

# No two have a tool of the same name.
TOOLSETS: Mapping[str, Toolbox] = {"shop": SHOP, "memory": MEMORY}


def toolbox_for(names: Iterable[str]) -> Toolbox:
    """The tools of these sets, in the order of the sets; unknown names are left out. Where there
    are any, the rest of a long result can be read."""
    wanted = frozenset(names)
    tools = [tool for name, box in TOOLSETS.items() if name in wanted for tool in box.values()]
    if tools and read_message not in tools:
        tools.append(read_message)
    return Toolbox(tools)
