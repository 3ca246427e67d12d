"""The sweep, which runs outside of writes: an extractor proposes links between new things, and old events are evicted.

A sweep: a view → what was recorded since the last one → the extractor, with no lock held → a decision on its proposals → one
transaction with the admitted links and the instant up to which was read → upkeep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from graphstore.core.read.view import View
from graphstore.core.write.act import Act
from graphstore.core.write.verbs import link_row
from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.store.proposals import Extractor, Proposal, Proposed, Refusal, decided, propose
from graphstore.store.whole_store import WholeStore
from graphstore.values.models import Link
from graphstore.values.period import TimeLike, instant, moment

SWEPT = "swept"  # the setting: up to which tx an extractor was asked
COUNTED = 1000
"""The most contradictions, and shaky things, that are counted."""
_TELLING = frozenset({"add_node", "revise", "record_event"})


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did and found: how many things it asked about, recorded after `since` up to `until` (None: there was no extractor), the links
    written, the proposals refused and why; the ids evicted; and how many contradictions are open and things shaky, up to 1000.
    """

    since: datetime | None
    until: datetime | None
    asked: int
    admitted: tuple[Link, ...]
    refused: tuple[Refusal, ...]
    counts: dict[str, int]
    evicted: tuple[str, ...]
    contradictions: int
    shaky: int


def sweep(
    store: WholeStore, extractor: Extractor | None, since: TimeLike | None, evict_old: Callable[[], list[str]]
) -> Swept:
    """One sweep; `evict_old` is its upkeep. Raises what the extractor raises, with nothing written."""
    if extractor is not None and not callable(extractor):
        raise InvalidError(
            f"extractor {extractor!r} cannot be called. Give a function of a view and a list of ids."
        )
    began = _last(store) if since is None else moment(store._time(since, "since", "tx"))
    until: datetime | None = None
    ids: list[str] = []
    links: tuple[Link, ...] = ()
    proposed = decided((), ())
    if extractor is not None:
        view = store.as_of()
        until = view.at.tx
        ids = recorded_since(store, view, began)
        if ids:
            proposed = propose(view, extractor(view, list(ids)))
            links, proposed = _write(store, proposed, until)
    evicted = evict_old()
    return Swept(
        since=began,
        until=until,
        asked=len(ids),
        admitted=links,
        refused=proposed.refused,
        counts=proposed.counts,
        evicted=tuple(evicted),
        contradictions=len(store.contradictions(limit=COUNTED)),
        shaky=_shaky(store),
    )


def recorded_since(store: WholeStore, view: View, since: datetime | None) -> list[str]:
    """The ids of what stands in a view and was made, revised or happened after `since`, in the order it was first recorded."""
    names = dict.fromkeys(
        change.subject
        for change in store.changes(since)
        if change.verb in _TELLING and change.tx <= view.at.tx
    )
    with view._core.lock:
        sight = view._sight()
        known = sight.index.ids
        return [
            name for name in names if name in known and sight.standing(known[name]) in ("stands", "shaky")
        ]


def _last(store: WholeStore) -> datetime | None:
    """Up to when an extractor was asked, None when never."""
    kept = store._core.index.setting(SWEPT)
    return None if kept is None else moment(instant(kept))


def _write(store: WholeStore, proposed: Proposed, until: datetime) -> tuple[tuple[Link, ...], Proposed]:
    """Write the admitted links and how far was read. What the store refuses (a cycle, a cause after its effect) is refused with its message."""
    links: list[Link] = []
    refused = list(proposed.refused)
    with store.transaction():
        for proposal in proposed.admitted:
            try:
                links.append(_link(store, proposal))
            except (InvalidError, ConflictError, NotFoundError) as error:
                refused.append(Refusal(proposal, "refused by the store", str(error)))
        store._keep("sweep", SWEPT, max(until, _last(store) or until).isoformat())
    return tuple(links), decided(proposed.admitted, refused)


def _link(store: WholeStore, proposal: Proposal) -> Link:
    with store._verb() as work:
        act = Act(store._core, work)
        row = link_row(
            act,
            proposal.source,
            proposal.kind,
            proposal.target,
            reason=proposal.reason,
            strength=None if proposal.strength is None else int(proposal.strength),
            confidence="inferred",
            created_by="extractor",
            metadata={**(proposal.metadata or {}), "basis": proposal.basis},
        )
        return act.sight().link(row)


def _shaky(store: WholeStore) -> int:
    return len(store.shaky(limit=COUNTED))
