"""Named queries: texts of `cypher/*.cypher`, each bound to the model of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator

from graphstore.graph.engine import Engine
from graphstore.graph.result import Result
from graphstore.graph.texts import sections, text
from graphstore.values.findings import Change
from graphstore.values.models import Confidence, How, Json, Value, Version

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Query(Generic[M]):
    """A named query bound to the model of its rows. Call it with an engine and its parameters."""

    name: str
    model: type[M]
    doc: str

    def result(self, engine: Engine, **params: Any) -> Result:
        """The rows as they come; for a text with `order`, in no certain order."""
        return engine.query(text(self.name), params)

    def __call__(self, engine: Engine, **params: Any) -> list[M]:
        """The rows as models, in order."""
        order = sections()[self.name].order
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
    """A `Link` without the standing of its ends, which one hop does not read."""

    id: str
    source: str
    kind: str
    target: str
    reason: str | None
    strength: int | None
    confidence: Confidence
    history: bool
    created_by: str
    metadata: JsonText
    author: str | None
    recorded_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None


class Successor(Value):
    """One step of a supersession: `node` replaced the thing, by `link`."""

    how: How
    link: str
    node: str
    who: str
    why: str | None
    since: datetime
    recorded_at: datetime
    planned: bool


class Reached(Value):
    """Something reached along links, and in how many hops at least."""

    id: str
    hops: int


class Replaced(Value):
    """The replacement of `old` by `new` in the world, since when, and when it was recorded."""

    since: datetime
    old: str
    new: str
    reason: str | None
    created_by: str
    recorded_at: datetime


class Learned(Value):
    """A description and how long after it began to be true it was recorded (negative: planned ahead)."""

    ref: str
    text: str | None
    author: str | None
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
    """A row of a node's history with the operations that said it first, wrote it and closed it."""

    ref: str
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None
    told: datetime
    told_by: str | None
    author: str | None
    reason: str | None
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
