"""What a copy of a part of a store rests on outside of that part: how its things stand is asked of the whole store, and nothing of what is there is shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from graphstore.core.index.foundations import Path, ShakyEntity
from graphstore.core.index.occurrences import Happened
from graphstore.core.index.shaky_spans import YES, Shaken
from graphstore.core.read.sight import Core, Sight
from graphstore.values.models import OUTSIDE, Link, Node, Shaky
from graphstore.values.period import BEGINNING, Instant, moment


class Outside:
    """The foundations outside of a part, as far as what is inside is shaky by them."""

    def __init__(self, whole: Core, part: Core) -> None:
        self._whole, self._part = whole, part
        self._index: Any = None
        self._known = 0
        self._events: dict[int, int] = {}  # those with such a link -> what they are in the whole

    def follow(self, crossing: Collection[str]) -> None:
        """Have reads of the part ask. `crossing`: the ids inside that ever had a link to something outside."""
        part = self._part
        index = part.index
        if not crossing or (index is self._index and len(crossing) == self._known):
            return
        with part.lock:
            ents = [index.ids[name] for name in crossing if name in index.ids]
            index.rests.update(ents)
            index._taint(list(ents), BEGINNING)
            index._shaken = _Asking(self, index, part.raw)
            part.graphs.beside = self._whole.graphs
            whole = self._whole.index
            self._events = {ent: whole.ids[index.names[ent]] for ent in ents if index.is_event[ent]}
            index._outside = self if self._events else None
        self._index, self._known = index, len(crossing)

    def is_shaky(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Whether something of the part that has not fallen is shaky in the whole."""
        there = self._whole.index.ids.get(self._part.index.names[ent], -1)
        return there >= 0 and self._whole.sight(valid, tx).upright(there) == "shaky"

    def is_superseded(self, ent: int, valid: Instant, tx: Instant) -> bool:
        """Whether an event of the part is superseded in the whole."""
        there = self._events.get(ent, -1)
        return there >= 0 and self._whole.index.superseded(there, valid, tx)

    def resolved(self, ent: int, valid: Instant, tx: Instant) -> list[Instant]:
        """The instants at which an event of the part was resolved in the whole."""
        there = self._events.get(ent, -1)
        return [] if there < 0 else Happened(self._whole.index, self._whole.raw, valid, tx).resolutions(there)

    def shaky(self, sight: Sight) -> Iterator[Shaky]:
        """What is shaky in the part: the latest fall first, wherever that is."""
        own = {found.ent: found for found in sight.resting.shaky_entities()}
        whole = self._whole.sight(sight.valid, sight.tx)
        for there in whole.resting.shaky_entities():
            ent = sight.index.ids.get(whole.index.names[there.ent], -1)
            found = own.pop(ent, None)
            if found is not None:
                yield sight.shaky(found)
            elif ent >= 0 and sight.find(ent) >= 0:
                yield self._unseen(sight, ent, there)
        yield from map(sight.shaky, own.values())

    def _unseen(self, sight: Sight, ent: int, there: ShakyEntity) -> Shaky:
        root: dict[str, Any] = {
            **dict.fromkeys(Node.model_fields),
            "id": OUTSIDE,
            "kind": "outside",
            "scope": "",
            "number": 1,
            "content": {},
            "tags": (),
            "trigger": "initial",
            "standing": "shaky",
            **dict.fromkeys(("recorded_at", "valid_from", "tx_from"), moment(there.fell_at)),
        }
        return Shaky.made(
            {
                "node": sight.thing(ent),
                "root": Node.made(root),
                "links": list(self._seen(sight, there.path)),
                "why": None,
                "recorded_at": moment(there.fell_at),
            }
        )

    def _seen(self, sight: Sight, path: Path) -> Iterator[Link]:
        """The links of a way, up to the first that leads outside."""
        there, here = self._whole.index, sight.index
        while path:
            row, path = path
            link = here.link_ids.get(there.l_name[there.k_link[row]], -1)
            found = here.find_link(link, sight.valid, sight.tx) if link >= 0 else -1
            if found < 0:
                return
            yield sight.link(found)


class _Asking(Shaken):
    """The spans of a part, for what is not shaky by what is outside."""

    def __init__(self, outside: Outside, *args: Any) -> None:
        super().__init__(*args)
        self._outside = outside

    def says(self, ent: int, valid: Instant, tx: Instant) -> int:
        return YES if self._outside.is_shaky(ent, valid, tx) else super().says(ent, valid, tx)

    def keeps(self, ent: int) -> bool:
        return False
