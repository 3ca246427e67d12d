"""Read the working set of a transaction at one coordinate as values, for its verbs. The changes of the transaction are included."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from graphstore.errors import InvalidError, NotFoundError
from graphstore.read.described import Described, event_from, node_from, tombstone
from graphstore.read.working_set import WorkingSet
from graphstore.values.keys import slot_name
from graphstore.values.models import UPRIGHT, Event, Json, Link, Node
from graphstore.values.period import exactly
from graphstore.view.rows import NumberedRows

_ALIAS = re.compile(r"(.+)-v([1-9][0-9]*)@(.+)\Z", re.DOTALL)
_REF = re.compile(r"(.+)-v([1-9][0-9]*)\Z", re.DOTALL)


class WorkingSight(NumberedRows):
    """Reads the store at (valid, tx), as a transaction leaves it."""

    __slots__ = ()
    index: WorkingSet

    # ------------------------------------------------------------------ ids

    def resolve(self, id: str) -> tuple[int, int]:
        """Return the entity with a full id, or with a reference `{id}-v{n}`, as known here; and n or 0."""
        index = self.index
        if not isinstance(id, str):
            raise InvalidError(f"id {id!r} is no text. Give a str.")
        ent = self.entity(id)
        if ent >= 0:
            return ent, 0
        ver = self._alias(id)
        if ver >= 0:
            return index.v_ent[ver], index.v_num[ver]
        found = _REF.match(id)
        whole = self.entity(found[1]) if found else -1
        if found and whole >= 0:
            if self.last_row(whole, int(found[2])) >= 0:
                return whole, int(found[2])
            raise NotFoundError(f"no version {found[2]} of {found[1]!r} as known at {exactly(self.tx)}.")
        raise NotFoundError.nearest("node or event", id, partial(self.ids_beside, id))

    def _alias(self, id: str) -> int:
        """Return the version that `{id}-v{n}@{branch}` names, as known here: a merged version of that branch; -1 if there is none."""
        index = self.index
        found = _ALIAS.match(id)
        ver = index.aliases.get((found[3], int(found[2]), found[1]), -1) if found else -1
        return ver if ver >= 0 and self.last_row(index.v_ent[ver], index.v_num[ver]) >= 0 else -1

    def ids_beside(self, id: str) -> list[str]:
        """Return the known ids that a misspelt id may mean."""
        return [each for each in self.index.ids_beside(id) if self.entity(each) >= 0]

    def knows_link(self, id: str) -> bool:
        """Return True if a link with exactly this id was ever made."""
        return id in self.index.link_ids

    def links_made(self) -> int:
        """Return how many links were ever made, including those of an open transaction."""
        return len(self.index.l_name)

    def in_slot(self, kind: str | None, key: str, scope: str) -> Iterable[int]:
        """Return every node with a key in a scope, in the order they were first known. `kind`: None for any."""
        there = self.index.slots.get((slot_name(key), scope), ())
        return there if kind is None else [ent for ent in there if self.index.kind[ent] == kind]

    # ------------------------------------------------------------------ standings

    def standing(self, ent: int) -> str:
        """Return the standing of an entity here."""
        found = self._standings.get(ent)
        if found is None:
            found = self.index.written_standing(ent, self.valid, self.tx)
            if found is None:
                found = self.index.standing(ent, self.valid, self.tx)
                if found == "stands":
                    found = self.upright(ent)
            self._standings[ent] = found
        return found

    def stands(self, ent: int) -> bool:
        """Return True if an entity stands here, shaky or not."""
        return (self._standings.get(ent) or self.index.standing(ent, self.valid, self.tx)) in UPRIGHT

    def upright(self, ent: int) -> str:
        """Return the standing of an entity that holds: `stands`, or `shaky` because of what it rests on."""
        return "shaky" if self.index.is_shaky(ent, self.valid, self.tx) else "stands"

    def is_superseded(self, ent: int) -> bool:
        """Return True if a link that supersedes an entity holds here."""
        return self.index.superseded(ent, self.valid, self.tx)

    def admitted(self) -> Callable[[int], bool]:
        """Return a predicate on entities: True unless the entity is a message that was not authorized."""
        index = self.index

        def is_admitted(ent: int) -> bool:
            if not index.is_event[ent] or ent in index.gone:
                return True
            ver = index.versions_of[ent][0]
            body = self.core.body(index.v_pos[ver], index.v_len[ver], holding=b'"authorized":false')
            return body.get("authorized") is not False

        return is_admitted

    # ------------------------------------------------------------------ values

    def thing(self, ent: int) -> Node | Event:
        """Return a node or event with any standing. If it does not stand, it has its last content known here."""
        found = self._things.get(ent)
        if found is None:
            ver, row = self._shown(ent)
            found = self._event_of(ver, row) if row.is_event else node_from(row, self.content_of(ver))
            self._things[ent] = found
        return found

    def _shown(self, ent: int) -> tuple[int, Described]:
        """Return the version that shows an entity here, and its row. A thing added and superseded in one transaction held at no instant, but a link may refer to it."""
        index = self.index
        standing, row = index.face(ent, self.valid, self.tx)
        if standing == "stands":
            standing = self._standings.get(ent) or self.upright(ent)
        self._standings[ent] = standing
        if row < 0:
            believed = index.believed(ent, self.tx)
            row = believed[-1] if believed else index.last_written(ent, self.tx)
        if row < 0:
            ver, born = index.versions_of[ent][0], index.born[ent]
            return ver, self.described_row(ver, standing, (born, born, born, born))
        return index.r_ver[row], self.row_as_described(row, standing)

    def written(self, row: int, standing: str, body: Json) -> Node:
        """Return the node of a row that has just been written. `body`: the body just written."""
        return node_from(self.row_as_described(row, standing), body)

    def event(self, row: int, standing: str, links: tuple[Link, ...] | None = None) -> Event:
        """Return a row of an event as a value."""
        return self._event_of(self.index.r_ver[row], self.row_as_described(row, standing), links)

    def event_and_links(self, ent: int, body: Json | None = None) -> Event:
        """Return an event with any standing, and its links. `body`: its body, if the caller has it."""
        return self._event_of(*self._shown(ent), self.links_of(ent), body)

    def _event_of(
        self, ver: int, row: Described, links: tuple[Link, ...] | None = None, body: Json | None = None
    ) -> Event:
        ent = self.index.v_ent[ver]
        if body is None:
            body = self.content_of(ver) or tombstone(row.forgotten or "", self.kept_place(ent))
        metadata = self.happened.latest(ent, body).get("metadata", {})
        status = self.happened.status(ent, body)
        return event_from(row, {**body, "metadata": metadata}, self.happened.seen(ent), status, links)
