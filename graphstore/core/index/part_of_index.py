"""A part of the index, read from the rows of a ledger: all that decides what is shaky at a coordinate, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from graphstore.core.index.index import Index
from graphstore.ledger.statements import Statement
from graphstore.read.points import UNDONE, Point, as_json
from graphstore.values.period import Instant
from graphstore.values.vocabulary import UPHOLDING

_COLUMNS = (
    "names", "is_event", "born", "kind", "versions_of", "rows_of", "out", "into", "successors", "corrected",
    "v_op", "v_pos", "v_len",
    "r_ver", "r_from", "r_to", "r_tx", "r_end", "r_op", "r_close",
    "l_kind", "l_src", "l_tgt", "rows_of_link", "c_op",
    "k_link", "k_claim", "k_from", "k_to", "k_tx", "k_end",
    "o_tx", "o_verb", "o_subject", "gone", "confirmed", "undone_by", "gaps", "turns", "link_ghosts",
)  # fmt: skip
Row = TypeVar("Row")


class Number(NamedTuple):
    """A number of a row."""

    number: int


class RestingLink(NamedTuple):
    """A link that has to do with whether a thing is shaky. `base`: that end of it which shakes the other, or was replaced."""

    number: int
    kind: str
    source: int
    target: int
    base: int


class Past(NamedTuple):
    """An entity, and whether it may have fallen."""

    number: int
    id: str
    is_event: int
    kind: str
    tx_from: Instant
    forgotten_by: int | None
    may_have_fallen: int


class PeriodOf(NamedTuple):
    """A row of `period`."""

    number: int
    entity: int
    version: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    opened_by: int
    closed_by: int | None


class VersionOf(NamedTuple):
    """A version of an entity, and the operation that recorded it first."""

    number: int
    entity: int
    operation: int
    body: int


class ChangeOf(NamedTuple):
    """A time that an operation removed of an entity; or over which it changed the content, where `is_certain` is given."""

    entity: int
    valid_from: Instant
    valid_to: Instant
    operation: int
    is_certain: int | None
    place: int


class LinkPart(NamedTuple):
    """A period of a link, and the operation that recorded it first; without a claim, one that came and went in one transaction."""

    link: int
    claim: int | None
    number: int
    valid_from: Instant
    valid_to: Instant
    tx_from: Instant
    tx_to: Instant
    operation: int


class Confirmation(NamedTuple):
    """An operation that confirmed the thing of an id."""

    id: str
    operation: int


class NumberedOperation(NamedTuple):
    """What was done when, and to what."""

    number: int
    tx: Instant
    verb: str
    subject: str


SHAKY = Statement("shaky", Number)
RESTING_LINKS = Statement("resting_links", RestingLink)
REPLACING_LINKS = Statement("replacing_links", RestingLink)
PASTS = Statement("pasts", Past)
PERIODS_OF = Statement("periods_of", PeriodOf)
VERSIONS_OF = Statement("versions_of", VersionOf)
CHANGES_OF = Statement("changes_of", ChangeOf)
LINK_PARTS = Statement("link_parts", LinkPart)
CONFIRMATIONS_OF = Statement("confirmations_of", Confirmation)
OPERATIONS_NUMBERED = Statement("operations_numbered", NumberedOperation)


class PartOfIndex(Index):
    """What the index has of all that is shaky at a coordinate, of what it rests on, and of what became of that.

    Numbers are those of the whole index, so the columns are dictionaries here. A part has less of them than the index, and never another value.
    """

    gone: dict[int, int]

    def __init__(self, point: Point) -> None:
        vars(self).update({name: {} for name in _COLUMNS})
        self._point = point
        self._falling = {name: kind.rests for name, kind in point.vocabulary.kinds.items() if kind.rests}
        self._resting = {row.number for row in point.rows(SHAKY)}
        self._may_have_fallen, self.based, self.unread = set[int](), set[int](), set[int]()
        self._named = {one.operation for one in UNDONE.rows(point.database, {})}  # operations
        self._links: set[int] = set()
        self._add_entities(self._resting)
        self._add_links()
        self._add_times()
        self._add_link_times()
        changes = self._rows(CHANGES_OF, self._resting | self.based)
        self._named.update(self.gone.values(), (change.operation for change in changes))
        self._add_operations()
        self._add_changes(changes)

    @property
    def resting(self) -> Mapping[str, frozenset[str]]:
        """The kinds of link by which one end rests on the other, each with the falls that shake it."""
        return self._falling

    def _rows(self, statement: Statement[Row], numbers: Iterable[int], **more: str) -> list[Row]:
        return self._point.rows(statement, numbers=as_json(list(numbers)), **more)

    def _add_entities(self, numbers: Iterable[int]) -> None:
        for row in self._rows(PASTS, numbers):
            number = row.number
            self.names[number], self.kind[number], self.is_event[number] = row.id, row.kind, row.is_event
            self.born[number] = row.tx_from
            if row.forgotten_by is not None:
                self.gone[number] = row.forgotten_by
            if row.may_have_fallen:
                self._may_have_fallen.add(number)

    def _add_links(self) -> None:
        """Add the links by which things rest on what may shake them: what is shaky itself, or may have fallen.

        Ways may lead over things that were forgotten since, which are not shown as shaky.
        """
        kinds = {
            "leaning": as_json([kind for kind in self._falling if kind not in UPHOLDING]),
            "upholding": as_json(list(UPHOLDING)),
        }
        found: list[RestingLink] = []
        level = set(self._resting)
        while level:
            links = self._rows(RESTING_LINKS, level, **kinds)
            self._add_entities({link.base for link in links}.difference(self.names))
            shaking = self._resting | self._may_have_fallen
            found += [link for link in links if link.base in shaking]
            level = {link.base for link in links if link.base in self.gone} - self._resting
            self._resting |= level
        for link in sorted(found):
            self._add_link(link)
            side = self.out if link.kind in UPHOLDING else self.into
            side.setdefault(link.base, []).append(link.number)
            self.based.add(link.base)

    def _add_link(self, link: RestingLink) -> None:
        number = link.number
        self._links.add(number)
        self.l_kind[number], self.l_src[number], self.l_tgt[number] = link.kind, link.source, link.target
        self.rows_of_link[number] = []

    def _add_times(self) -> None:
        """Add the versions and periods of all things that rest on others, or on which others rest."""
        things = self._resting | self.based
        for thing in things:
            self.rows_of[thing], self.versions_of[thing] = [], []
        for link in self._rows(REPLACING_LINKS, things):
            self._add_link(link)
            replaced = self.successors if link.kind == "supersedes" else self.corrected
            replaced.setdefault(link.base, []).append(link.number)
        for version in self._rows(VERSIONS_OF, things):
            number = version.number
            self.versions_of[version.entity].append(number)
            self.v_op[number], self.v_pos[number], self.v_len[number] = version.operation, version.body, 1
            self._named.add(version.operation)
        for row in self._rows(PERIODS_OF, things):
            number, closed_by = row.number, -1 if row.closed_by is None else row.closed_by
            self.rows_of[row.entity].append(number)
            self.r_ver[number], self.r_from[number], self.r_to[number] = (
                row.version,
                row.valid_from,
                row.valid_to,
            )
            self.r_tx[number], self.r_end[number] = row.tx_from, row.tx_to
            self.r_op[number], self.r_close[number] = row.opened_by, closed_by
            self._named.update((row.opened_by, closed_by))
        for id, operation in self._rows(CONFIRMATIONS_OF, self._resting):
            self.confirmed.setdefault(id, []).append(operation)
            self._named.add(operation)

    def _add_link_times(self) -> None:
        """Add when the links were believed, and when each was recorded."""
        for part in self._rows(LINK_PARTS, self._links):
            number, period = part.number, (part.valid_from, part.valid_to)
            self._named.add(part.operation)
            if part.claim is None:
                self.link_ghosts.setdefault(part.link, []).append((part.tx_from, *period, part.operation))
                continue
            self.rows_of_link[part.link].append(number)
            self.c_op[part.claim] = part.operation
            self.k_link[number], self.k_claim[number] = part.link, part.claim
            self.k_from[number], self.k_to[number] = period
            self.k_tx[number], self.k_end[number] = part.tx_from, part.tx_to

    def _add_operations(self) -> None:
        """Add the operations that anything names."""
        for number, tx, verb, subject in self._rows(OPERATIONS_NUMBERED, self._named):
            self.o_tx[number], self.o_verb[number], self.o_subject[number] = tx, verb, subject
        for one in UNDONE.rows(self._point.database, {}):
            self.undone_by.setdefault(one.tx, []).append(one.operation)

    def _add_changes(self, changes: list[ChangeOf]) -> None:
        """Add what periods do not show: what was removed and what was described otherwise."""
        for change in changes:
            operation = change.operation
            noted = self.gaps if change.is_certain is None else self.turns
            gap = self.o_tx[operation], change.valid_from, change.valid_to, operation
            noted.setdefault(change.entity, []).append(gap)
            if change.is_certain == 0:
                self.unread.add(operation)
