"""Lists what somebody should look at: among it the decisions that an analyser marked for review, so that a person can correct them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from graphstore.errors import InvalidError
from graphstore.sessions.transcripts.steps import as_objects, as_text
from graphstore.store import registry
from graphstore.values.inputs import json_object, whole_number
from graphstore.values.models import Json, Node, Value
from graphstore.view.view import Reader

if TYPE_CHECKING:
    from graphstore.store.store import Store


class Doubt(Value):
    """A decision that asks for review: of which node (`ref` names the version), what was decided, why, and when."""

    id: str
    ref: str
    text: str | None
    decision: str
    reasoning: str
    at: str | None

    @property
    def call(self) -> str:
        """Return the call that settles it."""
        return f"sessions.correct({self.id!r}, {{…}}, reason=…)"

    def __str__(self) -> str:
        return f"{self.ref}  {self.decision} ({self.reasoning})"


@registry.read("sessions")
def doubts(view: Reader, limit: int | None = None) -> list[Doubt]:
    """The decisions marked `needsReview` of the segments that stand, in the order the segments were first known; at most `limit`."""
    # Imported here: at the top of the module, every command that prints would wait for these models.
    from graphstore.sessions.segments.nodes import SEGMENT
    from graphstore.sessions.segments_read import value_at

    most = whole_number("limit", limit)
    found: list[Doubt] = []
    for node in view.nodes(SEGMENT):
        # a person's correction may not have the shape of an analysis
        for decision in as_objects(value_at(node.content, "daemonMeta", "decisions")):
            if decision.get("needsReview") is True:
                found.append(_doubt(node, decision))
                if len(found) == most:
                    return found
    return found


def _doubt(node: Node, decision: Json) -> Doubt:
    said, why = (str(decision.get(name, "")) for name in ("decision", "reasoning"))
    at = as_text(decision.get("timestamp")) or None
    return Doubt(id=node.id, ref=node.ref, text=node.text, decision=said, reasoning=why, at=at)


class ReviewItem(Value):
    """Something that somebody should look at: `what` it is, the ids it is about, what it says, and the call that settles it."""

    what: Literal["contradiction", "shaky", "unsure", "join"]
    ids: tuple[str, ...]
    text: str
    call: str

    def __str__(self) -> str:
        return f"{self.what}: {self.text}\n    → {self.call}"


@registry.read("sessions")
def review(view: Reader, limit: int = 100) -> list[ReviewItem]:
    """What somebody should look at, each with the call that settles it: contradictions, what is shaky, decisions that an analyser marked for review, and
    nodes that may be one thing. At most `limit` of each. Nothing is written."""
    found = [
        _item("contradiction", each, each.source.id, each.target.id)
        for each in view.contradictions(limit=limit)
    ]
    found += [_item("shaky", each, each.node.id) for each in view.shaky(limit)]
    found += [_item("unsure", each, each.id) for each in doubts(view, limit)]
    return found + [_item("join", each, each.node.id, each.into.id) for each in view.joinable(limit)]


def _item(what: Any, found: Any, *ids: str) -> ReviewItem:
    return ReviewItem(what=what, ids=ids, text=str(found), call=found.call)


@registry.write("sessions")
def correct(store: Store, id: str, changes: Mapping[str, Any], *, reason: str | None = None) -> Node:
    """Correct what an analyser said of a segment: `{"content": {"outcome": "failed"}}`. A later analysis keeps what was corrected.

    `changes`: the fields that change, each where it lies in the content; a list goes as a whole, and null takes a field away. Raises NotFoundError for an
    unknown id, InvalidError for what is no segment, and for a correction that leaves none: with the field that is wrong. Nothing is written then.
    """
    from graphstore.sessions.segments.nodes import SEGMENT, SessionNode

    node = store.node(id)
    if node.kind != SEGMENT:
        raise InvalidError(f"{id!r} is a {node.kind}, and no segment of a session. Give the id of one.")
    content = _changed(node.content, json_object("changes", changes))
    checked = SessionNode.from_content(content)
    found: Any = {"text": checked.text, "tags": checked.tags, "source": node.source}
    return store.revise(id, content, trigger="user_feedback", reason=reason, **found)


def _changed(content: Json, changes: Json) -> Json:
    found = dict(content)
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = _changed(found[name], value)
        else:
            found[name] = value
    return found
