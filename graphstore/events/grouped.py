"""Lists the occurrences of an event that one fingerprint merged, and splits them into several events on request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from graphstore.errors import InvalidError
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values.fingerprints import digest
from graphstore.values.inputs import text_of
from graphstore.values.models import Event, Json, Link
from graphstore.values.period import iso
from graphstore.view.view import Reader
from graphstore.write.recording import TOLD_APART


class _Apart(NamedTuple):
    """One of the new events, and its instants."""

    id: str
    at: tuple[datetime, ...]


@registry.read("events")
def occurrences(view: Reader, id: str) -> list[Json]:
    """Every time an event happened, oldest first, each with what was said of it then: `{"occurred_at", "description", "source", "metadata"}`.

    `source` None and `metadata` {}: it said none. Those of a retracted event are told too, those of a forgotten one are not. Raises NotFoundError
    for an unknown id, InvalidError for that of a node.
    """
    with view.reading() as sight:
        ent, _ = sight.resolve(id)
        if not sight.is_event(ent):
            raise InvalidError(f"{id!r} is a node. Its versions are versions({id!r}).")
        first = sight.body(ent)
        said = [(iso(at), {**first, **own}) for at, own in sight.happened.told(ent)] if first else []
    return [
        {"occurred_at": at, "description": body.get("description"), "source": body.get("source"), "metadata": body.get("metadata") or {}}
        for at, body in said
    ]  # fmt: skip


@registry.write("events")
def tell_apart(store: Store, id: str, *, reason: str) -> list[Event]:
    """Make an event that took several things for one into an event for each text its occurrences have. Returns them, the first first.

    The event is retracted; its links go to those that had happened when they began. What comes with its fingerprint later is told apart by its
    description and source, to the letter. `undo` takes it back. Raises InvalidError where all occurrences say the same, NotFoundError for an
    event that is unknown or does not stand.
    """
    text_of("reason", reason)
    with store.verb():
        event = store.event(id)
        if event.fingerprint is None:
            raise InvalidError(f"event {event.id!r} has no fingerprint, so no reports were taken for one.")
        texts: dict[tuple[str, str | None], list[Json]] = defaultdict(list)
        for each in occurrences(store, event.id):
            texts[each["description"], each["source"]].append(each)
        if len(texts) < 2:
            raise InvalidError(
                f"all {event.count} occurrences of {event.id!r} say the same: {event.description!r}. There is nothing to tell apart."
            )
        known = store.setting(TOLD_APART) or []
        store.keep_setting("tell_apart", TOLD_APART, [*known, event.fingerprint], event.id)
        apart = [_recorded(store, event, said, reason) for said in texts.values()]
        for link in event.links or ():
            _carry(store, event, link, apart)
        store.retract(event.id, reason=reason)
        return [store.event(each.id) for each in apart]


def _recorded(store: Store, event: Event, said: Sequence[Json], reason: str) -> _Apart:
    """Record the event of one text, with all its occurrences."""
    first = said[0]
    print = digest(event.type, first["description"], first["source"])
    shared: Any = {"origin": event.origin, "agent": event.agent, "fingerprint": print}
    id = ""
    for each in said:
        own = {**each, "metadata": each["metadata"] or None}
        id = store.record_event(event.type, **own, **shared).event.id
    store.link(id, "related_to", event.id, reason=reason, created_by="user")
    return _Apart(id, tuple(datetime.fromisoformat(each["occurred_at"]) for each in said))


def _carry(store: Store, event: Event, link: Link, apart: Sequence[_Apart]) -> None:
    """Copy a link of the event to the new events that had occurred when it began, or to the first."""
    began = [each for each in apart if each.at[0] <= link.valid_from] or apart[:1]
    names = ("reason", "strength", "confidence", "created_by", "valid_to")
    same = {name: getattr(link, name) for name in names}
    for each in began:
        source, target = (each.id if end == event.id else end for end in (link.source, link.target))
        since = max(link.valid_from, each.at[0])
        store.link(source, link.kind, target, valid_from=since, metadata=link.metadata or None, **same)
