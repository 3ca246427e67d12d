"""What a tool works on: the view it reads at, the page it may fill, and the name it writes under.

A page is filled until the budget of tokens is spent; the cursor goes on after it. A cursor keeps no state in the server: it holds the coordinate,
what was asked, and where to go on, so all pages are of one view.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

import orjson
from pydantic import BaseModel, Field

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.ledger.readings import Agent
from graphstore.mcp import answers
from graphstore.mcp.queries import QUERY_SECONDS
from graphstore.mcp.schemas import RARE
from graphstore.mcp.sdk import CLIENT
from graphstore.store import briefing
from graphstore.store.registry import Elsewhere
from graphstore.store.store import Store
from graphstore.values import generated_ids
from graphstore.values.doors import SIGNED
from graphstore.values.models import Json
from graphstore.values.period import Instant, instant, moment, when
from graphstore.values.text import estimate
from graphstore.view.view import View

if TYPE_CHECKING:
    from graphstore.mcp.answers import Answer, AnswerTime, ThingLine, WriteAnswer
    from graphstore.store.briefing import Brief, BriefQuestion
    from graphstore.values.findings import Reading

A = TypeVar("A", bound="Answer")
W = TypeVar("W", bound="WriteAnswer")

BUDGET = 2_000
"""Tokens of an answer by default: about four bytes each."""
LEAST_BUDGET = 100
_FOR_THE_CURSOR = 60  # tokens
_GROUPS = frozenset({"factual", "custom"})
_NO_NAME = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
UNNAMED = "relation"  # the kind of a relation in words without a Latin letter
LONGEST_KIND = 180  # characters: with what makes it differ from others it may have 200

Valid = str | None
Tx = str | None
Rare = Annotated[str | None, Field(json_schema_extra=RARE)]
Budget = Annotated[int, Field(ge=LEAST_BUDGET, le=100_000, json_schema_extra=RARE)]
PAGED = {
    "valid": (Valid, None),
    "tx": (Tx, None),
    "budget_tokens": (Budget, BUDGET),
    "cursor": (str | None, None),
}
"""The arguments of every tool that answers a question, each with its type and its default."""


class OfConnection(NamedTuple):
    """Marks an argument that a connection may have a default for, by the name of that default in `Defaults`."""

    name: str


Scope = Annotated[str | None, OfConnection("scope")]
User = Annotated[str | None, OfConnection("user")]
Kind = Annotated[str | None, OfConnection("kind")]
RareScope = Annotated[str | None, Field(json_schema_extra=RARE), OfConnection("scope")]
RareUser = Annotated[str | None, Field(json_schema_extra=RARE), OfConnection("user")]
RareKind = Annotated[str | None, Field(json_schema_extra=RARE), OfConnection("kind")]


class Defaults(NamedTuple):
    """The arguments that calls of a connection have if they leave them out, and what it allows.

    Args:
        any_kind: a link of an unknown kind defines that kind.
    """

    scope: str | None = None
    user: str | None = None
    kind: str | None = None
    any_kind: bool = False

    @classmethod
    def from_url(cls, query: bytes, given: Defaults) -> Defaults:
        """Return the defaults that the address of a server is asked with, `?scope=…&user=…&kind=…`, and those given for the rest."""
        asked = parse_qs(query.decode("utf-8", "replace"))
        scope, user, kind = (
            asked.get(name, [default])[-1]
            for name, default in (("scope", given.scope), ("user", given.user), ("kind", given.kind))
        )
        return cls(scope, user, kind, given.any_kind)


class AnswerPart(NamedTuple):
    """A part of an answer that is included or left out as a whole: an item of one of its lists."""

    field: str
    item: Any


class ToolQuestion:
    """One call of a reading tool: the view it is answered from, and the page that is wanted."""

    def __init__(self, view: View, asked: str, start: int, mark: str, budget: int, coordinate: str) -> None:
        self.view = view
        self._asked, self._coordinate = asked, coordinate
        self._start, self._mark, self._budget = start, mark, budget

    @property
    def at(self) -> AnswerTime:
        """The coordinate of the answer."""
        return answers.at(self.view)

    def has_room_for(self, value: Json) -> bool:
        """Return True if a value takes at most half of a page."""
        return estimate(_json(value)) <= self._budget // 2

    def page(self, kind: type[A], parts: Sequence[AnswerPart], /, order: str = "", **head: Any) -> A:
        """The answer with as many of the parts as there is room for after those of the pages before; at least one.

        `order`: what the order of the parts is known by, where asking again may bring another one.
        """
        if self._start and self._mark != _mark(parts, self._start, order):
            raise InvalidError(
                "what comes in pages came in another order or was forgotten meanwhile, so there is no next page of it. Begin again without a cursor; "
                "in Cypher add ORDER BY on something that differs in each row, such as an id."
            )
        lists: dict[str, list[Any]] = {}
        empty = kind(at=self.at, **head)
        left = self._budget - estimate(_json(empty)) - _FOR_THE_CURSOR
        taken = self._start
        for number in range(self._start, len(parts)):
            part = parts[number]
            left -= estimate(_json(part.item)) + 1
            if left < 0 and taken > self._start:
                break
            lists.setdefault(part.field, []).append(part.item)
            taken += 1
        rest = len(parts) - taken
        more = self._cursor(taken, _mark(parts, taken, order)) if rest > 0 else None
        return kind(at=empty.at, left_out=max(rest, 0), more=more, **head, **{name: tuple(found) for name, found in lists.items()})  # fmt: skip

    def _cursor(self, taken: int, mark: str) -> str:
        here = self.view.at
        state = [instant(here.valid), instant(here.tx), self._asked, self._coordinate, taken, mark]
        return base64.urlsafe_b64encode(orjson.dumps(state)).decode().rstrip("=")


def _mark(parts: Sequence[AnswerPart], taken: int, order: str) -> str:
    """What it is seen by that the parts are the same as before: how many there are, and the last one taken."""
    last = parts[taken - 1] if taken <= len(parts) else None
    return digest([len(parts), order, None if last is None else [last.field, _plain(last.item)]])


class LaterParts(Sequence[AnswerPart]):
    """Parts that are made when a page comes to them: there may be very many, of which a page shows few."""

    def __init__(self, makings: Sequence[tuple[str, Callable[[Any], Any], Any]]) -> None:
        self._makings = makings

    def __len__(self) -> int:
        return len(self._makings)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return LaterParts(self._makings[number])
        field, make, item = self._makings[number]
        return AnswerPart(field, make(item))


def parts(field: str, items: Sequence[Any]) -> list[AnswerPart]:
    """The items of one list of an answer, as its parts."""
    return [AnswerPart(field, item) for item in items]


class ToolWrite:
    """What became of a block that writes: the tx of its transaction, None where nothing was written."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.tx: datetime | None = None

    @cached_property
    def view(self) -> View:
        """The view after the block."""
        return self.desk.view()

    def answer(self, answer: type[W], /, **fields: Any) -> W:
        """What a tool answers that wrote it."""
        readers = () if self.tx is None else self.desk.readers(tx=self.tx)
        return answer(at=answers.at(self.view), tx=self.tx, readers=readers, **fields)

    def thing(self, id: str) -> ThingLine:
        """How a node or an event is now."""
        return answers.thing(self.view, self.view.inspect(id).node)


class Desk:
    """A store as its tools see it. `query_seconds`: how long a Cypher text may run. `author`: who signs what clients write."""

    def __init__(
        self,
        store: Store,
        *,
        query_seconds: float = QUERY_SECONDS,
        author: str | None = None,
        defaults: Defaults | None = None,
    ) -> None:
        self.store = store
        self._defaults = defaults or Defaults()
        self.author = author
        self.query_seconds = query_seconds

    def view(self, valid: str | None = None, tx: str | None = None) -> View:
        """The view at a coordinate. Of a store that is followed, what its writer wrote is read first.

        Raises InvalidError for a time that is none.
        """
        if self.store.read_only:
            self.store.refresh()
        return self.store.as_of(valid=valid, tx=tx)

    @contextmanager
    def writing(self) -> Iterator[ToolWrite]:
        """A block that is one transaction of the client. Afterwards it says at what tx, if anything was written."""
        with self.store.transaction(author=self.who()):
            tx = self.store.as_of().at.tx
            yield (written := ToolWrite(self))
        done = self.store.changes(since=tx - timedelta(microseconds=1))
        written.tx = tx if done and done[0].tx == tx else None

    def who(self) -> str:
        """Return the author of what the client at hand writes: the name of its token, else the author that the server was started for. A client without
        either signs with the name that it gives, in a store that ranks authors as `agent:NAME`: no client gets the rank of a name that it chooses.
        """
        client = CLIENT.get()
        given = self._given()
        if given:
            return given
        return (
            f"agent:{client.name}"
            if not client.name.startswith("agent:") and self.store.trust
            else client.name
        )

    def origin(self) -> str:
        """Return the source of what an agent states without naming one: `agent:NAME`, or the name alone if a token or the start of the server gave it."""
        author = self.who()
        return author if author.startswith("agent:") or author == self._given() else f"agent:{author}"

    def _given(self) -> str | None:
        return CLIENT.get().scope.get(SIGNED) or self.author

    def defaults(self) -> Defaults:
        """Return the defaults of the connection at hand: those in the address that it asked, else those that the server was started with."""
        query = CLIENT.get().scope.get("query_string")
        return Defaults.from_url(query, self._defaults) if query else self._defaults

    def any_kind(self, relation: str) -> str:
        """Return the kind of link of a relation in an agent's own words: the kind of that name, else a plain one, defined now."""
        plain = _kind_name(relation)
        return plain if self.store.vocabulary.find(plain) else self.plain_kind(relation)

    def plain_kind(self, relation: str) -> str:
        """Return the kind of link of a relation: a plain one, which decides nothing about what stands. It is defined where there is none."""
        store, plain = self.store, _kind_name(relation)
        kind = store.vocabulary.kinds.get(plain)
        if kind is not None and kind.group in _GROUPS and not (kind.causal or kind.acyclic or kind.symmetric):
            return plain
        for name in (plain, f"rel_{plain}"):
            if name not in store.vocabulary.kinds:
                try:
                    store.define_kind(name)
                except (InvalidError, ConflictError):
                    continue
                return name
        return f"rel_{plain}"

    def brief(self, asked: BriefQuestion, **times: Any) -> Brief:
        """Return the briefing of the client at hand: of its token, else of the author that the server was started for, else of the name that it gives."""
        store, token = self.store, CLIENT.get().scope.get(SIGNED)
        name = token or self.author or CLIENT.get().name
        default = self.defaults()
        asked = asked._replace(scope=asked.scope or default.scope, user=asked.user or default.user)
        if isinstance(store, Elsewhere):
            return store.brief(name, **asked._asdict(), **times)
        recorder = None if store.read_only else store._record_reads()
        return briefing.brief(store, Agent(name, bool(token)), asked, recorder, **times)

    def readers(self, id: str | None = None, tx: datetime | None = None) -> tuple[answers.ReaderLine, ...]:
        """Return whose earlier answers contained a thing, or what a transaction invalidated."""
        found: dict[str, list[Reading]] = {}
        for each in self.store.readers_of(id, tx=tx):
            found.setdefault(each.agent, []).append(each)
        return tuple(
            answers.ReaderLine(agent=agent, ids=tuple(dict.fromkeys(each.id for each in all)), at=all[0].at)
            for agent, all in found.items()
        )

    def whole(self, given: Any) -> Any:
        """An id, or several, as an agent gave it: a unique beginning of a generated one is made whole."""
        return generated_ids.whole(lambda text: self.view().whole_id(text), given)

    def refusal(self, view: View, id: str) -> Callable[[NotFoundError], NotFoundError]:
        """The error of an id that a view does not know: it names when the id was recorded, if it was recorded later."""

        def explained(error: NotFoundError) -> NotFoundError:
            try:
                first = self.store.operations(id)[0]
            except NotFoundError:
                return error
            if first.tx <= view.at.tx:
                return error
            by = f" by {first.author}" if first.author else ""
            return NotFoundError(
                f"{id!r} was not known at {when(view.at.tx)}: it was first recorded {when(first.tx)}{by}. "
                "Leave tx out, and give valid alone, to read what is known now of that time."
            )

        return explained

    @contextmanager
    def asking(self, view: View, id: str) -> Iterator[None]:
        """A block that looks an id up: the error of an unknown one is that of `refusal`."""
        try:
            yield
        except NotFoundError as error:
            raise self.refusal(view, id)(error) from None

    def question(
        self,
        tool: str,
        asked: dict[str, Any],
        *,
        valid: str | None = None,
        tx: str | None = None,
        budget_tokens: int = BUDGET,
        cursor: str | None = None,
    ) -> ToolQuestion:
        """What a call asks: at its coordinate from the beginning, or where its cursor goes on.

        Raises InvalidError for a cursor that is none, or of another question.
        """
        known_by, coordinate = digest([tool, asked]), digest([valid, tx])
        if cursor is None:
            return ToolQuestion(self.view(valid, tx), known_by, 0, "", budget_tokens, coordinate)
        at_valid, at_tx, of, where, start, mark = _decoded(cursor)
        if of != known_by:
            raise InvalidError(
                f"the cursor belongs to another question. Call {tool} with the arguments of the page before, or without a cursor."
            )
        if (valid, tx) != (None, None) and where != coordinate:
            raise InvalidError(
                "the cursor goes on at the coordinate of its first page. Leave valid and tx out, or give them as they were."
            )
        if self.store.read_only:
            self.store.refresh()
        view = self.store.as_of(valid=moment(at_valid), tx=moment(at_tx))
        return ToolQuestion(view, known_by, start, mark, budget_tokens, where)


def _kind_name(relation: str) -> str:
    """Return a relation in words as the name of a kind of link."""
    plain = _NO_NAME.sub("_", _HUMP.sub("_", relation).lower()).strip("_")[:LONGEST_KIND] or UNNAMED
    return plain if plain[0].isalpha() else f"rel_{plain}"


def in_scope(scope: str | None) -> dict[str, Any]:
    """Return the scope as an argument, if there is one: without it a token with scopes writes in its own."""
    return {} if scope is None else {"scope": scope}


def digest(value: Any) -> str:
    """What a value is known by: 12 hex characters."""
    raw = orjson.dumps(value, default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(raw, digest_size=6).hexdigest()


def _decoded(cursor: str) -> tuple[Instant, Instant, str, str, int, str]:
    try:
        valid, tx, asked, coordinate, start, mark = orjson.loads(
            base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        )
        moment(valid), moment(tx)
        if all(isinstance(text, str) for text in (asked, coordinate, mark)) and start > 0:
            return valid, tx, asked, coordinate, int(start), mark
    except (ValueError, TypeError, AttributeError, OverflowError):
        pass
    raise InvalidError(f"{cursor!r} is no cursor. Give `more` of the page before, or none to begin.")


def _plain(item: Any) -> Any:
    return (
        item.model_dump(mode="json", exclude_none=True, by_alias=True)
        if isinstance(item, BaseModel)
        else item
    )


def _json(item: Any) -> str:
    return orjson.dumps(_plain(item), default=str).decode()
