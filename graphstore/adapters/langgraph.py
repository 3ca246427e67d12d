"""LangGraph's `BaseStore`, kept in a store: an item is a node, its namespace the scope, its time to live the end of its validity."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from graphstore.adapters import places
from graphstore.errors import InvalidError
from graphstore.memory.recall import recall
from graphstore.store.store import Store
from graphstore.values.models import Node

__all__ = ["LangGraphStore"]

KIND = "item"
_SOURCE = "langgraph:"
_UNSEARCHED = "unsearched"  # the tag of an item put with `index=False`
_AT = "index:"  # the tag of a path at which an item is searched
_TTL = "ttl:"  # the tag that says how many minutes an item lives
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class LangGraphStore(places.AtCoordinate, BaseStore):
    """A `BaseStore` for `graph.compile(store=…)`: all four operations, each with its async twin, on any open store.

    A batch reads first and then writes what it puts as one transaction. A deleted item has ended and is still there at `as_of`. A time to live is in
    minutes; reading an item lengthens it only with `ttl={"refresh_on_read": True}`, since that is a write. `query` finds by words, and by meaning
    where the store has an embedder; without one, items come with the last written first. With `index`, as LangGraph's own stores take it, a query ranks
    all items of the namespace by its embeddings, which are made when they are first searched and kept in this process.
    """

    supports_ttl = True
    _read_only = "this is at a coordinate already. Call as_of on the store's own adapter."

    def __init__(
        self, store: Store, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self._use(store)
        self.ttl_config = {"refresh_on_read": False, **(ttl or {})}
        self._vectors = None if index is None else _ItemVectors(index)

    @property
    def index_config(self) -> IndexConfig | None:
        """What was given as `index`."""
        return None if self._vectors is None else self._vectors.config

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The answers of the operations in their order. Of several puts of one item the last counts."""
        answers: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                puts[_id(op.namespace, op.key)] = op
                answers.append(None)
            elif isinstance(op, GetOp):
                answers.append(self._get(op))
            elif isinstance(op, SearchOp):
                answers.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                answers.append(self._list(op))
            else:
                raise InvalidError(f"{op!r} is no operation of a LangGraph store.")
        if puts:
            self._put(puts)
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _put(self, puts: Mapping[str, PutOp]) -> None:
        store = self._store
        if store is None:
            raise InvalidError("a coordinate of the past is read only. Put into the store's own adapter.")
        with store.transaction(reason="langgraph"):
            for id, op in puts.items():
                if op.value is not None:
                    tags = [_UNSEARCHED] if op.index is False else [_AT + path for path in op.index or ()]
                    until = None
                    if op.ttl is not None:
                        tags.append(f"{_TTL}{op.ttl}")
                        until = store.at.valid + timedelta(minutes=op.ttl)
                    scope = places.joined(op.namespace)
                    places.put(
                        store, id, KIND, op.value, scope=scope, tags=tags,
                        source=_source(op.namespace), valid_to=until,
                    )  # fmt: skip
                elif (node := places.found(store, id, KIND)) is not None:
                    places.remove(store, node, "deleted")

    def _get(self, op: GetOp) -> Item | None:
        node = places.found(self._reader, _id(op.namespace, op.key), KIND)
        if node is None:
            return None
        self._refresh([node], op.refresh_ttl)
        return Item(**self._described(node))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        depth = len(op.namespace_prefix)

        def wanted(node: Node) -> bool:
            return (
                node.kind == KIND
                and (node.source or "").startswith(_SOURCE)
                and places.parted(node.scope)[:depth] == tuple(op.namespace_prefix)
                and all(_matches(node.content.get(name), value) for name, value in (op.filter or {}).items())
            )

        last = op.offset + op.limit
        asks = bool(op.query) and not str(op.query).isspace()
        if asks and self._vectors is None:
            scored = self._recalled(op, wanted, last)
        else:
            nodes = [node for node in self._reader.nodes(KIND) if wanted(node)]
            nodes.sort(key=lambda node: node.recorded_at, reverse=True)
            scored = self._ranked(str(op.query), nodes) if asks else [(node, None) for node in nodes]
        page = scored[op.offset : last]
        self._refresh([node for node, _ in page], op.refresh_ttl)
        return [SearchItem(**self._described(node), score=score) for node, score in page]

    def _recalled(
        self, op: SearchOp, wanted: Callable[[Node], bool], last: int
    ) -> list[tuple[Node, float | None]]:
        """What a question finds, best first: as much again is asked for while filters leave too little."""
        k = max(last, 1)
        while True:
            hits = recall(
                self._reader,
                str(op.query).replace(":", ": "),  # no filter of ours
                k,
                kinds=KIND,
                source=_source(op.namespace_prefix),
                hops=0,
            ).hits
            fitting: list[tuple[Node, float | None]] = [
                (hit.node, hit.score)
                for hit in hits
                if isinstance(hit.node, Node) and _UNSEARCHED not in hit.node.tags and wanted(hit.node)
            ]
            if len(fitting) >= last or len(hits) < k:
                return fitting
            k *= 2

    def _ranked(self, query: str, nodes: list[Node]) -> list[tuple[Node, float | None]]:
        """All of these by the embeddings of the index, the nearest first; last what is not searched."""
        assert self._vectors is not None
        fields = self._vectors.fields
        asked = [(node.content, _paths(node.tags, fields)) for node in nodes]
        scored = list(zip(nodes, self._vectors.scores(query, asked), strict=True))
        return sorted(scored, key=lambda each: (each[1] is None, -(each[1] or 0.0)))

    def _list(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        namespaces = {
            places.parted(node.scope)
            for node in self._reader.nodes(KIND)
            if (node.source or "").startswith(_SOURCE)
        }
        matching = {
            namespace[: op.max_depth]
            for namespace in namespaces
            if all(_lies(namespace, condition) for condition in op.match_conditions or ())
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _refresh(self, nodes: Iterable[Node], asked: bool) -> None:
        """Lengthen the lives of what is read, where that is asked for."""
        if not asked or self._store is None:
            return
        for node in nodes:
            minutes = [float(tag.removeprefix(_TTL)) for tag in node.tags if tag.startswith(_TTL)]
            if minutes and node.valid_to is not None:
                until = self._store.at.valid + timedelta(minutes=minutes[0])
                if until > node.valid_to:
                    self._store.revise(
                        node.id, node.content, valid_from=node.valid_to, valid_to=until, reason="read"
                    )

    def _described(self, node: Node) -> dict[str, Any]:
        """The arguments of an item. It was created when it was first put, updated when this was said."""
        return {
            "namespace": places.parted(node.scope),
            "key": places.parted(node.id.removeprefix(_SOURCE))[-1],
            "value": node.content,
            "created_at": min(version.recorded_at for version in self._reader.history(node.id)),
            "updated_at": node.recorded_at,
        }


class _ItemVectors:
    """The vectors of the texts of items, made when a search first needs them and kept while this is: of equal texts once.

    Raises InvalidError for a vector that has not as many numbers as `dims` of the index says.
    """

    def __init__(self, index: IndexConfig) -> None:
        self.config = index
        self.fields = tuple(index.get("fields") or ("$",))
        self._embeddings = ensure_embeddings(index.get("embed"))
        self._of_text: dict[str, Any] = {}

    def scores(
        self, query: str, items: Sequence[tuple[Mapping[str, Any], Iterable[str]]]
    ) -> list[float | None]:
        """Return how near each value is to a query by its texts at these paths, from -1 to 1; None of a value that has none there."""
        import numpy as np

        texts = [self._texts(value, paths) for value, paths in items]
        self._make(dict.fromkeys(text for each in texts for text in each))
        if not any(texts):
            return [None] * len(texts)
        near = np.stack([self._of_text[text] for each in texts for text in each]) @ self._unit(
            self._asked(query)
        )
        scores, begin = [], 0
        for each in texts:
            scores.append(float(near[begin : begin + len(each)].max()) if each else None)
            begin += len(each)
        return scores

    def _texts(self, value: Mapping[str, Any], paths: Iterable[str]) -> list[str]:
        return [
            text
            for path in paths
            for text in get_text_at_path(value, path if path == "$" else tokenize_path(path))
        ]

    def _make(self, texts: Iterable[str]) -> None:
        new = [text for text in texts if text not in self._of_text]
        if new:
            vectors = map(self._unit, self._embedded(new))
            self._of_text.update(zip(new, vectors, strict=True))

    @property
    def _is_asynchronous(self) -> bool:
        """Return True if nothing but an asynchronous function was given."""
        return getattr(self._embeddings, "afunc", None) is not None

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        made: list[list[float]]
        if self._is_asynchronous:
            made = asyncio.run(self._embeddings.aembed_documents(texts))
        else:
            made = self._embeddings.embed_documents(texts)
        return made

    def _asked(self, query: str) -> list[float]:
        made: list[float]
        if self._is_asynchronous:
            made = asyncio.run(self._embeddings.aembed_query(query))
        else:
            made = self._embeddings.embed_query(query)
        return made

    def _unit(self, vector: Sequence[float]) -> Any:
        import numpy as np

        made = np.asarray(vector, dtype=np.float32)
        dims = self.config.get("dims")
        if made.ndim != 1 or (dims is not None and made.size != dims):
            raise InvalidError(
                f"a vector of shape {made.shape} came from the embeddings, and the index has dims={dims}."
            )
        return made / (float(np.linalg.norm(made)) or 1.0)


def _id(namespace: Iterable[str], key: str) -> str:
    return _SOURCE + places.joined((*namespace, key))


def _source(namespace: Iterable[str]) -> str:
    """Where an item is from; that of a namespace above begins alike."""
    return _SOURCE + "".join(places.joined((part,)) + "/" for part in namespace)


def _paths(tags: Iterable[str], fields: tuple[str, ...]) -> tuple[str, ...]:
    """At which paths of its value an item is searched, by its tags."""
    own = tuple(tag.removeprefix(_AT) for tag in tags if tag.startswith(_AT))
    return () if _UNSEARCHED in tags else own or fields


def _lies(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends so; `*` stands for any part."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", said) for said, wanted in zip(part, path, strict=True))


def _matches(said: Any, wanted: Any) -> bool:
    """Whether a value is what a filter wants: the same, or within its `$` operators; of an object, the fields that are named."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_holds(said, name, value) for name, value in wanted.items())
        return isinstance(said, Mapping) and all(
            _matches(said.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return isinstance(said, list | tuple) and list(said) == list(wanted)
    return bool(said == wanted)


def _holds(said: Any, name: str, value: Any) -> bool:
    if name not in _OPERATORS:
        raise InvalidError.choice("operator", name, tuple(_OPERATORS))
    try:
        return bool(_OPERATORS[name](said, value))
    except TypeError:  # they have no order
        return False
