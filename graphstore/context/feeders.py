"""Feed memory automatically: from question-answer pairs, tool outputs, an agent's bootstrap files, and external services.

A feeder writes only what is new or changed, and loses nothing: what cannot be written now waits, and what is skipped is counted.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import orjson

from graphstore.context import failures
from graphstore.context.smalltalk import LEAST, why_skipped
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.events.correlation import microseconds
from graphstore.memory.memory import Memory
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.store.upsert import NodePlace, clear, keep, kept_in, let_go
from graphstore.values.inputs import at_least_one, json_object, json_read, optional_text, tags_of, text_of
from graphstore.values.layers import CHUNK
from graphstore.values.models import Json, Node, Value
from graphstore.values.period import Instant, TimeLike, instant, moment
from graphstore.view.sight import Sight
from graphstore.view.view import Reader

__all__ = ["FILES", "AutoIndexer", "Indexed", "SoulFileIndexer", "SoulIndexed", "Sync", "SyncSource", "Synced", "sections", "why_skipped"]  # fmt: skip

BATCH = 5
INTERVAL = timedelta(seconds=30)
PATIENCE = timedelta(minutes=10)
EVERY = timedelta(minutes=5)
_SECOND = timedelta(seconds=1)
_OUTPUT = 8_000  # characters of a tool's output that are kept
P = ParamSpec("P")
R = TypeVar("R")


# ---- conversations ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Exchange:
    """A question and its answer, as far as known; or the output of a tool."""

    user: str | None
    thread: str | None
    at: Instant
    question: str | None = None
    answer: str | None = None
    tool: str | None = None
    asked: str | None = None
    """The input of the tool."""

    @property
    def parts(self) -> list[tuple[str, str]]:
        parts = (("Q", self.question), ("A", self.answer))
        return [(letter, text) for letter, text in parts if text is not None]


class Indexed(Value):
    """What an indexer did: chunks that wait, questions without an answer included; chunks written; and how much was skipped, by reason."""

    waiting: int
    indexed: int
    skipped: dict[str, int]


_SETTINGS = {"own": "str | None"}
_SHARED: WeakKeyDictionary[Store, dict[str | None, AutoIndexer]] = WeakKeyDictionary()


def _shared(store: Store, own: str | None = None) -> AutoIndexer:
    """Return the indexer that calls share in this process. `own`: the indexer of one client, by its name and settings as JSON."""
    there = _SHARED.setdefault(store, {})
    if own not in there:
        given = json_object("own", json_read("own", own)) if own is not None else {}
        chosen: Json = {name: given[name] for name in ("batch", "least") if name in given}
        for name in ("interval", "patience"):
            if name in given:
                chosen[name] = timedelta(seconds=given[name])
        there[own] = AutoIndexer(Memory(store), **chosen)
    return there[own]


def tick_shared(store: Store, *, end: bool = False) -> None:
    """Write what has waited long enough in the shared indexers of all branches; with `end` everything."""
    for line, there in list(_SHARED.items()):
        if line._trunk is not store._trunk:
            continue
        for key, indexer in list(there.items()):
            indexer.close() if end else indexer.tick()
            if key is not None and not indexer.waiting:
                del there[key]  # if the client is still there, a call makes a new one


def _indexing(method: Callable[P, R]) -> Callable[P, R]:
    return registry.method("indexer", "write", _shared, _SETTINGS)(method)


class AutoIndexer:
    """Remembers conversations: a question with its answer is one chunk of the layer `conversation`, a tool's output one of the layer `tool`.

    Chunks are written in one transaction, when `batch` of them wait or the first has waited for `interval`; the agent's host calls `tick` regularly. What
    is not worth remembering is skipped and counted by reason in `skipped`. `close` writes what waits, as does the end of a `with` block. If writing fails,
    the error is raised and the chunks still wait. All methods are thread-safe. `clock`: the time, by default the store's. For a remote store the chunks
    wait in the server, which ticks by itself (`graphstore serve`) and writes them when it ends.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        batch: int = BATCH,
        interval: timedelta = INTERVAL,
        patience: timedelta = PATIENCE,
        least: int = LEAST,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._memory, self._store = memory, memory._store
        self._batch, self._least = at_least_one("batch", batch), least
        self._interval = microseconds(interval, "interval")
        self._patience = microseconds(patience, "patience")
        self._clock = clock
        given = {
            "batch": batch,
            "interval": interval / _SECOND,
            "patience": patience / _SECOND,
            "least": least,
        }
        self._settings = {"own": orjson.dumps({"name": secrets.token_hex(8), **given}).decode()}
        if clock is not None:
            registry.only_here(self._store, "clock=", "Leave it out: the server has the time.")
        self._open: dict[tuple[str | None, str | None], _Exchange] = {}  # questions without an answer yet
        self._waiting: list[_Exchange] = []
        self._since: Instant = 0  # when the first of the waiting chunks came
        self._lock = threading.Lock()  # guards what waits; never held during a write
        self._skipped: Counter[str] = Counter()
        self._indexed = 0

    @property
    def waiting(self) -> int:
        """Return the number of chunks that are not written yet, questions without an answer included."""
        return self.counts().waiting

    @property
    def indexed(self) -> int:
        """Return the number of chunks written."""
        return self.counts().indexed

    @property
    def skipped(self) -> Counter[str]:
        """Return how many texts were skipped, by reason."""
        return Counter(self.counts().skipped)

    @_indexing
    def counts(self) -> Indexed:
        """What it did so far."""
        return Indexed(
            waiting=len(self._waiting) + len(self._open), indexed=self._indexed, skipped=dict(self._skipped)
        )

    @_indexing
    def question(
        self, text: str, *, user: str | None = None, thread: str | None = None, at: TimeLike | None = None
    ) -> None:
        """Hear a question. It waits for the answer in its thread; the next question there, or `patience`, ends that."""
        exchange = self._exchange(user, thread, at)
        exchange.question = text_of("question", text, empty=True)
        with self._lock:
            before = self._open.pop((user, thread), None)
            self._open[user, thread] = exchange
        if before is not None:
            self._take(before)

    @_indexing
    def answer(
        self, text: str, *, user: str | None = None, thread: str | None = None, at: TimeLike | None = None
    ) -> None:
        """Hear an answer: to the question that is open in its thread, or one that stands alone."""
        exchange = self._exchange(user, thread, at)
        answered = text_of("answer", text, empty=True)
        exchange = self._open.pop((user, thread), exchange)
        exchange.answer = answered
        self._take(exchange)

    @_indexing
    def add(
        self,
        question: str,
        answer: str,
        *,
        user: str | None = None,
        thread: str | None = None,
        at: TimeLike | None = None,
    ) -> None:
        """Hear a question and its answer at once."""
        exchange = self._exchange(user, thread, at)
        exchange.question = text_of("question", question, empty=True)
        exchange.answer = text_of("answer", answer, empty=True)
        self._take(exchange)

    @_indexing
    def tool(
        self,
        name: str,
        output: str,
        *,
        asked: str | None = None,
        user: str | None = None,
        thread: str | None = None,
        at: TimeLike | None = None,
    ) -> None:
        """Hear what a tool of that name gave, and what it was `asked`. Of a very long output the beginning and the end are kept."""
        exchange = self._exchange(user, thread, at)
        exchange.tool = text_of("the name of a tool", name)
        exchange.asked = optional_text("asked", asked)
        exchange.answer = text_of("output", output, empty=True)
        self._take(exchange)

    @_indexing
    def tick(self, now: TimeLike | None = None) -> int:
        """Write what has waited long enough by `now` (default: the clock's). Gives how many chunks were written."""
        at = self._now() if now is None else self._memory._store.instant_of(now, "now")
        with self._lock:
            left = [key for key, exchange in self._open.items() if at - exchange.at >= self._patience]
            alone = [self._open.pop(key) for key in left]
        for exchange in alone:
            self._take(exchange, at)
        return self.flush() if self._waiting and at - self._since >= self._interval else 0

    @_indexing
    def flush(self) -> int:
        """Write what waits, all or nothing. Gives how many chunks were written. Raises what the store raises; then all of it waits still."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        try:
            written = self._memory.remember_many(map(_chunk, taken))
        except BaseException:
            with self._lock:
                self._waiting[:0] = taken
            raise
        with self._lock:
            self._indexed += len(written)
        return len(written)

    @_indexing
    def close(self) -> int:
        """Write all that waits, questions without an answer too. Gives how many chunks were written."""
        with self._lock:
            alone, self._open = list(self._open.values()), {}
        for exchange in alone:
            self._keep(exchange, self._now())
        return self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, user: str | None, thread: str | None, at: TimeLike | None) -> _Exchange:
        optional_text("user", user), optional_text("thread", thread)
        return _Exchange(
            user, thread, self._now() if at is None else self._memory._store.instant_of(at, "at")
        )

    def _now(self) -> Instant:
        return (
            self._memory._store._now() if self._clock is None else instant(self._clock(), "the clock's time")
        )

    def _take(self, exchange: _Exchange, now: Instant | None = None) -> None:
        self._keep(exchange, self._now() if now is None else now)
        if len(self._waiting) >= self._batch:
            self.flush()

    def _keep(self, exchange: _Exchange, now: Instant) -> None:
        """Queue an exchange if it is worth remembering. Calls and errors are dropped from a pair; a short part stays with a worthy other."""
        reasons = {letter: why_skipped(text, self._least) for letter, text in exchange.parts}
        if exchange.tool is not None and reasons["A"] in ("tool_call", "error"):
            reasons["A"] = None  # a tool's output looks like a call, and its failure is worth knowing
        worthless = None not in reasons.values()
        for letter, reason in reasons.items():
            if reason and (worthless or reason in ("blank", "tool_call", "error")):
                with self._lock:
                    self._skipped[reason] += 1
                if letter == "Q":
                    exchange.question = None
                else:
                    exchange.answer = None
        if not exchange.parts:
            return
        with self._lock:
            if not self._waiting:
                self._since = now
            self._waiting.append(exchange)


def _chunk(exchange: _Exchange) -> Json:
    whose = {"user": exchange.user, "thread": exchange.thread, "valid_from": moment(exchange.at)}
    if exchange.tool is None:
        text = "\n".join(f"{letter}: {text}" for letter, text in exchange.parts)
        return {"text": text, "layer": "conversation", "source": exchange.thread, **whose}
    output = exchange.answer or ""
    if len(output) > _OUTPUT:
        left = f"\n… ({len(output) - _OUTPUT:,} characters left out) …\n"
        output = output[: _OUTPUT // 2] + left + output[-_OUTPUT // 2 :]
    asked = {"asked": exchange.asked} if exchange.asked else {}
    metadata = {"tool": exchange.tool, **asked}
    return {"text": output, "layer": "tool", "source": exchange.tool, **whose, "metadata": metadata}


# ---- the files an agent lives by --------------------------------------------------------------

FILES = ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md")
"""The files in the order in which an agent reads them."""
_FILE = "bootstrap_file"
_HEADER = re.compile(r" {0,3}##(?:[ \t]+(?P<title>.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})(?P<info>.*)")


class FileSection(NamedTuple):
    """A section of a file: its `##` header ("" before the first one), and its text with the header."""

    title: str
    text: str


def sections(text: str) -> list[FileSection]:
    """Split a Markdown text at its `##` headers, except those in a code fence or a comment. Blank sections are left out.

    >>> [section.title for section in sections("# Me\\n\\n## Style\\nbriefly\\n```\\n## no header\\n```\\n## Tools ##\\n")]
    ['', 'Style', 'Tools']
    """
    found: list[tuple[str, list[str]]] = [("", [])]
    fence, comment = "", False
    for line in text.splitlines():
        marked = _FENCE.fullmatch(line)
        if comment:
            comment = "-->" not in line
        elif fence:
            if marked and not marked["info"].strip() and marked["fence"].startswith(fence):
                fence = ""
        elif marked:
            fence = marked["fence"]
        elif line.lstrip(" ").startswith("<!--"):
            comment = "-->" not in line
        elif header := _HEADER.fullmatch(line):
            found.append(((header["title"] or "").strip(), []))
        found[-1][1].append(line.rstrip())
    parts = ((title, "\n".join(lines).strip("\n")) for title, lines in found)
    return [FileSection(title, text) for title, text in parts if text.strip()]


class SoulIndexed(Value):
    """What reading the files did, by the ids of their sections; the names of the files read; and which could not be read, and why."""

    new: tuple[str, ...]
    revised: tuple[str, ...]
    ended: tuple[str, ...]
    unchanged: tuple[str, ...]
    files: tuple[str, ...]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        counts = (("new", self.new), ("revised", self.revised), ("ended", self.ended), ("unchanged", self.unchanged))  # fmt: skip
        counted = ", ".join(f"{len(ids):,} {word}" for word, ids in counts if ids) or "nothing"
        return "\n".join([f"{counted} in {', '.join(self.files) or 'no file'}", *self.problems])


class SoulFileIndexer:
    """Keeps an agent's bootstrap files in the layer `soul`, with a chunk for each section, whose id is a hash of its user, file and header.

    A changed section becomes a new version, a removed one is ended, and an unchanged one is not written. `user`: the agent's owner.
    """

    def __init__(self, store: Store, *, user: str | None = None) -> None:
        self._store = store
        self._user = optional_text("user", user) or ""

    def index(self, folder: str | Path) -> SoulIndexed:
        """Read the files of a folder, in one transaction. A missing file counts as empty; one that cannot be read changes nothing.

        Raises NotFoundError for a folder that has none of them.
        """
        if isinstance(self._store, registry.Elsewhere):
            return index_soul(self._store, folder, user=self._user or None)
        place = Path(folder)
        texts: dict[str, str] = {}
        problems: dict[str, str] = {}
        for name in FILES:
            try:
                texts[name] = (place / name).read_bytes().decode("utf-8-sig")
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError) as error:
                problems[name] = f"{place / name} was not read: {error}"
        if not texts and not problems:
            raise NotFoundError(f"{place} has none of {', '.join(FILES)}. Name the folder they are in.")
        done: dict[str, list[str]] = {"new": [], "revised": [], "unchanged": [], "ended": []}
        with self._store.verb():
            for name in FILES:
                if name not in problems:
                    self._index(name, sections(texts.get(name, "")), done)
        ids = {how: tuple(found) for how, found in done.items()}
        return SoulIndexed(**ids, files=tuple(texts), problems=tuple(problems.values()))

    def _index(self, name: str, parts: list[FileSection], done: dict[str, list[str]]) -> None:
        times: Counter[str] = Counter()
        now = []
        for part in parts:
            times[part.title] += 1
            kept = keep(
                self._store,
                NodePlace(CHUNK, ("soul", self._user, name, part.title, str(times[part.title]))),
                {"metadata": {"file": name, "header": part.title}},
                text=part.text,
                scope=f"soul:{self._user}",
                source=f"soul:{name}#{part.title}" if part.title else f"soul:{name}",
                trigger="file_changed",
            )
            done[kept.how].append(kept.node.id)
            now.append(kept.node.id)
        place = NodePlace(_FILE, (self._user, name))
        before = _sections_of(self._store, place)
        for id in before:
            if id not in now and let_go(self._store, id, reason=f"no longer in {name}"):
                done["ended"].append(id)
        if now or before:
            content = {"file": name, "sections": now}
            keep(self._store, place, content, scope=f"soul:{self._user}", trigger="file_changed", minor=True)


@registry.write("memory", files=("folder",))
def index_soul(store: Store, folder: str | Path, *, user: str | None = None) -> SoulIndexed:
    """Read the files of a folder that an agent lives by into the layer `soul`, as `SoulFileIndexer` does."""
    return SoulFileIndexer(store, user=user).index(folder)


def _sections_of(view: Reader, place: NodePlace) -> list[str]:
    node = kept_in(view, place)
    found: list[str] = [] if node is None else node.content["sections"]
    return found


@registry.read("memory")
def soul(view: Reader, user: str | None = None) -> dict[str, list[Node]]:
    """The files as they stand at the view's coordinate, each with its sections in order: those of no user, then the user's own."""
    with view.reading() as sight:
        found: dict[str, list[Node]] = {}
        here = view.pinned(sight.valid, sight.tx)
        for name in FILES:
            owners = ("", user) if user else ("",)
            ids = [id for owner in owners for id in _sections_of(here, NodePlace(_FILE, (owner, name)))]
            nodes = [_standing(sight, sight.entity(id)) for id in ids]
            if shown := [node for node in nodes if node is not None]:
                found[name] = shown
        return found


def _standing(sight: Sight, ent: int) -> Node | None:
    row = -1 if ent < 0 else sight.find(ent)
    return None if row < 0 else sight.node(row, sight.upright(ent))


# ---- services that know more ------------------------------------------------------------------


class SyncSource(Protocol):
    """A service with which a memory layer is kept in sync.

    An item is a mapping with the service's own `id` and a `text`. It may have `valid_from`, `tags`, `metadata`, `thread`, and `deleted` if it was deleted.
    """

    name: str

    def fetch(self, cursor: Any, /) -> tuple[Iterable[Mapping[str, Any]], Any]:
        """Return what is new or changed since the cursor (None: everything), and the next cursor, any JSON value. An empty page is the last."""


class Synced(Value):
    """What a run did, by the ids of the chunks; which items were refused, and why; and what went wrong with the source, if it did."""

    new: tuple[str, ...]
    revised: tuple[str, ...]
    ended: tuple[str, ...]
    unchanged: tuple[str, ...]
    refused: tuple[str, ...]
    error: str | None
    cursor: Any


@dataclass(slots=True)
class _Run:
    done: dict[str, list[str]] = field(
        default_factory=lambda: {"new": [], "revised": [], "unchanged": [], "ended": []}
    )
    refused: list[str] = field(default_factory=list)


_ITEM = ("id", "text", "valid_from", "tags", "metadata", "thread", "deleted")
_PAGES = 1_000
"""The largest number of pages that one run fetches; the next run continues."""


class Sync:
    """Keeps a layer in sync with a service. The cursor is stored in the same transaction as the items, so fetching a page twice changes nothing.

    An error of the source is returned by `run` and counted in `failures`, consecutively; the next run retries.
    """

    def __init__(
        self,
        store: Store,
        source: SyncSource,
        *,
        layer: str = "er1",
        every: timedelta = EVERY,
        user: str | None = None,
    ) -> None:
        registry.only_here(
            store, "a Sync", "Run it where the store is: graphstore serve --sync module:function."
        )
        layers = Memory(store).layers
        if layer not in layers:
            raise InvalidError.choice("layer", layer, layers)
        self._store, self._source = store, source
        self._prefix, self._user = layers[layer].prefix, optional_text("user", user) or ""
        self._name = text_of("the name of a source", source.name)
        self._every = microseconds(every, "every")
        self._last: Instant | None = None
        self._place = NodePlace("cursor", (self._prefix, self._user, self._name))
        self.failures = 0

    @property
    def cursor(self) -> Any:
        """Return the cursor that came with the last written page; None before the first."""
        node = kept_in(self._store, self._place)
        return None if node is None else node.content["cursor"]

    def tick(self, now: TimeLike | None = None) -> Synced | None:
        """Run if `every` has passed since the last run, by `now` (default: the store's now). Return None if it is too early."""
        at = self._store._now() if now is None else self._store.instant_of(now, "now")
        if self._last is not None and 0 <= at - self._last < self._every:
            return None
        self._last = at
        return self.run()

    def run(self) -> Synced:
        """Fetch what is new page by page, with a transaction each. An error of the source is reported; what was written before stays."""
        run = _Run()
        error: str | None = None
        for _ in range(_PAGES):
            cursor = self.cursor
            try:
                fetched, further = self._source.fetch(cursor)
                items = list(fetched)
                json_object("the cursor", {"cursor": further})
            except Exception as failed:
                error = f"{type(failed).__name__}: {failed}"
                break
            self._write(items, further, run)
            if not items or further == cursor:
                break
        self.failures = self.failures + 1 if error else 0
        failures.note(self._store, f"sync {self._name}", error)
        done = {how: tuple(ids) for how, ids in run.done.items()}
        return Synced(**done, refused=tuple(run.refused), error=error, cursor=self.cursor)

    def _write(self, items: list[Mapping[str, Any]], cursor: Any, run: _Run) -> None:
        page = _Run()
        with self._store.verb():
            for number, item in enumerate(items, 1):
                try:
                    for how, id in self._item(item):
                        page.done[how].append(id)
                except (InvalidError, ConflictError, NotFoundError) as error:
                    page.refused.append(f"item {number}: {error}")
            keep(
                self._store,
                self._place,
                {"source": self._name, "cursor": cursor},
                scope=self._prefix + self._user,
                trigger="synced",
                minor=True,
            )
        for how, ids in page.done.items():
            run.done[how] += ids
        run.refused += page.refused

    def _item(self, item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if not isinstance(item, Mapping):
            raise InvalidError(f"{item!r} is no mapping. Give one with an id and a text.")
        if unknown := sorted(str(name) for name in item.keys() - set(_ITEM)):
            raise InvalidError.choice("field of an item", unknown[0], _ITEM)
        own = text_of("id", item.get("id"))
        place = NodePlace(CHUNK, (self._prefix, self._user, self._name, own))
        if item.get("deleted"):
            if ended := clear(self._store, place, reason=f"deleted in {self._name}"):
                yield "ended", ended
            return
        since = item.get("valid_from")
        content: Json = {"user": self._user} if self._user else {}
        if thread := optional_text("thread", item.get("thread")):
            content["thread"] = thread
        kept = keep(
            self._store,
            place,
            content | {"metadata": {**json_object("metadata", item.get("metadata") or {}), "id": own}},
            text=text_of("text", item.get("text")),
            scope=self._prefix + self._user,
            tags=tags_of(item.get("tags") or ()),
            source=f"{self._prefix}{self._name}/{own}",
            since=None if since is None else instant(since, "valid_from"),
            trigger="synced",
        )
        yield kept.how, kept.node.id
