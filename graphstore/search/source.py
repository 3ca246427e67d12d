"""The source of reads: the index, the journal with the bodies, and the bodies of an open transaction."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import orjson

from graphstore.values.period import Instant

if TYPE_CHECKING:
    from graphstore.ledger.ledger import Ledger
    from graphstore.read.standing_rules import Index
    from graphstore.values.models import Json


@dataclass
class Source:
    """The index of one store, and the bodies to which its places refer."""

    index: Index
    journal: Ledger
    # bodies of the open transaction; place -1 is the first
    pending: list[bytes] = field(default_factory=list, kw_only=True)

    @property
    def state(self) -> Hashable:
        """Return the identity of this state: in another state versions have other numbers."""
        return self.index

    def body(self, pos: int, length: int, holding: bytes = b"") -> Json:
        """Return a body by its place. Return {} if there is no place, or if the body does not contain the bytes `holding`."""
        if length == 0:
            return {}
        raw = self.raw(pos, length)
        return orjson.loads(raw) if holding in raw else {}

    def bodies(self, places: Sequence[tuple[int, int]]) -> list[Json]:
        """Return bodies by their places and lengths, read together; {} for one without a place."""
        read = self.journal.raws(pos for pos, length in places if length and pos >= 0)
        return [
            orjson.loads(self.pending[-pos - 1] if pos < 0 else read[pos]) if length else {}
            for pos, length in places
        ]

    def raw(self, pos: int, length: int) -> bytes:
        """Return the bytes of a body by its place."""
        return self.pending[-pos - 1] if pos < 0 else self.journal.raw(pos, length)


def description(core: Source, ver: int) -> Json:
    """Return the body of a version, without the salt."""
    body = core.body(core.index.v_pos[ver], core.index.v_len[ver])
    body.pop("salt", None)
    return body


class SourceAt(Protocol):
    """A source as of a coordinate."""

    @property
    def core(self) -> Source: ...
    @property
    def index(self) -> Index: ...
    @property
    def valid(self) -> Instant: ...
    @property
    def tx(self) -> Instant: ...
