"""Answers as a paragraph that an agent can quote: whole sentences, with who, when and why."""

from __future__ import annotations

from collections.abc import Sequence

from graphstore.mcp_answers import Done, Reached, Thing
from graphstore.models import Event, Link, Node, Step, Supersession
from graphstore.wording import line, when, words

_SAID = 160
_STEPS = 6
_VERBS = {
    "add_node": "said",
    "revise": "described anew",
    "retract": "retracted",
    "end": "ended",
    "confirm": "confirmed",
    "record_event": "recorded",
    "link": "linked",
    "supersede": "superseded",
}


def supersession(found: Supersession, versions: int) -> str:
    """What became of a thing. `versions`: how many descriptions of it are believed over time."""
    subject = _named(found.subject)
    revised = f" It was described anew over time: history(id={found.subject.id!r}) tells." if versions > 1 and not found.chain else ""  # fmt: skip
    if not found.chain:
        how = "stands" if found.standing == "stands" else f"is {found.standing.replace('_', ' ')}"
        return f"{subject} {how}; nothing superseded it.{revised}"
    steps = [_step(step, found) for step in found.chain[:_STEPS]]
    rest = f" {len(found.chain) - _STEPS} more steps are in the chain." if len(found.chain) > _STEPS else ""
    return f"{subject} {'. '.join(steps)}.{rest} {_now(found)}"


def _step(step: Step, found: Supersession) -> str:
    replaced = "" if step is found.chain[0] else _replaced(step)
    since = f" on {when(step.since)}" if step.since else ""
    by = f" by {_named(step.node)}" if step.node else ""
    if step.how == "revised" and isinstance(step.node, Node):
        by = f" as {step.node.ref}, {_quoted(words(step.node))}"
    who = f" by {step.who}" if step.who else ""
    why = f", because: {step.why.rstrip('.')}" if step.why else ""
    past = {"ended": "ended", "retracted": "was retracted"}.get(step.how, f"was {step.how}")
    if step.how == "retracted":
        since = ""  # what it says of is the time it was said to hold from, which misleads
    return f"{replaced}{past}{by}{since} (recorded {when(step.recorded_at)}{who}){why}"


def _replaced(step: Step) -> str:
    return "It " if step.link is None else f"{step.link.target} "


def _now(found: Supersession) -> str:
    if not found.current:
        return "Nothing stands in its place."
    if len(found.current) == 1:
        return f"What stands is {_named(found.current[0])}."
    return f"It forked; {len(found.current)} things stand: {'; '.join(map(_named, found.current[:_STEPS]))}."


def ambiguous(text: str, candidates: Sequence[Thing]) -> str:
    """That a text fits several things."""
    told = "; ".join(f"{each.id} ({_quoted(each.statement)})" for each in candidates)
    return f"{_quoted(text)} fits several: {told}. Call what_superseded again with the id that is meant."


def why(
    node: Node | Event,
    said: Sequence[Done],
    causes: Sequence[Reached],
    resting: Sequence[Link],
    replaced: Sequence[Link],
) -> str:
    """Why a thing is as it is."""
    told = [_named(node) + "."]
    for done in said[:_STEPS]:
        who = f" by {done.who}" if done.who else ""
        because = f", because: {done.reason.rstrip('.')}" if done.reason else ""
        what = "" if done.subject == node.id else f" ({done.subject})"
        told.append(
            f"{_VERBS.get(done.verb, done.verb).capitalize()}{what} {when(done.recorded_at)}{who}{because}."
        )
    for link in replaced[:_STEPS]:
        because = f", because: {link.reason.rstrip('.')}" if link.reason else ""
        told.append(f"It {link.kind} {link.target} from {when(link.valid_from)} on{because}.")
    if causes:
        told.append(
            "Led to by "
            + ", ".join(f"{each.id} ({_quoted(each.statement)})" for each in causes[:_STEPS])
            + "."
        )
    fallen = [link for link in resting if link.target_standing not in ("stands", "shaky")]
    if fallen:
        told.append("It rests on what has fallen: " + ", ".join(f"{link.target} ({link.target_standing})" for link in fallen) + ".")  # fmt: skip
    if len(told) == 1:
        told.append("Nobody gave a reason.")
    return " ".join(told)


def _named(node: Node | Event) -> str:
    return f"{_quoted(words(node))} ({node.id})"


def _quoted(text: str) -> str:
    return f"“{line(text, _SAID)}”"
