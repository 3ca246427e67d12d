"""Exports the graph of a view for Neo4j: a folder of CSV for `neo4j-admin database import`, or a Cypher script for `cypher-shell`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from graphstore.errors import InvalidError
from graphstore.graph.texts import text
from graphstore.interchange.flat_graph import (
    LABELS,
    LINK_KINDS,
    FlatGraph,
    FlatLink,
    FlatThing,
    Kinds,
    PropertyKind,
    flat_graph,
    written,
)
from graphstore.ledger.files import new_file, new_folder
from graphstore.view.view import Reader

__all__ = ["export_neo4j_csv", "export_neo4j_cypher"]

_TYPES: dict[PropertyKind, str] = {
    "text": "string", "texts": "string[]", "truth": "boolean", "whole": "long", "number": "double", "time": "datetime",
}  # fmt: skip
_DELIMITERS = ";|\x1f\x1e\x1d\x1c"
_LINKS, _ARGUMENTS = "links.csv", "import.args"
_HOLE = re.compile(r"__([A-Z]+)__")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTED = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_TO_QUOTE = re.compile(r"[\\'\x00-\x1f\x7f\u2028\u2029]")


# ------------------------------------------------------------------------------------------------ CSV


def export_neo4j_csv(view: Reader, path: str | os.PathLike[str]) -> int:
    """Write the graph of a view as CSV: a file for each label there is, `links.csv`, and `import.args`. Gives the number of rows.

    `neo4j-admin database import full @import.args DATABASE`, run in the folder, imports it. Texts are quoted; what is absent is an unquoted
    empty field, and so is an empty list. Raises ConflictError when something is in the folder.
    """
    with new_folder(Path(path)) as folder:
        flat = flat_graph(view)
        delimiter = _delimiter(flat)
        files = []
        for label in LABELS:
            things = [thing for thing in flat.things if thing.label == label]
            if things:
                files.append(f"--nodes={label}.csv")
                _write(folder / f"{label}.csv", _thing_lines(things, flat.kinds[label], delimiter))
        if flat.ties:
            files.append(f"--relationships={_LINKS}")
            _write(folder / _LINKS, _link_lines(flat.ties, delimiter))
        shown = delimiter if delimiter in _DELIMITERS[:2] else f"U+{ord(delimiter):04X}"
        # Options with several values precede one with a single value: otherwise they would take the database's name too.
        options = ["--multiline-fields=true", *files, f"--array-delimiter={shown}", "--id-type=string"]
        _write(folder / _ARGUMENTS, (f"{option}\n" for option in options))
    return len(flat.things) + len(flat.ties)


def _write(file: Path, lines: Iterable[str]) -> None:
    with new_file(file) as sink:
        sink.writelines(line.encode() for line in lines)


def _delimiter(flat: FlatGraph) -> str:
    """Return the separator for lists of text: the first mark that no tag contains, since a mark cannot be quoted there."""
    used = {char for thing in flat.things for tag in thing.properties.get("tags", ()) for char in tag}
    for mark in _DELIMITERS:
        if mark not in used:
            return mark
    raise InvalidError(
        f"tags hold each of {_DELIMITERS!r}, so none can part them in a CSV for Neo4j. Export as neo4j-cypher."
    )


def _thing_lines(things: list[FlatThing], kinds: Kinds, delimiter: str) -> Iterator[str]:
    columns = _columns({name: kind for name, kind in kinds.items() if name != "id"})
    heads = ["id:ID", ":LABEL", *(f"{head}:{_TYPES[kinds[name]]}" for name, head in columns.items())]
    yield _row(map(_text, heads))
    for thing in things:
        values = (_cell(thing.properties.get(name), delimiter) for name in columns)
        yield _row([_text(thing.id), _text(thing.label), *values])


def _link_lines(ties: list[FlatLink], delimiter: str) -> Iterator[str]:
    heads = (f"{name}:{_TYPES[kind]}" for name, kind in LINK_KINDS.items())
    yield _row([*map(_text, (":START_ID", ":END_ID", ":TYPE", *heads))])
    for tie in ties:
        values = (_cell(tie.properties.get(name), delimiter) for name in LINK_KINDS)
        yield _row([_text(tie.source.id), _text(tie.target.id), _text(tie.kind.upper()), *values])


def _columns(kinds: Kinds) -> dict[str, str]:
    """Return the header name of each property, without `{`, which would begin options."""
    taken: set[str] = set()
    heads = {}
    for name in kinds:
        head = name.replace("{", "_").replace("}", "_")
        while head in taken or (head != name and head in kinds):
            head = f"c_{head}"
        taken.add(head)
        heads[name] = head
    return heads


def _cell(value: Any, delimiter: str) -> str:
    if value is None or value == []:
        return ""
    if isinstance(value, list):
        return _text(delimiter.join(value))
    value = str(value).lower() if isinstance(value, bool) else written(value)
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """Return a quoted field: an unquoted empty one would mean absent."""
    return '"' + value.replace('"', '""') + '"'


def _row(fields: Iterable[str]) -> str:
    return ",".join(fields) + "\n"


# --------------------------------------------------------------------------------------------- Cypher


def export_neo4j_cypher(view: Reader, path: str | os.PathLike[str]) -> int:
    """Write the graph of a view as a script of Cypher, one statement a line, for an empty database. Gives the number of statements.

    Ids are constrained to be unique, so a script that is run again is refused. Raises ConflictError when `path` is there.
    """
    count = 0
    with new_file(Path(path)) as sink:
        flat = flat_graph(view)
        sink.write(f"// {flat.at}\n".encode())
        for statement in _statements(flat):
            sink.write(f"{statement};\n".encode())
            count += 1
    return count


def _statements(flat: FlatGraph) -> Iterator[str]:
    for label in LABELS:
        if flat.kinds[label]:
            yield _filled("neo4j_constraint", NAME=f"graphstore_{label.lower()}_id", LABEL=label)
    for thing in flat.things:
        yield _filled("neo4j_thing", LABEL=thing.label, PROPERTIES=_map(thing.properties))
    for tie in flat.ties:
        yield _filled(
            "neo4j_link",
            SOURCE=tie.source.label,
            FROM=_literal(tie.source.id),
            TARGET=tie.target.label,
            TO=_literal(tie.target.id),
            KIND=_name(tie.kind.upper()),
            PROPERTIES=_map(tie.properties),
        )


def _filled(name: str, **holes: str) -> str:
    """Return a named query with all holes filled at once, so that inserted text is never filled again."""
    return _HOLE.sub(lambda hole: holes[hole[1]], text(name))


def _map(properties: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{_name(name)}: {_literal(value)}" for name, value in properties.items()) + "}"


def _name(name: str) -> str:
    return name if _PLAIN.match(name) else "`" + name.replace("`", "``") + "`"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + _TO_QUOTE.sub(_quoted, value) + "'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, datetime):
        return _filled("neo4j_time", TEXT=_literal(written(value)))
    return repr(value)


def _quoted(match: re.Match[str]) -> str:
    return _QUOTED.get(match[0]) or f"\\u{ord(match[0]):04X}"
