"""Scenes as text, as HTML with a drawing, and as Markdown: what a terminal and a notebook show of a value.

Whatever the value holds, the answer is at most `LIMIT` bytes, says how much it leaves out, and has nothing from elsewhere. A drawing that leaves something
out has a frame below it with all of the graph; nothing else holds a script.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from graphstore.errors import InvalidError
from graphstore.show.drawing import WIDTH, drawing, drawing_height, stairs
from graphstore.show.frame import FRAME, MOST, frame
from graphstore.show.scenes import Arrow, Bar, Scene, Sheet, glance, graph_scene, scene
from graphstore.show.tables import aligned, column_widths
from graphstore.values.text import line
from graphstore.view.view import Reader

STILL = 50_000
"""Bytes of UTF-8 that one answer takes at most, but for its frame."""
LIMIT = STILL + FRAME
"""With its frame."""
ROWS = 24
"""Rows of a picture and of a table, where they fit."""
LINES = 12
"""Rows of a text."""
CELL = 60
"""Columns of text in a cell."""
COLUMNS = 24
"""Columns of a table of a query."""
_GAP = "  "
_NO_COLUMNS = "(no columns)"
_TIMES = frozenset({"when", "since", "holds", "recorded"})
_MARKDOWN = frozenset("\\`*_{}[]()#+-.!|~$^=:@")

_LIGHT = "--ink:#1b1f24;--soft:#57606a;--faint:#d8dee4;--paper:#fff;--node:#0072b2;--event:#b34700;--link:#6e7781;--go:#1b1f24"
_DARK = "--ink:#e6edf3;--soft:#9aa4af;--faint:#30363d;--paper:#0d1117;--node:#56b4e9;--event:#e69f00;--link:#9aa4af;--go:#e6edf3"
# As the system has it, but a notebook's own theme goes before that.
_CSS = """
.graphstore{@LIGHT;
background:var(--paper);color:var(--ink);font:13px/1.4 system-ui,sans-serif;padding:10px 12px;overflow-x:auto}
@media (prefers-color-scheme:dark){.graphstore{@DARK}}
[data-jp-theme-light=false] .graphstore,.vscode-dark .graphstore{@DARK}
[data-jp-theme-light=true] .graphstore,.vscode-light .graphstore{@LIGHT}
.graphstore p{margin:2px 0 8px;color:inherit}.graphstore p.more{color:var(--soft)}
.graphstore>iframe{display:none;width:100%;height:600px;border:0;resize:vertical}.graphstore.live>iframe{display:block}
.graphstore.live>svg,.graphstore.live>svg+p.more{display:none}
.graphstore svg{display:block;font:13px system-ui,sans-serif}.graphstore svg text{fill:var(--ink)}
.graphstore svg .s{fill:var(--soft);font-size:11px}.graphstore .grid{stroke:var(--faint);fill:none}
.graphstore .n{fill:var(--node);stroke:var(--node)}.graphstore .e{fill:var(--event);stroke:var(--event)}
.graphstore .l{fill:var(--link);stroke:var(--link)}.graphstore .pale{fill-opacity:.22;stroke-dasharray:3 2}
.graphstore .told{stroke:var(--ink);stroke-width:1.5}.graphstore .told circle{fill:var(--paper)}
.graphstore .here{stroke:var(--soft);stroke-dasharray:2 4}.graphstore .broken{stroke:var(--soft);fill:none}.graphstore .a{fill:none;stroke:var(--go);stroke-width:1.3;opacity:.85}
.graphstore .a .h{fill:var(--go);stroke:none}.graphstore .succession path{stroke-dasharray:6 3}.graphstore .other path{stroke-dasharray:1.5 3}
.graphstore .a .h,.graphstore .e,.graphstore .n{stroke-linejoin:round}
.graphstore.graphstore table{border-collapse:collapse;margin:8px 0;font-size:12px;color:inherit;display:table}
.graphstore.graphstore tr,.graphstore.graphstore td,.graphstore.graphstore th{background:transparent!important;color:inherit;
text-align:left;vertical-align:top;border:0;border-bottom:1px solid var(--faint);padding:3px 12px 3px 0;max-width:none;white-space:normal}
.graphstore.graphstore td.t{white-space:nowrap}
""".replace("@LIGHT", _LIGHT).replace("@DARK", _DARK)
_ALL = 1_000_000
"""More rows than any value has."""


# ---------------------------------------------------------------- text


def plain(value: Any) -> str:
    """The value as text for a terminal: a headline, and its first rows in columns."""
    shown = scene(value, LINES)
    lines = [f"<{line(shown.title, 300)}>"]
    if shown.sheets:
        sheet = shown.sheets[0]
        rows = _cells(sheet.rows[:LINES])
        lines += [f"  {text}" for text in aligned(rows, column_widths(rows), _GAP)]
        hidden = sheet.total - min(len(sheet.rows), LINES)
        lines += [f"  … {hidden:,} more"] if hidden else []
    lines += [f"  {line(note, 200)}" for note in shown.notes]
    return "\n".join(lines)


def _cells(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[line(cell, CELL) for cell in row] for row in rows]


def _ruled(sheet: Sheet) -> list[str]:
    """A table in columns, with a rule below its head."""
    rows = _cells([sheet.columns, *sheet.rows])
    widths = column_widths(rows)
    rule = _GAP.join("─" * each for each in widths if each)
    head, *body = aligned(rows, widths, _GAP)
    return [head, rule, *body]


# ---------------------------------------------------------------- HTML


def html(value: Any) -> str:
    """The value as a piece of HTML, well-formed XML as well: a headline, a drawing in time, tables."""
    shown = glance(value, ROWS) if isinstance(value, Reader) else value
    return _framed(
        lambda most, whole: _page(scene(shown, most), most, whole), lambda most: scene(shown, most)
    )


def whole(value: Any, kind: str) -> str:
    """Return all of a value as a file: `.svg`, the drawing alone, or `.html`, a page with its tables too. Raises InvalidError for what has no drawing."""
    shown = scene(glance(value, ROWS) if isinstance(value, Reader) else value, _ALL)
    if kind == ".html":
        title = f"<meta charset=utf-8><title>{_safe(shown.title, 200)}</title>"
        return f"<!doctype html>{title}{_page(shown, _ALL)}\n"
    if not shown.bars:
        raise InvalidError(f"{shown.title} has no drawing. Save it as .html.")
    height = drawing_height(shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graphstore" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
        f'<style>{_CSS}</style><rect width="100%" height="100%" style="fill:var(--paper)"/>{drawing(shown)}</svg>\n'
    )


def table_plain(
    columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, notes: Sequence[str]
) -> str:
    """A table alone, as text."""
    sheet = _sized(columns, rows, total, ROWS)
    lines = _ruled(sheet) if columns else [_NO_COLUMNS]
    lines += [f"… {sheet.hidden:,} more"] if sheet.hidden else []
    return "\n".join([*lines, *(f"warning: {line(note, 200)}" for note in notes[:ROWS])])


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, notes: Sequence[str]
) -> str:
    """A table alone, as HTML."""

    def render(most: int) -> str:
        table = _sheet(_sized(columns, rows, total, most)) if columns else _paragraphs([_NO_COLUMNS])
        return _block(table + _paragraphs(notes[:most]))

    return _fitted(render)


def steps_html(title: str, lines: Mapping[str, Sequence[tuple[Any, Any, Any]]], table: str) -> str:
    """A drawing of steps with the table of them below."""
    drawn = stairs(title, lines)
    both = _block(drawn) + table
    return table if not drawn else both if len(both.encode()) <= STILL else _block(drawn)


def graph_html(
    nodes: Sequence[Mapping[str, Any]], links: Sequence[tuple[str, Mapping[str, Any], str]], table: str
) -> str:
    """A drawing of the nodes of a query's answer and of the links between them, with the table below. `links`: source, the link, target."""

    def render(most: int, whole: str) -> str:
        shown = graph_scene(nodes, links, most)
        return _block(_drawn(shown) + whole + table) if shown.bars else table

    found = _framed(render, lambda most: graph_scene(nodes, links, most))
    return found if len(found.encode()) <= LIMIT else table


def _fitted(render: Callable[[int], str]) -> str:
    """The longest answer that is within the limit, trying fewer and fewer rows."""
    return _longest(render)[1]


def _longest(render: Callable[[int], str]) -> tuple[int, str]:
    text = ""
    for most in (ROWS, 16, 10, 6, 3, 1):
        text = render(most)
        if len(text.encode()) <= STILL:
            break
    return most, text


def _framed(render: Callable[[int, str], str], cut: Callable[[int], Scene]) -> str:
    """The longest answer that is within the limit; where its drawing leaves something out, with a frame that has all of the graph."""
    most, text = _longest(lambda most: render(most, ""))
    part, whole = cut(most), cut(MOST)
    if len(part.bars) == len(whole.bars) and len(part.arrows) == len(whole.arrows):
        return text
    return render(most, frame(whole))


def _block(inner: str) -> str:
    return f'<div class="graphstore"><style>{_CSS}</style>{inner}</div>'


def _drawn(shown: Scene) -> str:
    return drawing(shown) + _paragraphs(_hidden(shown.total - len(shown.bars), "in the picture"))


def _page(shown: Scene, most: int, whole: str = "") -> str:
    parts = [f"<p><strong>{_safe(shown.title, 300)}</strong></p>"]
    if shown.bars:
        parts += [_drawn(shown), whole]
    parts += [_sheet(_first(sheet, most)) for sheet in shown.sheets]
    parts.append(_paragraphs(shown.notes))
    return _block("".join(parts))


def _hidden(number: int, where: str) -> list[str]:
    return [f"… {number:,} more not shown {where}".rstrip()] if number else []


def _paragraphs(notes: Sequence[str]) -> str:
    return "".join(f'<p class="more">{_safe(note, 200)}</p>' for note in notes)


def _sheet(sheet: Sheet) -> str:
    head = "".join(f"<th>{_safe(name, CELL)}</th>" for name in sheet.columns)
    opened = ['<td class="t">' if name in _TIMES else "<td>" for name in sheet.columns]
    body = "".join(
        "<tr>"
        + "".join(f"{td}{_safe(cell, CELL)}</td>" for td, cell in zip(opened, row, strict=True))
        + "</tr>"
        for row in sheet.rows
    )
    more = _paragraphs(_hidden(sheet.hidden, f"of {sheet.total:,} {sheet.what}"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _sized(columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, most: int) -> Sheet:
    """A table cut to so many rows, and to `COLUMNS` columns."""
    wide = min(COLUMNS, most)
    names = tuple(columns[:wide])
    left = len(columns) - len(names)
    if left:
        names = (*names, f"… {left:,} more columns")
    return Sheet(names, tuple(tuple(row[:wide]) + ("",) * bool(left) for row in rows[:most]), total)


def _first(sheet: Sheet, most: int) -> Sheet:
    return Sheet(sheet.columns, sheet.rows[:most], sheet.total, sheet.what)


def _safe(text: str, most: int) -> str:
    return escape(line(text, most))


# ---------------------------------------------------------------- Markdown


def markdown(value: Any) -> str:
    """The value as Markdown: a mermaid graph where it is one, else tables."""
    shown = glance(value, ROWS) if isinstance(value, Reader) else value
    return _fitted(lambda most: _document(scene(shown, most), most))


def table_markdown(
    columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, notes: Sequence[str]
) -> str:
    """A table alone, as Markdown."""

    def render(most: int) -> str:
        table = _grid(_sized(columns, rows, total, most)) if columns else _literal(_NO_COLUMNS, CELL)
        return "\n\n".join([table, *(_literal(note, 200) for note in notes[:most])])

    return _fitted(render)


def _document(shown: Scene, most: int) -> str:
    parts = [f"**{_literal(shown.title, 300)}**"]
    if shown.boxes:
        parts.append(_mermaid(shown))
        parts += [
            _literal(note, 80) for note in _hidden(max(shown.total - len(shown.boxes), 0), "in the graph")
        ]
    else:
        parts += [_grid(_first(sheet, most)) for sheet in shown.sheets]
    parts += [_literal(note, 200) for note in shown.notes]
    return "\n\n".join(parts) + "\n"


def _grid(sheet: Sheet) -> str:
    rows = [sheet.columns, *sheet.rows]
    lines = ["| " + " | ".join(_literal(cell, CELL) for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(sheet.columns))
    more = [_literal(note, 80) for note in _hidden(sheet.hidden, f"of {sheet.total:,} {sheet.what}")]
    return "\n\n".join(["\n".join(lines), *more])


def _literal(text: str, most: int) -> str:
    """Text that Markdown, HTML in it, and the mathematics of notebooks leave as it is."""
    return "".join(f"\\{char}" if char in _MARKDOWN else escape(char) for char in line(text, most))


def _mermaid(shown: Scene) -> str:
    names = {each.name: f"n{number}" for number, each in enumerate(shown.boxes)}
    lines = ["```mermaid", "flowchart LR"]
    lines += [f'  {names[each.name]}["{_box(each)}"]' for each in shown.boxes]
    lines += [_edge(each, names) for each in shown.edges if each.tail in names and each.head in names]
    pale = [names[each.name] for each in shown.boxes if each.pale]
    if pale:
        lines += [f"  class {','.join(pale)} pale", "  classDef pale fill-opacity:0.4,stroke-dasharray:4 3"]
    return "\n".join([*lines, "```"])


def _box(each: Bar) -> str:
    first = " ".join(part for part in (each.kind, each.name) if part)
    parts = [_coded(first, 40), _coded(each.words, 40), "" if each.link else _coded(each.period, 60)]
    return "<br/>".join(part for part in parts if part)


def _edge(each: Arrow, names: dict[str, str]) -> str:
    label = _coded(f"{each.label}: {each.reason}" if each.reason else each.label, 40)
    stroke = "-.->" if each.manner == "succession" else "-->"
    return f'  {names[each.tail]} {stroke}|"{label}"| {names[each.head]}'


def _coded(text: str, most: int) -> str:
    """Text in which mermaid finds nothing of its own: punctuation as its character codes."""
    return "".join(
        char if not char.isascii() or char.isalnum() or char in " ,-_" else f"#{ord(char)};"
        for char in line(text, most)
    )
