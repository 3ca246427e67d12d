"""Decide on proposed links by a view and the vocabulary. Nothing is written here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from pydantic import SkipValidation

from graphstore.errors import InvalidError, NotFoundError
from graphstore.store import registry
from graphstore.values.findings import Inspection
from graphstore.values.inputs import brief
from graphstore.values.models import Link
from graphstore.values.vocabulary import Vocabulary
from graphstore.view.view import View

UNSAID_STRENGTH = 3
"""The strength assumed for a link without one."""
THEMATIC_MOST = 2
"""The largest number of thematic links (`same_topic`) that a thing may get from proposals."""

Why = Literal[
    "unknown id",
    "self",
    "kind not allowed",
    "blank reason",
    "blank basis",
    "strength is no number",
    "strength out of range",
    "confidence is no number",
    "confidence out of range",
    "too weak",
    "already linked",
    "pair proposed before",
    "too many of the same topic",
    "refused by the store",
]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed link: `source kind target`, the reason, and its basis. `strength` is a number from 1 to 5, `confidence` one from 0 to 1, which
    the metadata of the link keeps, or a word: the link is `inferred` in any case."""

    source: str
    kind: str
    target: str
    reason: str
    basis: str
    # checked by the decision, which counts faults: text from a request must not become a number before
    strength: SkipValidation[float | None] = None
    confidence: SkipValidation[float | str] = "inferred"
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused proposal, and why; `detail` is the store's message."""

    proposal: Proposal
    why: Why
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Proposed:
    """The decision: proposals as they would be written (whole ids, canonical kind and direction), the refused ones, and how often each why."""

    admitted: tuple[Proposal, ...]
    refused: tuple[Refusal, ...]
    counts: dict[str, int]


class Extractor(Protocol):
    """Reads what was recorded and proposes links: a model, or rules. It runs outside of any write and may be slow."""

    def __call__(self, view: View, ids: list[str], /) -> Iterable[Proposal]: ...


class Readable(Protocol):
    """Lists what a decision on proposals reads of a view."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    def inspect(self, id: str) -> Inspection: ...
    def links_from(self, id: str) -> list[Link]: ...
    def backlinks_to(self, id: str) -> list[Link]: ...


@registry.read("links", here=True)
def propose(view: Readable, proposals: Iterable[Proposal]) -> Proposed:
    """Decide which proposals may be written; nothing is. Raises InvalidError for what is no Proposal.

    Of two proposals for one pair, whichever way round, the first that is taken stays.
    """
    if not isinstance(proposals, Iterable):
        raise InvalidError(f"proposals {brief(proposals)} is no list. Give a list of links.Proposal.")
    deciding = _Deciding(view)
    for proposal in proposals:
        if not isinstance(proposal, Proposal):
            raise InvalidError(
                f"{proposal!r} is no proposal. Give links.Proposal(source, kind, target, reason, basis)."
            )
        deciding.on(proposal)
    return decided(deciding.admitted, deciding.refused)


def decided(admitted: Iterable[Proposal], refused: Iterable[Refusal]) -> Proposed:
    """Return a decision, with the refusals counted."""
    refusals = tuple(refused)
    return Proposed(tuple(admitted), refusals, dict(Counter[str](refusal.why for refusal in refusals)))


@dataclass
class _Deciding:
    view: Readable
    admitted: list[Proposal] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    pairs: set[frozenset[str]] = field(default_factory=set)
    topics: Counter[str] = field(default_factory=Counter)  # thematic links admitted, by thing
    links: dict[str, list[Link]] = field(default_factory=dict)

    def on(self, proposal: Proposal) -> None:
        found = self._decide(proposal)
        if isinstance(found, Proposal):
            self.admitted.append(found)
        else:
            self.refused.append(Refusal(proposal, found))

    def _decide(self, given: Proposal) -> Proposal | Why:
        source, target = self._whole(given.source), self._whole(given.target)
        if source is None or target is None:
            return "unknown id"
        if source == target:
            return "self"
        try:
            sentence = self.view.vocabulary.sentence(source, given.kind, target, "inferred")
        except InvalidError:
            return "kind not allowed"
        if "extractor" not in sentence.kind.creators:
            return "kind not allowed"
        if _blank(given.reason):
            return "blank reason"
        if _blank(given.basis):
            return "blank basis"
        if fault := _fault(given):
            return fault
        if (UNSAID_STRENGTH if given.strength is None else given.strength) < sentence.kind.floor:
            return "too weak"
        if self._linked(source, target):
            return "already linked"
        pair = frozenset((source, target))
        if pair in self.pairs:
            return "pair proposed before"
        if sentence.kind.group == "thematic":
            if max(self._topics(source), self._topics(target)) >= THEMATIC_MOST:
                return "too many of the same topic"
            self.topics.update(pair)
        self.pairs.add(pair)
        strength = rounded(given.strength)
        if sentence.kind.cap < (UNSAID_STRENGTH if strength is None else strength):
            strength = sentence.kind.cap
        return replace(
            given,
            source=sentence.source,
            kind=sentence.kind.name,
            target=sentence.target,
            strength=strength,
            confidence="inferred",
            metadata=given.metadata
            if isinstance(given.confidence, str)
            else {**(given.metadata or {}), "confidence": given.confidence},
        )

    def _whole(self, id: str) -> str | None:
        try:
            return self.view.inspect(id).node.id
        except (NotFoundError, InvalidError):
            return None

    def _touching(self, id: str) -> list[Link]:
        if id not in self.links:
            found = [*self.view.links_from(id), *self.view.backlinks_to(id)]
            self.links[id] = list({link.id: link for link in found}.values())
        return self.links[id]

    def _linked(self, one: str, other: str) -> bool:
        return any(other in (link.source, link.target) for link in self._touching(one))

    def _topics(self, id: str) -> int:
        kinds = self.view.vocabulary.kinds
        return self.topics[id] + sum(kinds[link.kind].group == "thematic" for link in self._touching(id))


def _blank(text: Any) -> bool:
    return not isinstance(text, str) or not text.strip()


def _fault(given: Proposal) -> Why | None:
    """Return what is wrong with the numbers of a proposal."""
    if given.strength is not None:
        if not _is_number(given.strength):
            return "strength is no number"
        if not 1 <= given.strength <= 5:
            return "strength out of range"
    if given.confidence not in ("inferred", "explicit"):
        if not _is_number(given.confidence):
            return "confidence is no number"
        if not 0 <= given.confidence <= 1:  # type: ignore[operator]
            return "confidence out of range"
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def rounded(strength: float | None) -> int | None:
    """Return a proposed strength as an integer from 1 to 5, half rounded up; None for None, or for anything that is not a number in that range."""
    if strength is None or not _is_number(strength) or not 1 <= strength <= 5:
        return None
    return math.floor(strength + 0.5)
