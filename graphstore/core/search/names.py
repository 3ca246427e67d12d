"""An index of nodes by key and by tag: a copy in memory beside the index, so that a topic is found without reading every body.

Keys and tags of a version never change, so each is indexed once for all coordinates; each read checks what stands at its coordinate.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import orjson

from graphstore.core.index.index import Index
from graphstore.core.search.source import Source
from graphstore.values.keys import topic_name, version_of


class Naming:
    """The names of one store. Each read follows the index first, one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # nobody waits for the store's lock while he holds it
        self._index: Index | None = None
        self._begin()

    def _begin(self) -> None:
        self._keyed: dict[str, list[int]] = {}  # name -> nodes; `auth_v2` under `auth` as well
        self._tagged: dict[str, array[int]] = {}  # name -> versions
        self._entities = self._versions = self._gone = 0

    def keyed(self, core: Source, name: str) -> list[int]:
        """The nodes whose key is `name` or a version of it, in the order they were first known."""
        with self._lock:
            index = core.index
            self._follow(index)
            if self._entities == len(index.names):
                return self._keyed.get(name, [])
            goal = index.mark().entities
            if self._entities < goal:
                with self._whole():
                    _note_keys(index, range(self._entities, goal), self._keyed)
                self._entities = goal
            found = self._keyed.get(name, [])
            if goal < len(index.names):
                pending: dict[str, list[int]] = {}
                _note_keys(index, range(goal, len(index.names)), pending)
                return found + pending.get(name, [])
            return found

    def behind(self, index: Index) -> int:
        """How many versions are not searched for tags yet."""
        there = self._versions if self._index is index and self._gone == len(index.gone) else 0
        return len(index.v_ent) - there

    def tagged(self, core: Source, name: str) -> Sequence[int]:
        """The versions with the tag `name`, in the order they were recorded."""
        with self._lock:
            index = core.index
            self._follow(index)
            if self._versions == len(index.v_ent):
                return self._tagged.get(name, ())
            goal = index.mark().versions
            if self._versions < goal:
                with self._whole():
                    _note_tags(core, range(self._versions, goal), self._tagged)
                self._versions = goal
            found = list(self._tagged.get(name, ()))
            if goal < len(index.v_ent):
                pending: dict[str, array[int]] = {}
                _note_tags(core, range(goal, len(index.v_ent)), pending)
                found += pending.get(name, ())
            return found

    def known(self, core: Source, tx: int) -> Iterator[str]:
        """The names of everything known at `tx`, each once."""
        with self._lock:
            self.keyed(core, ""), self.tagged(core, "")
            keyed, tagged = list(self._keyed.items()), list(self._tagged.items())
        index = core.index
        seen: set[str] = set()
        for name, ents in keyed:
            if any(index.born[ent] <= tx for ent in ents):
                seen.add(name)
                yield name
        for name, versions in tagged:
            if name not in seen and any(_known_by(index, ver, tx) for ver in versions):
                yield name

    @contextmanager
    def _whole(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._index = None  # interrupted between two names: begin again
            raise

    def _follow(self, index: Index) -> None:
        # forgetting removes tags: it is rare, so all is indexed again
        if self._index is not index or self._gone != len(index.gone):
            self._begin()
            self._index, self._gone = index, len(index.gone)


def _known_by(index: Index, ver: int, tx: int) -> bool:
    rows = index.rows_of[index.v_ent[ver]]
    return any(index.r_ver[row] == ver and index.r_tx[row] <= tx for row in rows)


def _note_keys(index: Index, ents: Iterable[int], keyed: dict[str, list[int]]) -> None:
    for ent in ents:
        key = index.key[ent]
        if key is not None:
            for name in dict.fromkeys((key, version_of(key)[0] or key)):
                keyed.setdefault(name, []).append(ent)


def _note_tags(core: Source, versions: Iterable[int], tagged: dict[str, array[int]]) -> None:
    index, is_event = core.index, core.index.is_event
    for ver in versions:
        length, ent = index.v_len[ver], index.v_ent[ver]
        if not length or is_event[ent] or ent in index.gone:
            continue
        raw = bytes(core.raw(index.v_pos[ver], length))
        if b'"tags":' not in raw:
            continue
        for name in dict.fromkeys(map(topic_name, orjson.loads(raw).get("tags", ()))):
            tagged.setdefault(name, array("I")).append(ver)
