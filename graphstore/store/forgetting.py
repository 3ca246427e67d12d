"""Find what a store has of a person: what `GraphStore.forget` erases, and what stays and why.

Every text is searched: all descriptions ever recorded on every line, the reasons of links and operations, authors, and settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from graphstore.ledger.branch_ledger import branch_databases
from graphstore.ledger.branch_rows import SPAN
from graphstore.ledger.chain import OF_LINKS, OF_THE_STORE, digest_of, dumps
from graphstore.ledger.scoped_rows import within
from graphstore.ledger.statements import Statement
from graphstore.read.points import Point
from graphstore.values.event_fields import MESSAGE_TEXTS
from graphstore.values.findings import ForgetGroup, Forgetting
from graphstore.values.models import Json
from graphstore.values.period import OPEN, Instant, iso
from graphstore.values.person_names import PersonNames
from graphstore.values.text import described, line
from graphstore.values.vocabulary import JOINED
from graphstore.values.words import fold

if TYPE_CHECKING:
    from graphstore.ledger.database import RowReader

_EXAMPLES = 5
_NAMING = frozenset("name full_name display_name sender_name".split())
_REACHING = frozenset(
    "email emails e_mail mail handle username login nick alias aliases user_id phone sender".split()
)
_WHO = _NAMING | _REACHING | frozenset("user person author speaker subject agent source".split())
"""Fields that state whose something is, or who made it."""
_STATEMENTS = ("says", "text", "statement", "title", "summary", "description")
_SESSIONS, _SUMMARIES = frozenset({"segment", "session"}), frozenset({"summary"})
_DERIVED = "derived_from"
_OTHERS = "somebody else's message that names them"
_MENTIONED = "names them, and is not of them: mentions=True erases it too"
_NEAR = "may name them: an inflection or a part of a name"
_TOMBSTONES = """
SELECT e.id, e.key, e.scope FROM entity e WHERE EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = e.number) ORDER BY e.number
"""
_SETTINGS = "SELECT name, value FROM setting ORDER BY number"
_AGENTS = "SELECT DISTINCT agent FROM reading ORDER BY agent"


class Numbered(Protocol):
    """A row with a number, by which its table is read in parts."""

    @property
    def number(self) -> int:
        """Return the number."""


class DescriptionEver(NamedTuple):
    """One description of a node or an event."""

    number: int
    id: str
    is_event: int
    kind: str
    key: str | None
    scope: str
    author: str | None
    data: bytes | None
    checksum: int


class LinkAttributes(NamedTuple):
    """One set of attributes of a link."""

    number: int
    id: str
    source: str
    kind: str
    target: str
    created_by: str
    data: bytes | None
    checksum: int


class OperationReason(NamedTuple):
    """One operation, with its reason and what else was given."""

    number: int
    tx: Instant
    verb: str
    subject: str
    author: str | None
    data: bytes | None
    checksum: int


R = TypeVar("R", bound=Numbered)
DESCRIPTIONS = Statement("descriptions_ever", DescriptionEver)
LINK_ATTRIBUTES = Statement("link_attributes_ever", LinkAttributes)
OPERATIONS = Statement("operations_ever", OperationReason)


@dataclass(frozen=True)
class ForgetRequest:
    """Whom to forget. `mentions`: also erase what only names them. `scope`: only there. `keep_audit`: tombstones stay."""

    who: str
    names: tuple[str, ...] = ()
    mentions: bool = False
    scope: str | None = None
    keep_audit: bool = True


@dataclass
class HeldThing:
    """What is held of one node or event. `why`: for what it is of the person; empty if it is not."""

    what: str
    scope: str
    why: str = ""
    is_named: bool = False
    may_be_named: bool = False
    is_of_another: bool = False  # a message by somebody else
    example: str = ""
    files: set[str] = field(default_factory=set)


class PersonFinder:
    """Finds what some lines of a ledger hold of a person."""

    def __init__(self, database: RowReader, request: ForgetRequest) -> None:
        self._database, self._request = database, request
        self._is_whole = database.whole is database
        self._points = [Point(database, OPEN, OPEN)]
        if self._is_whole:
            self._points += [Point(each, OPEN, OPEN) for each in branch_databases(database)]
        self._given = self._names = PersonNames([request.who, *request.names])
        self._things: dict[str, HeldThing] = {}
        self._groups: dict[tuple[str, str], dict[str, str]] = {}

    def find(self) -> Forgetting:
        """Return what is to be erased, and what stays."""
        count = 0
        while count < len(self._names.names):  # an e-mail address may lead to a handle
            count = len(self._names.names)
            self._names = PersonNames([*self._names.names, *self._further_names()])
        for row, body in self._described():
            self._note(row, body)
        self._note_derived()
        erased = {id: thing for id, thing in self._things.items() if self._goes(thing)}
        self._group_things(erased)
        self._group_links(erased)
        self._group_operations(erased)
        self._group_rest(erased)
        groups: dict[tuple[str, str], dict[str, str]] = {}
        for id, thing in erased.items():
            groups.setdefault((thing.what, thing.why), {})[id] = thing.example
        planned = [self._names.names, sorted(erased), self._request.keep_audit]
        return Forgetting(
            names=self._names.names,
            erases=_listed(groups),
            stays=_listed(self._groups),
            plan=digest_of(dumps(planned))[:16],
        )

    # ------------------------------------------------------------------ reading

    def _rows(self, statement: Statement[R]) -> Iterator[tuple[Point, R]]:
        """Yield all rows of a statement, of each line its own."""
        for point in self._points:
            after = point.database.line.number * SPAN - 1
            while rows := point.rows(statement, after=after):
                yield from ((point, row) for row in rows)
                after = rows[-1].number

    def _described(self) -> Iterator[tuple[DescriptionEver, Json]]:
        """Yield the descriptions that may be of the person, or name them. The body of another one is not read."""
        for point, row in self._rows(DESCRIPTIONS):
            is_read = row.data is not None and (row.id == self._request.who or self._may_be_in(row.data))
            body = point.content(row.data, row.checksum, repr(row.id)) if is_read else {}
            body.pop("salt", None)
            yield row, body

    def _may_be_in(self, data: bytes) -> bool:
        text = data.decode()
        folded = fold(text)
        return any(needle in folded for needle in self._needles())

    def _needles(self) -> set[str]:
        return {fold(part)[:3] for name in self._names.names for part in name.replace("@", " ").split()}

    def _further_names(self) -> list[str]:
        """Return names, e-mail addresses, handles and ids that are recorded with one of the person's."""
        names, found = self._names, list[str]()
        for row, body in self._described():
            content = {**body, **(body.get("content") or {})}
            # an address that was found may be shared with others: only one that was given leads to a name
            is_given = row.id == self._request.who or any(
                map(self._given.is_one, _values(content, _REACHING))
            )
            if is_given or any(map(names.is_one, _values(content, _NAMING))):
                found += _values(content, _REACHING | (_NAMING if is_given else frozenset()))
            for text in _statements(row, body):
                if names.is_about(text):
                    found += names.addresses_in(text)
        return sorted({each for each in found if each.strip()})

    # ------------------------------------------------------------------ things

    def _note(self, row: DescriptionEver, body: Json) -> None:
        """Note a description of a thing: whether it is of the person, or names them."""
        scope = row.scope or str((body.get("metadata") or {}).get("scope") or "")
        thing = self._things.setdefault(row.id, HeldThing(_sort(row, body), scope))
        texts = list(_texts(body))
        is_named = any(map(self._names.is_named, texts))
        thing.is_of_another |= bool(body.get("sender")) and not self._is_sender(body)
        thing.why = thing.why or self._why(row, body, scope)
        thing.is_named |= is_named
        thing.may_be_named |= any(map(self._names.may_be_named, texts))
        thing.files |= {str(body[each]) for each in ("media_path",) if body.get(each)}
        session = ((body.get("content") or {}).get("source") or {}) if row.kind in _SESSIONS else {}
        if isinstance(session, dict) and session.get("sessionFile"):
            thing.files.add(str(session["sessionFile"]))
        if body and (is_named or not thing.example):
            text = next((each for each in _statements(row, body) if self._names.is_named(each)), None)
            text = text or described(body.get("content") or {}, body.get("text") or body.get("description"))
            thing.example = line(f"{row.id}: {text}", 120)

    def _is_sender(self, body: Json) -> bool:
        return any(self._names.is_one(body.get(each)) for each in ("sender", "sender_name"))

    def _why(self, row: DescriptionEver, body: Json, scope: str) -> str:
        """Return for what a thing is of the person; empty if it is not."""
        names = self._names
        if row.id == self._request.who or names.is_one(row.id):
            return "by its id"
        if row.key is not None and names.is_key(row.key):
            return "by its slot"
        if names.is_in_path(scope):
            return "in their scope"
        if names.is_one(row.author):
            return "recorded by them"
        if self._is_sender(body):
            return "sent by them"
        if any(names.is_one(body.get(each)) for each in ("source", "agent")):
            return "from them"
        content = {**(body.get("metadata") or {}), **(body.get("content") or {})}
        called = _values(content, _NAMING)
        is_called_otherwise = bool(called) and not any(map(names.is_one, called))
        for each in sorted((_WHO - _REACHING if is_called_otherwise else _WHO) & content.keys()):
            if any(map(names.is_one, _texts(content[each]))):
                return f"their name is its {each}"
        if any(map(names.is_one, body.get("tags") or ())):
            return "tagged with their name"
        is_of_another = body.get("sender") and not self._is_sender(body)
        if not is_of_another and any(map(names.is_about, _statements(row, body))):
            return "is about them"
        return ""

    def _note_derived(self) -> None:
        """Note what was joined with what is erased, and which summaries are made from it and name the person."""
        made_from: dict[str, set[str]] = {}
        joined: dict[str, set[str]] = {}
        for _, link in self._rows(LINK_ATTRIBUTES):
            if link.kind == _DERIVED:
                made_from.setdefault(link.target, set()).add(link.source)
            if link.kind == JOINED:
                joined.setdefault(link.target, set()).add(link.source)
                joined.setdefault(link.source, set()).add(link.target)
        for thing in self._things.values():
            if not thing.why and thing.is_named and thing.what in ("sessions", "summaries"):
                thing.why = "sums up what names them"
        waiting = [id for id, thing in self._things.items() if thing.why]
        while waiting:
            erased = waiting.pop()
            for id in joined.get(erased, ()):
                if (other := self._things.get(id)) is not None and not other.why:
                    other.why = "was joined with what is erased"
                    waiting.append(id)
            for id in made_from.get(erased, ()):
                made = self._things.get(id)
                if made is None or made.why:
                    continue
                if made.is_named:
                    made.what = "summaries" if made.what == "things" else made.what
                    made.why = "is made from what is erased, and names them"
                    waiting.append(id)
                else:
                    self._stays(
                        made.what, "is made from what is erased, and does not name them", id, made.example
                    )
        for thing in self._things.values():
            if self._request.mentions and not thing.why and thing.is_named:
                thing.why = "names them"

    def _goes(self, thing: HeldThing) -> bool:
        scope = self._request.scope
        return bool(thing.why) and (scope is None or within(thing.scope, (scope,)))

    # ------------------------------------------------------------------ what stays

    def _stays(self, what: str, why: str, id: str, example: str = "") -> None:
        self._groups.setdefault((what, why), {})[id] = example or id

    def _group_things(self, erased: dict[str, HeldThing]) -> None:
        for id, thing in self._things.items():
            if id in erased:
                for file in sorted(thing.files):
                    self._stays("files", "outside of the store: delete them yourself", file)
            elif thing.why:
                self._stays(thing.what, "in another scope", id, thing.example)
            elif thing.is_named:
                self._stays(thing.what, _OTHERS if thing.is_of_another else _MENTIONED, id, thing.example)
            elif thing.may_be_named:
                self._stays(thing.what, _NEAR, id, thing.example)

    def _group_links(self, erased: dict[str, HeldThing]) -> None:
        for point, link in self._rows(LINK_ATTRIBUTES):
            if erased.keys() & {link.source, link.target}:
                continue
            body = point.content(link.data, link.checksum, repr(link.id)) if link.data else {}
            shown = f"{link.source} {link.kind} {link.target}: {body.get('reason') or ''}"
            if any(map(self._names.is_named, _texts(body))):
                self._stays("links", "their reason or metadata names them", link.id, line(shown, 120))
            if self._names.is_one(link.created_by):
                self._stays("links", "made by them", link.id, line(shown, 120))

    def _group_operations(self, erased: dict[str, HeldThing]) -> None:
        links_of = {
            link.id for _, link in self._rows(LINK_ATTRIBUTES) if erased.keys() & {link.source, link.target}
        }
        for point, row in self._rows(OPERATIONS):
            place = f"{iso(row.tx)} {row.verb} {row.subject}".strip()
            shown = f"{row.verb} {row.subject}".strip()
            if self._names.is_one(row.author):
                self._stays(
                    "operations",
                    "signed by them: the chain keeps who did what",
                    place,
                    line(f"{shown} by {row.author}", 120),
                )
            if row.verb in OF_THE_STORE and self._names.is_named(row.subject):
                self._stays("names", "a branch, a snapshot or a kind has their name", row.subject)
            goes = row.subject in (links_of if row.verb in OF_LINKS else erased)
            if row.data is None or goes or not self._may_be_in(row.data):
                continue
            body = point.content(row.data, row.checksum, place)
            if any(map(self._names.is_named, _texts(body))):
                self._stays(
                    "operations",
                    "their reason names them",
                    place,
                    line(f"{shown}: {body.get('reason') or ''}", 120),
                )

    def _group_rest(self, erased: dict[str, HeldThing]) -> None:
        """Group what heads of the chain and settings say, which no erasure reaches."""
        names, kept = (
            self._names,
            "its id, slot or scope names them, and stays in the chain: keep_audit=False leaves it out",
        )
        gone = [(id, None, thing.scope) for id, thing in erased.items() if self._request.keep_audit]
        for point in self._points:
            gone += point.database.rows(_TOMBSTONES)
        for id, key, scope in gone:
            if (
                names.is_one(id)
                or names.is_named(id)
                or (key and names.is_key(key))
                or names.is_in_path(scope)
            ):
                self._stays("tombstones", kept, id)
        if not self._is_whole:
            return
        for name, value in self._database.rows(_SETTINGS):
            if names.is_named(value):
                self._stays(
                    "settings", "a setting of the store names them", name, line(f"{name}: {value}", 120)
                )
        for (agent,) in self._database.rows(_AGENTS):
            if names.is_one(agent):
                self._stays("answers", "what was answered to them is recorded under their name", agent)


def _listed(groups: dict[tuple[str, str], dict[str, str]]) -> tuple[ForgetGroup, ...]:
    return tuple(
        ForgetGroup(what=what, why=why, ids=tuple(found), examples=tuple(found.values())[:_EXAMPLES])
        for (what, why), found in sorted(groups.items())
    )


def _sort(row: DescriptionEver, body: Json) -> str:
    """Return to which sort a thing belongs."""
    if row.is_event:
        is_message = row.kind == "message" or any(body.get(each) is not None for each in MESSAGE_TEXTS)
        return "messages" if is_message else "events"
    return "sessions" if row.kind in _SESSIONS else "summaries" if row.kind in _SUMMARIES else "things"


def _statements(row: DescriptionEver, body: Json) -> list[str]:
    """Return the texts by which a thing states something."""
    if row.is_event:
        return [str(body.get("description") or "")]
    content = body.get("content") or {}
    found = [body.get("text"), *(content.get(each) for each in _STATEMENTS)]
    others = (value for name, value in content.items() if name not in _WHO)
    return [each for each in found if isinstance(each, str)] or [
        each for each in others if isinstance(each, str)
    ]


def _values(content: Json, fields: Iterable[str]) -> list[str]:
    """Return the texts of some fields."""
    return [text for each in fields if each in content for text in _texts(content[each])]


def _texts(value: Any) -> Iterable[str]:
    """Yield every text of a JSON value: values, and names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
