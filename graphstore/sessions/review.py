"""What an analyser decided of a segment without much ground, for a person to look at. Describing the segment anew settles it."""

from __future__ import annotations

from graphstore.core.read.view import Reader
from graphstore.store import registry
from graphstore.values.inputs import whole_number
from graphstore.values.models import Json, Value


class Doubt(Value):
    """A decision that asks for review: of which node (`ref` names the version), what was decided, why, and when."""

    id: str
    ref: str
    text: str | None
    decision: str
    reasoning: str
    at: str | None

    def __str__(self) -> str:
        return f"{self.ref}  {self.decision} ({self.reasoning})"


@registry.read("sessions")
def doubts(view: Reader, limit: int | None = None) -> list[Doubt]:
    """The decisions marked `needsReview` of the segments that stand, in the order the segments were first known; at most `limit`."""
    from graphstore.sessions.segments.nodes import (
        SEGMENT,
    )  # here, for every command that prints would wait for its models

    most = whole_number("limit", limit)
    found: list[Doubt] = []
    for node in view.nodes(SEGMENT):
        for decision in _decisions(node.content):
            if decision.get("needsReview") is True:
                found.append(
                    Doubt(
                        id=node.id,
                        ref=node.ref,
                        text=node.text,
                        decision=str(decision.get("decision", "")),
                        reasoning=str(decision.get("reasoning", "")),
                        at=_text(decision.get("timestamp")),
                    )
                )
                if len(found) == most:
                    return found
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _decisions(content: Json) -> list[Json]:
    """The decisions of an analysis. What a person wrote need not have its shape."""
    meta = content.get("daemonMeta")
    decisions = meta.get("decisions") if isinstance(meta, dict) else None
    return [each for each in decisions if isinstance(each, dict)] if isinstance(decisions, list) else []
