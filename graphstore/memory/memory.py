"""Remember chunks of text in layers, each once, and recall them by words, by meaning and by links.

A chunk is an ordinary node of kind `chunk`. Its scope names the layer and the user; its id is a hash of its source and its text. A chunk can therefore be
superseded, revised, retracted, linked and forgotten like any other node, and read at every coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import count
from typing import Any

from graphstore.errors import ConflictError, GraphStoreError, InvalidError
from graphstore.memory import embedders
from graphstore.memory.embedders import lend
from graphstore.memory.recall import Hit, Recalled, recall
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values import layers as tables
from graphstore.values import sameness
from graphstore.values.decay import Decay
from graphstore.values.findings import WarnedNode
from graphstore.values.inputs import at_least_one, ids, json_object, optional_text, tags_of, text_of
from graphstore.values.keys import slot_name
from graphstore.values.layers import CHUNK, Layer
from graphstore.values.models import Json, Node, Value
from graphstore.values.period import Instant, TimeLike, moment
from graphstore.values.text import given_text
from graphstore.view import write_warnings
from graphstore.view.rows import Row
from graphstore.view.sight import Sight
from graphstore.view.vector_search import Embedder, Meanings, QuestionMeaning, brief
from graphstore.view.view import Reader

__all__ = [
    "CHUNK",
    "Embedder",
    "Layer",
    "LayerStats",
    "Memory",
    "MemoryHit",
    "MemoryStats",
    "Recollection",
    "layer_stats",
    "lend",
    "recollect",
]

LAYERS = "layers"  # setting: the layers that the store defines
CAP = "memory_cap"  # setting: the largest number of chunks
MOST_CHUNKS = 50_000
SOON = 86_400_000_000  # microseconds: one day; a chunk that expires within it counts as expiring
FIELDS = ("text", "layer", "source", "user", "thread", "valid_from", "key", "tags", "metadata")


class MemoryHit(Hit):
    """A chunk recalled: how it was found, as any hit, and its layer."""

    node: Node
    layer: str | None

    @property
    def source(self) -> str | None:
        """Return the source of the chunk; it begins with the layer's prefix."""
        return self.node.source

    @property
    def valid_from(self) -> datetime:
        """Return the instant from which it holds."""
        return self.node.valid_from

    @property
    def valid_to(self) -> datetime | None:
        """Return the instant until which it holds; None if no end is known."""
        return self.node.valid_to


class Recollection(Recalled):
    """The chunks that a text called to mind, best first. `note` says how they were searched for."""

    hits: tuple[MemoryHit, ...]


class LayerStats(Value):
    """What stands of one layer: how many chunks, the bytes of their texts, when the oldest was recorded, how many expire within a day."""

    layer: str | None
    chunks: int
    bytes: int
    oldest: datetime | None
    expiring: int


class MemoryStats(Value):
    """What stands of each layer, those that are empty included, and how many chunks are kept at most."""

    layers: tuple[LayerStats, ...]
    chunks: int
    cap: int


@dataclass(frozen=True, slots=True)
class _CheckedChunk:
    """Holds the checked fields of a chunk to be remembered."""

    text: str
    layer: Layer
    source: str
    user: str
    thread: str | None
    valid_from: Instant | None
    key: str | None
    tags: list[str]
    metadata: Json

    @property
    def scope(self) -> str:
        """Return the layer's prefix with the user: a slot of one user is not another's."""
        return self.layer.prefix + self.user

    @property
    def content(self) -> Json:
        """Return the content of the node: user, thread and metadata, without those that are None."""
        values = {"user": self.user or None, "thread": self.thread, "metadata": self.metadata or None}
        return {name: value for name, value in values.items() if value is not None}

    def id(self, again: int) -> str:
        """Return a hash of 16 hex characters over the text, its source, user, thread and key. `again`: how many earlier nodes with this text no longer hold."""
        parts = (self.source, self.user, self.thread or "", self.key or "", str(again), self.text)
        return blake2b("\x1f".join(parts).encode(), digest_size=8).hexdigest()


@registry.read("memory")
def layers(store: Store) -> dict[str, Layer]:
    """The layers there are, by name."""
    return tables.table(store.setting(LAYERS))


@registry.read("memory")
def cap(store: Store) -> int:
    """How many chunks are kept at most."""
    return store.setting(CAP) or MOST_CHUNKS


@registry.write("memory")
def set_cap(store: Store, cap: int) -> None:
    """Keep so many chunks at most: the oldest that are not permanent go first, with the daily tick."""
    if at_least_one("cap", cap) != (store.setting(CAP) or MOST_CHUNKS):
        store.keep_setting("set_cap", CAP, cap)


class Memory:
    """The layered memory of a store. Objects are cheap: all state is in the store.

    `embed` turns a list of texts into an array (n, d); texts are then recalled by meaning too. It may have the attributes `model`, `dimension` and `batch`
    (texts per call); without `model`, its name is used. `layers`: layers of your own, stored as by `define_layer`. `cap`: the largest number of chunks,
    stored too (default 50,000).
    """

    def __init__(
        self,
        store: Store,
        embed: Embedder | None = None,
        *,
        layers: Iterable[Layer] = (),
        cap: int | None = None,
    ) -> None:
        self._store = store
        if embed is not None:
            registry.only_here(
                store, "embed=", "Leave it out: the server embeds, when it was started with an embedder."
            )
        self._meanings = None if embed is None else Meanings(store, embed, CHUNK)
        for layer in layers:
            self.define_layer(layer)
        if cap is not None:
            set_cap(store, cap)

    # ------------------------------------------------------------------ layers

    @property
    def layers(self) -> dict[str, Layer]:
        """Return the layers by name."""
        return layers(self._store)

    @registry.method("memory", "write", lambda store: Memory(store))
    def define_layer(self, layer: Layer) -> None:
        """Add a layer of your own; the store keeps it. Saying it again changes nothing.

        Raises ConflictError for a name or a prefix that is taken, InvalidError for a layer that cannot be.
        """
        if tables.defined(there := self.layers, layer) == there:
            return
        with self._store.verb(
            is_narrow=True
        ):  # all of them are kept together, and another thread may have added one
            wanted = tables.defined(self.layers, layer)
            if wanted != self.layers:
                self._store.keep_setting("define_layer", LAYERS, tables.as_kept(wanted))

    @property
    def cap(self) -> int:
        """Return the largest number of chunks. The daily tick evicts the oldest that are not permanent beyond it."""
        return cap(self._store)

    # ------------------------------------------------------------------ remembering

    @registry.method("memory", "write", lambda store: Memory(store))
    def remember(
        self,
        text: str,
        *,
        layer: str,
        source: str | None = None,
        user: str | None = None,
        thread: str | None = None,
        valid_from: TimeLike | None = None,
        key: str | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        warn: bool = False,
    ) -> Node | WarnedNode:
        """Keep a text as a chunk of a layer, from `valid_from` (default: now) on. The same text from the same source is the same chunk.

        With a `key` it is the value of that slot of the layer and the user: it supersedes the one before. `warn`: as of `add_node`. Raises InvalidError for an unknown layer or a blank text.
        """
        asked = {
            "text": text, "layer": layer, "source": source, "user": user, "thread": thread, "valid_from": valid_from,
            "key": key, "tags": tags, "metadata": metadata,
        }  # fmt: skip
        return self._remember([_chunk(self._store, self.layers, asked)], warn)[0]

    @registry.method("memory", "write", lambda store: Memory(store))
    def remember_many(
        self, chunks: Iterable[Mapping[str, Any]], *, warn: bool = False
    ) -> list[Node | WarnedNode]:
        """Keep many chunks in one transaction, all or none. Each is a mapping of what `remember` takes: `{"text": …, "layer": …}`. `warn`: as of `add_node`."""
        layers = self.layers
        checked = []
        for number, asked in enumerate(chunks):
            try:
                checked.append(_chunk(self._store, layers, asked))
            except GraphStoreError as error:
                raise type(error)(f"chunk {number}: {error}") from None
        return self._remember(checked, warn)

    def _remember(self, chunks: list[_CheckedChunk], warn: bool) -> list[Node | WarnedNode]:
        if not chunks:
            return []
        if self._meanings is not None:
            self._prepare(self._meanings, [chunk.text for chunk in chunks])
        with self._store.verb() as work:
            nodes: list[Node | WarnedNode] = [self._write(chunk) for chunk in chunks]
        if self._meanings is not None:
            self._meanings.settle()
        return [*write_warnings.warned(self._store, nodes, moment(work.tx))] if warn else nodes

    def _prepare(self, meanings: Meanings, texts: list[str]) -> None:
        """Embed the texts before anything is written. If the embedder fails, the texts are stored all the same and are found by their words."""
        try:
            meanings.prepare(texts)
        except GraphStoreError:
            raise  # it is no embedder
        except Exception as error:
            self._store._tell_once(
                f"the embedder {meanings.model!r} failed ({brief(error)}): there is no vector yet."
            )

    def reembed(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed every chunk that has no vector of this embedder's model yet (without one: every text that has none of the store's embedder), and remove the
        vectors of other models. Return the number embedded.

        Each batch is stored when done; a later call continues there. `progress` is called with (done, total). Raises what the embedder raises.
        """
        registry.only_here(self._store, "reembed()", "The server makes vectors when it is searched.")
        self._store._writable()
        meanings = self._meanings or embedders.newest(self._store)
        if meanings is None:
            raise InvalidError(
                "there is no embedder. Set one, set_embedder(store, 'wordllama'), or give one, Memory(store, embed)."
            )
        done = meanings.fill(progress)
        meanings.kept.remove_others()
        return done

    def _write(self, chunk: _CheckedChunk) -> Node:
        with self._store.reading(is_narrow=True) as sight:
            for again in count():
                name = chunk.id(again)
                ent = sight.entity(name)
                if ent < 0:
                    break
                if sight.kind(ent) != CHUNK or sight.is_event(ent):
                    raise ConflictError(
                        f"{name!r} is known already and is no chunk. Give the text another source."
                    )
                if sight.will_hold(ent):
                    found = sight.thing(ent)
                    assert isinstance(found, Node)
                    return found
        return self._store.add_node(
            CHUNK,
            chunk.content,
            id=None if self._restated(chunk) else name,
            key=chunk.key,
            text=chunk.text,
            tags=chunk.tags,
            valid_from=None if chunk.valid_from is None else moment(chunk.valid_from),
            scope=chunk.scope,
            source=chunk.source,
        )

    def _restated(self, chunk: _CheckedChunk) -> bool:
        """Return True if the slot of a chunk already holds the same text and content. The node is then confirmed instead of added."""
        if chunk.key is None:
            return False
        with self._store.reading(is_narrow=True) as sight:
            held = map(sight.thing, sight.in_slot(CHUNK, chunk.key, chunk.scope))
            return any(
                isinstance(node, Node)
                and node.standing in ("stands", "shaky")
                and sameness.same(node.text or "", chunk.text)
                and sameness.alike(node.content, chunk.content)
                for node in held
            )

    # ------------------------------------------------------------------ recalling

    @registry.method("memory", "read", lambda store: Memory(store))
    def recall(
        self,
        text: str,
        k: int = 10,
        *,
        layers: Iterable[str] | str | None = None,
        user: str | None = None,
        thread: str | None = None,
        valid: TimeLike | None = None,
        tx: TimeLike | None = None,
        tag: Iterable[str] | str = (),
        author: Iterable[str] | str = (),
        source: Iterable[str] | str = (),
        standing: Iterable[str] | str = (),
        since: TimeLike | None = None,
        until: TimeLike | None = None,
        recorded_since: TimeLike | None = None,
        recorded_until: TimeLike | None = None,
        decay: Decay | None = None,
        hops: int = 2,
    ) -> Recollection:
        """The `k` chunks that a text calls to mind among those that stand at (valid, tx), each defaulting to now.

        `layers`: only of these. `user`, `thread`: only theirs, and what belongs to no user (no thread). What is left out is no seed and no way either.
        The other filters and `decay` are those of `recall.recall`. Raises InvalidError for an unknown layer or a number out of range.
        """
        view: Reader = self._store if valid is None and tx is None else self._store.as_of(valid=valid, tx=tx)
        return recollect(
            view, text, k, layers=layers, user=user, thread=thread, tag=tag, author=author, source=source, standing=standing, since=since, until=until,
            recorded_since=recorded_since, recorded_until=recorded_until, decay=decay, hops=hops, memory=self,
        )  # fmt: skip

    # ------------------------------------------------------------------ counting

    @registry.method("memory", "read", lambda store: Memory(store))
    def stats(self, view: Reader | None = None) -> MemoryStats:
        """What stands of each layer at a view's coordinate (default: now), and the cap."""
        if view is not None and not isinstance(view, Reader):
            raise InvalidError(f"view {view!r} is no view. Give one that as_of() gave.")
        stats = layer_stats(view or self._store)
        return MemoryStats(layers=stats, chunks=sum(layer.chunks for layer in stats), cap=self.cap)


@registry.read("memory")
def layer_stats(view: Reader) -> tuple[LayerStats, ...]:
    """What stands of each layer at the coordinate; what is of no layer, if there is any, last."""
    layers = tables.table(view.setting(LAYERS))
    found: dict[str | None, list[Row]] = {name: [] for name in layers}
    with view.reading() as sight:
        soon = sight.tx + SOON
        for row in sight.scan(kind=CHUNK, content=True):
            layer = tables.of_scope(layers, row.scope)
            found.setdefault(layer.name if layer else None, []).append(row)
    return tuple(_layer_stats(layers.get(name or ""), name, rows, soon) for name, rows in found.items())


@registry.read("memory")
def recollect(
    view: Reader,
    text: str,
    k: int = 10,
    *,
    layers: Iterable[str] | str | None = None,
    user: str | None = None,
    thread: str | None = None,
    tag: Iterable[str] | str = (),
    author: Iterable[str] | str = (),
    source: Iterable[str] | str = (),
    standing: Iterable[str] | str = (),
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    recorded_since: TimeLike | None = None,
    recorded_until: TimeLike | None = None,
    decay: Decay | None = None,
    hops: int = 2,
    memory: Memory | None = None,
) -> Recollection:
    """As `Memory.recall`, at the coordinate of a view. `memory`: one whose embedder is asked what the text means, instead of the store's."""
    meanings = None if memory is None else memory._meanings
    there = tables.table(view.setting(LAYERS))
    text_of("text", text, empty=True)
    asked = QuestionMeaning(meanings, text) if meanings else embedders.asked(view, text)
    lens = _Lens(_scopes(there, layers, user), optional_text("thread", thread), asked)
    found = recall(
        view, text, k, kinds=CHUNK, tag=tag, author=author, source=source, standing=standing, since=since, until=until,
        recorded_since=recorded_since, recorded_until=recorded_until, decay=decay, hops=hops, lens=lens,
    )  # fmt: skip
    hits = tuple(_hit(there, hit) for hit in found.hits)
    return Recollection.made({**found.__dict__, "hits": hits})


class _Lens:
    """Restricts recall to chunks of some scopes and of a thread or of no thread. Nodes of other kinds pass."""

    def __init__(
        self, wanted: Callable[[str], bool] | None, thread: str | None, question: QuestionMeaning
    ) -> None:
        self._wanted, self._thread, self._question = wanted, thread, question

    @property
    def note(self) -> str:
        """Return how the search was done, and what could not be compared."""
        return self._question.note

    def seen(self, sight: Sight) -> Callable[[int], bool] | None:
        """Return the test of which entities may be found and passed through; None if all may."""
        if self._wanted is None and self._thread is None:
            return None
        scope_of = sight.scope_of
        wanted, asked = self._wanted or (lambda scope: True), self._thread
        allowed: dict[str, bool] = {}

        def fits(ent: int) -> bool:
            scope = scope_of(ent, CHUNK)
            if scope is None:
                return True
            fit = allowed.get(scope)
            if fit is None:
                fit = allowed[scope] = wanted(scope)
            return fit and (asked is None or _thread(sight, ent) in (None, asked))

        return fits

    def nearest(self, sight: Sight, most: int, fits: Callable[[int], bool] | None) -> Mapping[int, float]:
        """Return the chunks nearest in meaning."""
        return self._question.nearest(sight, most, fits, CHUNK, self._wanted, self._thread)


def _scopes(
    layers: Mapping[str, Layer], names: Iterable[str] | str | None, user: str | None
) -> Callable[[str], bool] | None:
    """Return the test of whether a scope is wanted; None if all are."""
    optional_text("user", user)
    if names is None and user is None:
        return None
    prefixes = None if names is None else {_layer(layers, name).prefix for name in ids("layers", names)}

    def wanted(scope: str) -> bool:
        prefix, colon, whose = scope.partition(":")
        return (prefixes is None or prefix + colon in prefixes) and (user is None or whose in ("", user))

    return wanted


def _thread(sight: Sight, ent: int) -> str | None:
    body = sight.body_of(sight.find(ent), holding=b'"thread":')
    thread: str | None = body.get("content", {}).get("thread")
    return thread


def _chunk(store: Store, layers: Mapping[str, Layer], asked: Mapping[str, Any]) -> _CheckedChunk:
    """Return the requested chunk, checked. Raises InvalidError."""
    if not isinstance(asked, Mapping):
        raise InvalidError(f"{asked!r} is no mapping. Give one such as {{'text': …, 'layer': 'soul'}}.")
    if unknown := sorted(str(name) for name in asked.keys() - set(FIELDS)):
        raise InvalidError.choice("field of a chunk", unknown[0], FIELDS)
    layer = _layer(layers, asked.get("layer"))
    source = text_of("source", asked.get("source") or "", empty=True)
    key, since = asked.get("key"), asked.get("valid_from")
    return _CheckedChunk(
        text=text_of("text", asked.get("text")),
        layer=layer,
        source=source if source.startswith(layer.prefix) else layer.prefix + source,
        user=optional_text("user", asked.get("user")) or "",
        thread=optional_text("thread", asked.get("thread")) or None,
        valid_from=None if since is None else store.instant_of(since, "valid_from"),
        key=None if key is None else slot_name(key),
        tags=tags_of(asked.get("tags") or ()),
        metadata=json_object("metadata", asked.get("metadata") or {}),
    )


def _layer(layers: Mapping[str, Layer], name: Any) -> Layer:
    if not isinstance(name, str) or name not in layers:
        raise InvalidError.choice("layer", name, layers)
    return layers[name]


def _hit(layers: Mapping[str, Layer], hit: Hit) -> MemoryHit:
    assert isinstance(hit.node, Node)
    layer = tables.of_scope(layers, hit.node.scope)
    return MemoryHit.made({**hit.__dict__, "layer": layer.name if layer else None})


def _statement(row: Row) -> str:
    content = row.content or {}
    return sameness.statement(content, given_text(content, row.text))


def _layer_stats(layer: Layer | None, name: str | None, rows: list[Row], soon: Instant) -> LayerStats:
    return LayerStats(
        layer=name,
        chunks=len(rows),
        bytes=sum(len(_statement(row).encode()) for row in rows),
        oldest=moment(min(row.known_since for row in rows)) if rows else None,
        expiring=sum(tables.over(layer, row.known_since, soon) for row in rows),
    )
