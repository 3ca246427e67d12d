"""Sweep a store outside of writes: an extractor proposes links between new things, a judge decides which of them contradict each other, and old events are evicted.

A sweep reads what was recorded since the last one. It calls the extractor and the judge without holding a lock. One transaction writes the accepted links and the instant
up to which was read. Then the upkeep runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from graphstore.errors import ConflictError, InvalidError, NotFoundError
from graphstore.store.judging import JUDGE, Judge, Pair, Verdict, pairs_of, verdicts
from graphstore.store.proposals import Extractor, Proposal, Proposed, Refusal, decided, propose
from graphstore.store.whole_store import WholeStore
from graphstore.values.models import UPRIGHT, Link, Node
from graphstore.values.period import TimeLike, instant, moment
from graphstore.view.conflicts import are_linked
from graphstore.view.view import View
from graphstore.write.act import Act
from graphstore.write.verbs import AddLink

SWEPT = "swept"  # the setting: the tx up to which an extractor was called
JUDGED = "judged"  # the setting: the tx up to which a judge was called
COUNTED = 1000
"""The largest number of contradictions, and of shaky things, that is counted."""
_TELLING = frozenset({"add_node", "revise", "amend", "record_event"})


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did and found: how many things it asked about, recorded after `since` up to `until` (None: there was no extractor), the links
    written, the proposals and verdicts refused and why; the ids evicted; and how many contradictions are open and things shaky, up to 1000.

    `judged`: how many pairs a judge was asked about, None without a judge; `contradicting`: the links its verdicts became.
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
    judged: int | None = None
    contradicting: tuple[Link, ...] = ()


def sweep(
    store: WholeStore,
    extractor: Extractor | None,
    judge: Judge | None,
    since: TimeLike | None,
    evict_old: Callable[[], list[str]],
) -> Swept:
    """Run one sweep; `evict_old` is its upkeep. Raises what the extractor and the judge raise; nothing is written then."""
    _refuse_no_function("extractor", extractor, "a view and a list of ids")
    _refuse_no_function("judge", judge, "a list of pairs")
    given = None if since is None else moment(store.instant_of(since, "since", "tx"))
    began = _last(store, SWEPT) if given is None else given
    view = store.as_of()
    ids = [] if extractor is None else recorded_since(store, view, began)
    proposed = propose(view, extractor(view, list(ids))) if extractor and ids else decided((), ())
    case = None if judge is None else _Case.heard(store, view, judge, given)
    links, contradicting, proposed = _write(store, view, ids, proposed, case)
    evicted = evict_old()
    return Swept(
        since=began,
        until=None if extractor is None else view.at.tx,
        asked=len(ids),
        admitted=links,
        refused=proposed.refused,
        counts=proposed.counts,
        evicted=tuple(evicted),
        contradictions=len(store.contradictions(limit=COUNTED)),
        shaky=len(store.shaky(limit=COUNTED)),
        judged=None if case is None else len(case.pairs),
        contradicting=contradicting,
    )


def _refuse_no_function(name: str, function: object, of: str) -> None:
    if function is not None and not callable(function):
        raise InvalidError(f"{name} {function!r} cannot be called. Give a function of {of}.")


@dataclass(frozen=True, slots=True)
class _Case:
    """Holds what a judge received, and its verdicts."""

    ids: list[str]
    pairs: list[Pair]
    verdicts: list[Verdict]

    @classmethod
    def heard(cls, store: WholeStore, view: View, judge: Judge, since: datetime | None) -> _Case:
        ids = recorded_since(store, view, _last(store, JUDGED) if since is None else since)
        pairs = pairs_of(view, ids)
        return cls(ids, pairs, verdicts(judge, pairs) if pairs else [])


def recorded_since(store: WholeStore, view: View, since: datetime | None) -> list[str]:
    """Return the ids of things that stand in a view and were added, revised or happened after `since`, in the order of first recording."""
    names = dict.fromkeys(
        change.subject
        for change in store.changes(since)
        if change.verb in _TELLING and change.tx <= view.at.tx
    )
    with view.reading() as sight:
        standings = sight.standings_of(names)
    return [name for name in names if standings.get(name) in UPRIGHT]


def _last(store: WholeStore, setting: str) -> datetime | None:
    """Return the tx up to which an extractor, or a judge, was called; None if never."""
    kept = store.setting(setting)
    return None if kept is None else moment(instant(kept))


def _write(
    store: WholeStore, view: View, ids: list[str], proposed: Proposed, case: _Case | None
) -> tuple[tuple[Link, ...], tuple[Link, ...], Proposed]:
    """Write the admitted links, the judge's links, and how far was read. A link that the store refuses (a cycle, a cause after its effect) counts as refused, with the
    message."""
    if not (ids or (case and case.ids)):
        return (), (), proposed
    links: list[Link] = []
    contradicting: list[Link] = []
    refused = list(proposed.refused)
    with store.transaction():
        for proposal in proposed.admitted:
            _admit(links, refused, proposal, partial(_link, store, proposal))
        for pair, verdict in zip(case.pairs, case.verdicts, strict=True) if case else ():
            if verdict.contradicts:
                source, target = pair.newer.id, pair.older.id
                proposal = Proposal(source, "contradicts", target, verdict.reason, JUDGE)
                _admit(contradicting, refused, proposal, partial(_convict, store, pair, proposal))
        for setting, read in ((SWEPT, bool(ids)), (JUDGED, bool(case and case.ids))):
            if read:
                with store.verb(is_narrow=True):
                    until = max(view.at.tx, _last(store, setting) or view.at.tx)
                    store.keep_setting("sweep", setting, until.isoformat())
    return tuple(links), tuple(contradicting), decided(proposed.admitted, refused)


def _admit(links: list[Link], refused: list[Refusal], proposal: Proposal, write: Callable[[], Link]) -> None:
    try:
        links.append(write())
    except (InvalidError, ConflictError, NotFoundError) as error:
        refused.append(Refusal(proposal, "refused by the store", str(error)))


def _convict(store: WholeStore, pair: Pair, proposal: Proposal) -> Link:
    """Link a pair that contradicts each other, from when both hold. Raises ConflictError if either changed since it was judged."""
    with store.verb(is_narrow=True) as work:
        act = Act(store._core, work)
        sight = act.sight()
        ends = [act.known(each.id, node=True) for each in (pair.newer, pair.older)]
        for each, ent in zip((pair.newer, pair.older), ends, strict=True):
            now = sight.thing(ent)
            if now.standing not in UPRIGHT or not isinstance(now, Node) or now.ref != each.ref:
                raise ConflictError(
                    f"{each.id!r} changed while the judge was asked. The next sweep asks again."
                )
        if are_linked(sight, *ends):
            raise ConflictError(
                f"{pair.newer.id!r} and {pair.older.id!r} were linked while the judge was asked."
            )
        new = AddLink(
            proposal.source,
            proposal.kind,
            proposal.target,
            reason=proposal.reason,
            confidence="inferred",
            created_by=JUDGE,
            valid_from=max(pair.newer.valid_from, pair.older.valid_from),
            metadata={} if pair.about is None else {"about": pair.about},
        )
        return act.sight().link(new.row(act))


def _link(store: WholeStore, proposal: Proposal) -> Link:
    with store.verb(is_narrow=True) as work:
        act = Act(store._core, work)
        new = AddLink(
            proposal.source,
            proposal.kind,
            proposal.target,
            reason=proposal.reason,
            strength=None if proposal.strength is None else int(proposal.strength),
            confidence="inferred",
            created_by="extractor",
            metadata={**(proposal.metadata or {}), "basis": proposal.basis},
        )
        return act.linked([new.row(act)])[0]
