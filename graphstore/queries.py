"""Named queries: every Cypher text of the package lives in `cypher/*.cypher`, found here by name and bound to the model
of its rows.

A file holds sections that start with `// name: links_from`; comment lines below say what the query answers, the rest is
its text. `// order:` names the columns its rows are sorted by when the text cannot say so. `// macro: AS_OF(x)` sections
are words other texts may use, so that the temporal filter is written once. `__KIND__` and the like are holes for names,
filled by `text`. A query whose text differs on another driver has a sibling of the same name under `cypher/<driver>/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator

from graphstore.errors import InvalidError
from graphstore.guard import split
from graphstore.links import KINDS
from graphstore.models import Change, Confidence, How, Json, Value, Version

if TYPE_CHECKING:
    from graphstore.engine import Engine, Result

M = TypeVar("M", bound=BaseModel)

_SECTION = re.compile(r"^// (name|macro): *(.+?) *$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HOLE = re.compile(r"__([A-Z]+(?:_[A-Z]+)*)__")
_MACRO = re.compile(r"(\w+)\((\w+)\)\Z")


@dataclass(frozen=True, slots=True)
class Section:
    """One named text: what it answers, in a sentence or two, and the Cypher with its macros written out."""

    name: str
    doc: str
    text: str
    file: str
    order: tuple[str, ...] = ()
    """The columns its rows are sorted by when the text itself cannot say so."""


def folder() -> Path:
    """Where the .cypher files are: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).with_name("_cypher")
    return installed if installed.is_dir() else Path(__file__).parents[1] / "cypher"


@cache
def sections(driver: str = "kuzu") -> dict[str, Section]:
    """Every named text for a driver, by name."""
    raw: dict[str, Section] = {}
    macros: dict[str, tuple[str, str]] = {}
    for path in [*sorted(folder().glob("*.cypher")), *sorted((folder() / driver).glob("*.cypher"))]:
        for kind, section in _read(path.read_text(encoding="utf-8"), path.name):
            if kind == "name":
                raw[section.name] = section
            elif call := _MACRO.match(section.name):
                macros[call[1]] = (call[2], section.text)
    return {name: replace(section, text=_expand(section.text, macros)) for name, section in raw.items()}


def _read(content: str, file: str) -> Iterator[tuple[str, Section]]:
    """("name" or "macro", section) of each section of a file."""
    marks = list(_SECTION.finditer(content))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        block = content[mark.end() : following.start() if following else len(content)].strip("\n")
        lines = block.split("\n")
        count = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
        told = [line.removeprefix("//").strip() for line in lines[:count]]
        order = [line.removeprefix("order:") for line in told if line.startswith("order:")]
        doc = " ".join(line for line in told if not line.startswith("order:"))
        columns = tuple(column.strip() for line in order for column in line.split(","))
        yield mark[1], Section(mark[2], doc, "\n".join(lines[count:]).strip(), file, columns)


def _expand(body: str, macros: dict[str, tuple[str, str]]) -> str:
    """`body` with each `MACRO(name)` written out, macros inside macros included."""
    if not macros:
        return body
    call = re.compile(r"\b(" + "|".join(map(re.escape, macros)) + r")\(\s*(\w+)\s*\)")

    def written_out(match: re.Match[str]) -> str:
        variable, definition = macros[match[1]]
        return re.sub(rf"\b{variable}\b", match[2], definition)

    while call.search(body):
        body = call.sub(written_out, body)
    return body


def text(name: str, *, driver: str = "kuzu", **holes: str) -> str:
    """The text of that name, its holes filled with names: `text("link_table", KIND="SUPERSEDES")`.

    Raises InvalidError for an unknown name, and for a filling that is no plain identifier.
    """
    known = sections(driver)
    if name not in known:
        raise InvalidError.choice("query", name, known)
    for hole, filling in holes.items():
        if not _NAME.match(filling):
            raise InvalidError(
                f"{filling!r} cannot be the {hole.lower()} of a query: use letters, digits and _ only."
            )
    return _HOLE.sub(lambda match: holes.get(match[1], match[0]), known[name].text)


def schema(driver: str = "kuzu") -> list[str]:
    """The statements that make an empty store's tables: the fixed ones, LINK, and one for each kind with its own."""
    own = [kind.name.upper() for kind in KINDS.values() if kind.table]
    links = [text("link_table", driver=driver, KIND=name) for name in ["LINK", *own]]
    return [statement for script in (text("schema", driver=driver), *links) for statement in split(script)]


@dataclass(frozen=True, slots=True)
class Query(Generic[M]):
    """A named query bound to the model of its rows. Call it with an engine and its parameters."""

    name: str
    model: type[M]
    doc: str

    def result(self, engine: Engine, **params: Any) -> Result:
        """The rows as they come; for a text with `order`, in no certain order."""
        return engine.query(text(self.name, driver=engine.driver), params)

    def __call__(self, engine: Engine, **params: Any) -> list[M]:
        """The rows as models, in order."""
        order = sections(engine.driver)[self.name].order
        rows = self.result(engine, **params).rows()
        rows.sort(key=lambda row: [row[column] for column in order])
        return [self.model.model_validate(row) for row in rows]


def query(name: str, model: type[M]) -> Query[M]:
    """The query of that name, its rows read as `model`. Raises InvalidError for an unknown name."""
    text(name)
    return Query(name, model, sections()[name].doc)


# ------------------------------------------------------------------------------------------- the models of their rows


def _json(value: Any) -> Any:
    return orjson.loads(value) if isinstance(value, str) else value or {}


JsonText = Annotated[Json, BeforeValidator(_json)]


class VersionRow(Version):
    """A `Version` whose content is JSON text in the table."""

    content: JsonText


class LinkRow(Value):
    """A `Link` without how its ends stand, which one hop does not tell."""

    id: str
    source: str
    kind: str
    target: str
    reason: str | None
    strength: int | None
    confidence: Confidence
    created_by: str
    metadata: JsonText
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None


class Successor(Value):
    """One step of a supersession: `node` took the place of what was asked for, by `link`."""

    how: How
    link: str
    node: str
    who: str
    why: str | None
    since: datetime
    recorded_at: datetime


class Reached(Value):
    """Something reached along links, and in how many hops at least."""

    id: str
    hops: int


class Replaced(Value):
    """That `new` took the place of `old` in the world, since when, and when the store learned it."""

    since: datetime
    old: str
    new: str
    reason: str | None
    created_by: str
    recorded_at: datetime


class Learned(Value):
    """A description and how long after it began to be true the store heard of it (negative: planned ahead)."""

    ref: str
    text: str | None
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    late: timedelta


class Revised(Value):
    """How often a node was described, and how many rows of that are believed."""

    id: str
    kind: str
    believed_rows: int
    descriptions: int


class KindCount(Value):
    """How many links of a kind hold."""

    kind: str
    links: int


class Replacing(Value):
    """How many things one thing replaced."""

    id: str
    replaced: int


class SeenAgain(Value):
    """An event that came again: how many times, its first and its last."""

    id: str
    type: str
    description: str
    times: int
    first_seen: datetime
    last_seen: datetime


class Provenance(Value):
    """A row of a node's history with the operations that wrote and closed it."""

    ref: str
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None
    opened_by: str | None
    opened_author: str | None
    opened_reason: str | None
    closed_by: str | None
    closed_author: str | None
    closed_reason: str | None


NODE_AS_OF = query("node_as_of", VersionRow)
HISTORY = query("history", VersionRow)
VERSIONS = query("versions", VersionRow)
LINKS_FROM = query("links_from", LinkRow)
BACKLINKS_TO = query("backlinks_to", LinkRow)
WHAT_SUPERSEDED = query("what_superseded", Successor)
CAUSES = query("causes", Reached)
EFFECTS = query("effects", Reached)

TAKEN_BACK = query("taken_back", Change)
SUPERSEDED_BETWEEN = query("superseded_between", Replaced)
LEARNED_BETWEEN = query("learned_between", Learned)
MOST_REVISED = query("most_revised", Revised)
LINKS_BY_KIND = query("links_by_kind", KindCount)
MOST_SUPERSEDING = query("most_superseding", Replacing)
CONTRADICTIONS_AS_OF = query("contradictions_as_of", LinkRow)
SEEN_AGAIN = query("seen_again", SeenAgain)
WHY = query("why", Provenance)
