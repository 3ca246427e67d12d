"""The values a reader gets: frozen pydantic models, aware datetimes, `None` for an open end.

The models of one thing are here, those of answers about several in `findings`: a read of one thing makes none of them.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal, NewType, TypeVar

from pydantic import VERSION, BaseModel, ConfigDict

from graphstore.values.painter import Painted, painter
from graphstore.values.period import clocked, exactly, when

Standing = Literal["stands", "shaky", "superseded", "retracted", "ended", "not_yet", "evicted", "erased"]
UPRIGHT = frozenset({"stands", "shaky"})
Confidence = Literal["explicit", "inferred"]
Status = Literal["active", "resolved", "superseded"]
How = Literal["superseded", "corrected", "joined", "revised", "ended", "retracted", "unlinked"]
Json = dict[str, Any]
LinkId = NewType("LinkId", str)
"""The id of a link: what answers of any id answers of it with links."""

_BUILT_LATE = tuple(map(int, VERSION.split(".")[:2])) >= (2, 14)
"""True if pydantic builds the validator of a model when the model is first used. Older releases fail where two threads use it first at the same time."""
_new = object.__new__
# a frozen record refuses assignment; its slots do not, and are quicker than object.__setattr__
_set_fields, _set_named, _set_extra, _set_private = (
    BaseModel.__dict__[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
_private = BaseModel.__dict__["__pydantic_private__"].__get__
# what a record copied or pickled is made from: a set, and the same for all of a class, since none of them is changed
_names: dict[type, set[str]] = {}
M = TypeVar("M", bound="Value")


def marked(standing: Standing, begins: datetime) -> str:
    """Return the mark that a text puts after a thing's name, such as ` (shaky)` or ` (planned from 2026-06-01)`; empty for what stands."""
    if standing == "stands":
        return ""
    since = f" from {when(begins)}" if standing == "not_yet" else ""
    return f" ({in_words(standing)}{since})"


def in_words(standing: Standing) -> str:
    """Return the word for a standing in texts: `planned` for `not_yet`, else the standing itself."""
    return "planned" if standing == "not_yet" else standing


def _hashable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


class Value(BaseModel):
    """A frozen record. `made` builds one from fields already known to be right, without checking them again."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=_BUILT_LATE)

    def __hash__(self) -> int:
        """Equal records have one hash, whatever their contents hold: records can be put into a set."""
        return hash((type(self), *(_hashable(value) for value in vars(self).values())))

    @classmethod
    def made(cls: type[M], fields: dict[str, Any]) -> M:
        # The store's own reads come from checked input: validating again would cost ten times the read.
        self = _new(cls)
        _set_fields(self, fields)
        _set_named(self, _names.get(cls) or _names.setdefault(cls, set(cls.model_fields)))
        _set_extra(self, None)
        _set_private(self, None)
        return self

    @classmethod
    def later(cls: type[M], make: Callable[[], M], **known: Any) -> M:
        """Return the record that `make` gives, which is made when anything of it but the `known` fields is first asked for. Until then it is an instance
        of a subclass."""
        self: M = _new(_unmade(cls))
        _set_private(self, (make, known))
        return self


@cache
def _unmade(cls: type[Value]) -> Any:
    def completed(self: Value, name: str) -> Any:
        make, known = _private(self)
        if name in known:
            return known[name]
        made = make()
        _set_fields(self, made.__dict__)
        _set_named(self, made.__pydantic_fields_set__)
        _set_extra(self, None)
        _set_private(self, None)
        object.__setattr__(self, "__class__", cls)
        return getattr(self, name)

    # these look at the type itself, not at what it says it is
    def copied(self: Value) -> Any:
        return completed(self, "__copy__")()

    def copied_deep(self: Value, memo: dict[int, Any] | None = None) -> Any:
        return completed(self, "__deepcopy__")(memo)

    ways = {"__getattribute__": completed, "__copy__": copied, "__deepcopy__": copied_deep}
    named = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    # Everything pydantic keeps of a class is inherited. To make it again takes long, and a Ctrl-C in it becomes a SchemaError.
    return ABCMeta.__new__(type(cls), cls.__name__, (cls,), named | ways)


class Shown(Painted, Value):
    """A value that can be shown: as text, as a picture in time, as a graph."""

    def __repr__(self) -> str:
        return painter().plain(self)

    def __str__(self) -> str:
        return repr(self)


class Coordinate(Value):
    """Where a view stands: `valid` in the world's time, `tx` in the store's."""

    valid: datetime
    tx: datetime

    def __str__(self) -> str:
        return f"valid {clocked(self.valid)}, as known at {clocked(self.tx)}"


class Snapshot(Value):
    """A coordinate that was given a name, and by whom."""

    name: str
    valid: datetime
    tx: datetime
    author: str | None

    def __str__(self) -> str:
        by = f", named by {self.author}" if self.author else ""
        return f"{self.name}: valid {exactly(self.valid)}, as known at {exactly(self.tx)}{by}"


class Node(Value):
    """Something known, as described at one coordinate. The period is that of the row that holds there."""

    id: str
    kind: str
    key: str | None
    scope: str
    number: int
    content: Json
    text: str | None
    tags: tuple[str, ...]
    trigger: str
    source: str | None
    author: str | None
    """Who said this first; `source` is where that was from."""
    recorded_at: datetime
    """When this was said first over that time. `tx_from` is when the row was written, also as the piece of another that a write left."""
    standing: Standing
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None

    @property
    def ref(self) -> str:
        """`{id}-v{number}`: this description by name."""
        return f"{self.id}-v{self.number}"


class Version(Value):
    """One row of a node's history: a description over one period, believed over another."""

    id: str
    kind: str
    key: str | None
    scope: str
    ref: str
    number: int
    content: Json
    text: str | None
    tags: tuple[str, ...]
    trigger: str
    source: str | None
    author: str | None
    recorded_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None


class Link(Value):
    """A typed edge, read as a sentence: `source kind target`."""

    id: LinkId
    source: str
    kind: str
    target: str
    reason: str | None
    strength: int | None
    confidence: Confidence
    created_by: str
    history: bool = False
    """One end was made from the other as that was: only what never was so shakes it."""
    metadata: Json
    source_standing: Standing
    target_standing: Standing
    author: str | None
    recorded_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    tx_from: datetime
    tx_to: datetime | None

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.source} {self.kind} {self.target}{why}"


class Event(Value):
    """Something that happened: at an instant, and perhaps again. Never revised, only linked to.

    What is counted, and the status, are those of the coordinate it was read at. `occurred_at` is `first_seen`.
    """

    id: str
    type: str
    description: str
    source: str | None
    origin: str
    agent: str | None
    occurred_at: datetime
    first_seen: datetime
    last_seen: datetime
    count: int
    status: Status | None
    """None of what cannot be open (deploys, fixes, messages, points), and of what was retracted."""
    metadata: Json
    links: tuple[Link, ...] | None
    """The links that hold, at either end of it; None where it is shown as the end of something else."""
    fingerprint: str | None
    trace_id: str | None
    span_id: str | None
    parent_span_id: str | None
    ended_at: datetime | None
    """When its span ended, where it is known."""
    sender: str | None
    sender_name: str | None
    thread: str | None
    classification: str | None
    authorized: bool | None
    """Of a message, true by default; None of what is no message."""
    media_path: str | None
    media_hash: str | None
    """SHA-256 of the medium, 64 hex characters, where the store could read it."""
    standing: Standing
    author: str | None
    """Who recorded it first."""
    recorded_at: datetime
    """When that was; `tx_from` is the same."""
    tx_from: datetime
    tx_to: datetime | None
