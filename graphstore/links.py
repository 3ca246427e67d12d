"""Links by one name for all there is about them: the vocabulary of their kinds, what is proposed, and the sweep that asks for proposals."""

from __future__ import annotations

from graphstore import calls
from graphstore.period import TimeLike
from graphstore.proposals import (
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
from graphstore.store import GraphStore
from graphstore.sweeping import Swept
from graphstore.vocabulary import (
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
    "Kind",
    "Proposal",
    "Proposed",
    "Readable",
    "Refusal",
    "Sentence",
    "Vocabulary",
    "Why",
    "decided",
    "new_kind",
    "propose",
    "rounded",
    "strength_of",
    "sweep",
]


@calls.write("links", here=True)
def sweep(store: GraphStore, extractor: Extractor | None = None, since: TimeLike | None = None) -> Swept:
    """Ask the extractor about what was told since the last sweep, write what is admitted, and do the upkeep: `store.sweep`."""
    return store.sweep(extractor, since=since)
