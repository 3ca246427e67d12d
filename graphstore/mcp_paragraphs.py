"""Answers as a paragraph that an agent can quote: whole sentences, with who, when and why."""

from __future__ import annotations

from collections.abc import Sequence

from graphstore.mcp_answers import Done, Reached, StepLine, Thing
from graphstore.mcp_meant import successors
from graphstore.models import Event, Link, Node, Step, Supersession, words
from graphstore.wording import during, line, when

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


def supersession(found: Supersession, chain: Sequence[StepLine], versions: int) -> str:
    """What became of a thing, by its steps. `versions`: how many descriptions of it are believed over time."""
    subject = _named(found.subject)
    if not found.chain:
        return f"{subject} {_alone(found, versions)}"
    steps = [_step(step, told.replaced) for step, told in zip(found.chain[:_STEPS], chain, strict=False)]
    steps[0] = steps[0].removeprefix(f"{found.subject.id} ")
    rest = f" {len(found.chain) - _STEPS} more steps are in the chain." if len(found.chain) > _STEPS else ""
    return f"{subject} {'. '.join(steps)}.{rest} {_now(found)}"


def _alone(found: Supersession, versions: int) -> str:
    """What became of a thing that nothing took the place of; it may say something else by now."""
    node = found.subject
    now = [thing for thing in found.current if thing.id == node.id and words(thing) != words(node)]
    if isinstance(node, Node) and found.standing == "superseded":
        held = f"held {during(node.valid_from, node.valid_to)} as version {node.number}."
        return (
            f"{held} What holds is {_quoted(words(now[0]))}."
            if now
            else f"{held} Nothing holds in its place."
        )
    if found.standing == "not_yet" and isinstance(node, Node):
        return f"is still to come: it begins on {when(node.valid_from)}. Nothing superseded it."
    how = "stands" if found.standing == "stands" else f"is {found.standing.replace('_', ' ')}"
    revised = f" It was described anew over time: history(id={node.id!r}) tells." if versions > 1 else ""
    return f"{how}; nothing superseded it.{revised}"


def _step(step: Step, replaced: str | None) -> str:
    since = f" on {when(step.since)}" if step.since else ""
    by = f" by {_named(step.node)}" if step.node else ""
    if step.how == "revised" and isinstance(step.node, Node):
        by = f" as {step.node.ref}, {_quoted(words(step.node))}"
    who = f" by {step.who}" if step.who else ""
    why = f", because: {step.why.rstrip('.')}" if step.why else ""
    past = {"ended": "ended", "retracted": "was retracted"}.get(step.how, f"was {step.how}")
    if step.how == "retracted":
        since = ""  # what it says of is the time it was said to hold from, which misleads
    return f"{replaced} {past}{by}{since} (recorded {when(step.recorded_at)}{who}){why}"


def _now(found: Supersession) -> str:
    if not found.current:
        return "Nothing stands in its place."
    if len(found.current) == 1:
        return f"What stands is {_named(found.current[0])}."
    forked = "It forked; " if len(successors(found)) > 1 else ""
    return f"{forked}{len(found.current)} things stand: {'; '.join(map(_named, found.current[:_STEPS]))}."


def nearest(text: str, candidates: Sequence[Thing]) -> str:
    """That nothing says all the words of a text."""
    told = "; ".join(f"{each.id} ({_quoted(each.statement)})" for each in candidates)
    return f"Nothing here says just {_quoted(text)}. Nearest: {told}. Call what_superseded again with the id that is meant."


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
    shaken: Sequence[str],
) -> str:
    """Why a thing is as it is. `shaken`: what fell below it, and how, in a sentence each."""
    told = [_named(node) + "."]
    for done in said[:_STEPS]:
        who = f" by {done.who}" if done.who else ""
        because = f", because: {done.reason.rstrip('.')}" if done.reason else ""
        told.append(f"{_what(done, node.id)} {when(done.recorded_at)}{who}{because}.")
    for link in replaced[:_STEPS]:
        because = f", because: {link.reason.rstrip('.')}" if link.reason else ""
        told.append(f"It {link.kind} {link.target} from {when(link.valid_from)} on{because}.")
    if causes:
        told.append(
            "Led to by "
            + ", ".join(f"{each.id} ({_quoted(each.statement)})" for each in causes[:_STEPS])
            + "."
        )
    told += shaken[:1]
    fallen = [link for link in resting if link.target_standing not in ("stands", "shaky")]
    if fallen and not shaken:
        told.append("It rests on what has fallen: " + ", ".join(f"{link.target} ({link.target_standing})" for link in fallen) + ".")  # fmt: skip
    if len(told) == 1:
        told.append("Nobody gave a reason.")
    return " ".join(told)


def _what(done: Done, id: str) -> str:
    """An operation in words. One on another thing that closed a part of this one took its place."""
    if done.subject == id:
        return _VERBS.get(done.verb, done.verb).capitalize()
    verb = "replaced by" if done.verb == "add_node" else _VERBS.get(done.verb, done.verb)
    return f"{verb.capitalize()} {done.subject}"


def _named(node: Node | Event) -> str:
    return f"{_quoted(words(node))} ({node.id})"


def _quoted(text: str) -> str:
    return f"“{line(text, _SAID)}”"
