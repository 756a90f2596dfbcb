"""HTML built from Python so that nothing unescaped gets in: text is escaped wherever it stands, `Safe` alone is not."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from harness.text import plain

_VOID = {"meta", "br", "hr"}


class Safe(str):
    """Markup that was made here."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def h(tag: str, *children: Child, **attributes: str | int | bool | None) -> Safe:
    """An element. `class_` is the attribute class; True is an attribute without a value, None is left out."""
    written = "".join(_attribute(name, value) for name, value in attributes.items() if value not in (None, False))
    inner = join(children)
    return Safe(f"<{tag}{written}>" if tag in _VOID else f"<{tag}{written}>{inner}</{tag}>")


def join(children: Iterable[Child], between: str = "") -> Safe:
    """Children one behind the other."""
    return Safe(between.join(_markup(child) for child in children if child is not None))


def table(header: Iterable[Child], rows: Iterable[Iterable[Child]], left: int = 1, **attributes: str) -> Safe:
    """A table in a box that scrolls by itself. The first `left` columns are texts, the others figures."""
    head = h("tr", [h("th", cell, scope="col", class_=_kind(i, left)) for i, cell in enumerate(header)])
    body = [h("tr", [h("td", cell, class_=_kind(i, left)) for i, cell in enumerate(row)]) for row in rows]
    return h("div", h("table", h("thead", head), h("tbody", body), **attributes), class_="scroll", tabindex=0)


def _kind(position: int, left: int) -> str | None:
    return None if position < left else "figure"


def _attribute(name: str, value: str | int | bool | None) -> str:
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(plain(str(value)))}"'


def _markup(child: Child) -> str:
    if isinstance(child, Safe) or child is None:
        return child or ""
    return escape(plain(child)) if isinstance(child, str) else join(child)
