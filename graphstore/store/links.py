"""Everything about links under one name: the vocabulary of kinds, proposals and verdicts, and the sweep that collects them."""

from __future__ import annotations

from graphstore.store import registry
from graphstore.store.judging import Judge, Pair, Verdict
from graphstore.store.proposals import (
    THEMATIC_MOST,
    UNSAID_STRENGTH,
    Extractor,
    Proposal,
    Proposed,
    Readable,
    Refusal,
    Why,
    decided,
    propose,
    rounded,
)
from graphstore.store.store import Store
from graphstore.store.sweeping import Swept
from graphstore.values.period import TimeLike
from graphstore.values.vocabulary import (
    ALIASES,
    KINDS,
    Creator,
    Group,
    Kind,
    Sentence,
    Vocabulary,
    new_kind,
    strength_of,
)

__all__ = [
    "ALIASES",
    "KINDS",
    "THEMATIC_MOST",
    "UNSAID_STRENGTH",
    "Creator",
    "Extractor",
    "Group",
    "Judge",
    "Kind",
    "Pair",
    "Proposal",
    "Proposed",
    "Readable",
    "Refusal",
    "Sentence",
    "Verdict",
    "Vocabulary",
    "Why",
    "decided",
    "new_kind",
    "propose",
    "rounded",
    "strength_of",
    "sweep",
]


@registry.write("links", here=True)
def sweep(
    store: Store,
    extractor: Extractor | None = None,
    since: TimeLike | None = None,
    judge: Judge | None = None,
) -> Swept:
    """Ask the extractor and the judge about what was recorded since the last sweep, write what is admitted, and do the upkeep: `store.sweep`."""
    return store.sweep(extractor, judge=judge, since=since)
