"""Which thing is meant by an id or by words, and what became of it, step by step: which thing each step is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from graphstore.errors import InvalidError, NotFoundError
from graphstore.mcp.answers import OperationLine, ReachedLine, StepLine, ThingLine, fields, like
from graphstore.memory import recall
from graphstore.values import sameness
from graphstore.values.findings import OUTSIDE, Grounds, Step, Supersession, counted, words
from graphstore.values.models import UPRIGHT, Event, Link, Node
from graphstore.values.period import during, instant, moment, when
from graphstore.values.text import given_text, line
from graphstore.view.view import View

_FITTING = 5
_RELEVANT = 0.5  # of the best score; a worse match is no candidate


class Meant(NamedTuple):
    """What became of the thing that was meant; None where words do not say which it is. `fitting`: everything the words match. `complete`: one of these contains all of them."""

    found: Supersession | None
    fitting: Sequence[Supersession]
    complete: bool


def meant(view: View, id_or_text: str, unknown: Callable[[NotFoundError], NotFoundError]) -> Meant:
    """Return the thing that an id or a text names. Words name the statement equal to them, else the only one that contains all those that a search looks for.
    A partial match is never taken: the answer would be about something else.

    Raises what `unknown` makes of the error where nothing fits, or where it is an id recorded later.
    """
    try:
        return Meant(view.what_superseded(id_or_text), (), True)
    except NotFoundError as error:
        refusal = unknown(error)
        if refusal is not error:
            raise refusal from None
    hits = list(recall.mentions(view, id_or_text, _FITTING))
    if not hits:
        raise refusal
    near = [hit for hit in hits if hit.score >= _RELEVANT * hits[0].score or hit.coverage == 1]
    fitting = [view.what_superseded(ref(hit.node)) for hit in near]
    exact = [each for each in fitting if sameness.same(_statement(each.subject), id_or_text)]
    whole = [each for each, hit in zip(fitting, near, strict=True) if hit.coverage == 1]
    first = _first(exact) or _first(whole)
    return Meant(first, fitting, bool(whole))


def _first(fitting: Sequence[Supersession]) -> Supersession | None:
    """The one of several that all others came after; None when there is none such, or more."""
    later = {step.node.id for each in fitting for step in each.chain if step.node and step.how != "revised"}
    begins = [each for each in fitting if each.subject.id not in later]
    return begins[0] if len(begins) == 1 else None


def ref(node: Node | Event) -> str:
    """The id of what stands as it is described; the version's where another describes it now."""
    return node.ref if isinstance(node, Node) and node.standing == "superseded" else node.id


def _statement(node: Node | Event) -> str:
    return (
        node.description
        if isinstance(node, Event)
        else sameness.statement(node.content, given_text(node.content, node.text))
    )


# ---------------------------------------------------------------- steps


def steps(view: View, found: Supersession) -> list[StepLine]:
    """The steps of a succession, each with the thing it is of."""
    return [_line(view, step, of) for step, of in zip(found.chain, found.of_steps, strict=True)]


def _line(view: View, step: Step, of: str) -> StepLine:
    shown = {} if step.node is None else fields(view, step.node)
    kept = ("id", "kind", "statement", "standing", "valid_from", "valid_to")
    return like(
        StepLine,
        step,
        replaced=of,
        **{name: shown[name] for name in kept if name in shown},
        reason=step.why,
        link=None if step.link is None else step.link.id,
    )


def successors(found: Supersession) -> list[Node | Event]:
    """What stands at the ends of a succession and is no correction of something else that stands: several where it forked."""
    corrections = {step.node.id for step in found.chain if step.node and step.how == "corrected"}
    return [thing for thing in found.current if thing.id not in corrections] or list(found.current)


_QUOTE = 160
_STEPS = 6
_VERBS = {
    "add_node": "recorded",
    "revise": "described anew",
    "amend": "changed in part",
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
    steps = [_step(step, shown.replaced) for step, shown in zip(found.chain[:_STEPS], chain, strict=False)]
    steps[0] = steps[0].removeprefix(f"{found.subject.id} ")
    if found.chain[0].planned:
        subject += f" {_state(found)}."
    rest = f" {len(found.chain) - _STEPS} more steps are in the chain." if len(found.chain) > _STEPS else ""
    return f"{subject} {'. '.join(steps)}.{rest} {_now(found)}"


def outcome(found: Supersession, versions: int) -> str:
    """What became of a thing in a sentence, of which the steps are told beside it."""
    if not found.chain:
        return f"{_named(found.subject)} {_alone(found, versions)}"
    now = ", ".join(each.id for each in found.current)
    planned = [
        f" Planned: {step.how} by {step.node.id} from {when(step.since)}."
        for step in found.chain[:_STEPS]
        if step.planned and step.node
    ]
    return f"{found.subject.id} {_state(found)}. What stands: {now or 'nothing'}.{''.join(planned)}"


def _state(found: Supersession) -> str:
    """How a thing stands; where only what is planned took its place, that it never began."""
    if found.standing == "superseded" and all(step.planned for step in found.chain):
        return "was replaced before it began"
    return "stands" if found.standing in UPRIGHT else f"is {found.standing.replace('_', ' ')}"


def _alone(found: Supersession, versions: int) -> str:
    """What became of a thing that nothing took the place of; it may say something else by now."""
    node = found.subject
    now = [thing for thing in found.current if thing.id == node.id and words(thing) != words(node)]
    if found.standing == "superseded":
        if not isinstance(node, Node) or not any(thing.id == node.id for thing in found.current):
            return f"is superseded by {OUTSIDE}."
        held = f"held {during(node.valid_from, node.valid_to)} as version {node.number}."
        return (
            f"{held} What holds is {_quoted(words(now[0]))}." if now else f"{held} What holds says the same."
        )
    if found.standing == "not_yet" and isinstance(node, Node):
        return f"is still to come: it begins on {when(node.valid_from)}. Nothing superseded it."
    how = "stands" if found.standing == "stands" else f"is {found.standing.replace('_', ' ')}"
    revised = f" It was described anew over time: see history(id={node.id!r})." if versions > 1 else ""
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
        since = ""  # it would be the time the statement began to hold, which misleads
    if step.planned:
        replaced, past, since = f"Planned: {replaced}", f"is {step.how}", f" from {when(step.since)}"
    return f"{replaced} {past}{by}{since} (recorded {when(step.recorded_at)}{who}){why}"


def _now(found: Supersession) -> str:
    if not found.current:
        return "Nothing stands in its place."
    if len(found.current) == 1:
        return f"What stands is {_named(found.current[0])}."
    forked = "It forked; " if len(successors(found)) > 1 else ""
    return f"{forked}{len(found.current)} things stand: {'; '.join(map(_named, found.current[:_STEPS]))}."


def nearest(text: str, candidates: Sequence[ThingLine]) -> str:
    """The answer where no statement contains all the words of a text."""
    listed = "; ".join(f"{each.id} ({_quoted(each.statement)})" for each in candidates)
    return f"Nothing here says just {_quoted(text)}. Nearest: {listed}. Call what_superseded again with the id that is meant."


def ambiguous(text: str, candidates: Sequence[ThingLine]) -> str:
    """The answer where a text matches several things."""
    listed = "; ".join(f"{each.id} ({_quoted(each.statement)})" for each in candidates)
    return f"{_quoted(text)} fits several: {listed}. Call what_superseded again with the id that is meant."


def why(
    node: Node | Event,
    operations: Sequence[OperationLine],
    causes: Sequence[ReachedLine],
    grounds: Grounds | None,
    replaced: Sequence[Link],
    until: datetime | None = None,
) -> str:
    """Return why a thing is as it is. `grounds`: what it rests on; `until`: until when it held."""
    sentences = [state(node, until)]
    for done in operations[:_STEPS]:
        who = f" by {done.who}" if done.who else ""
        because = f", because: {done.reason.rstrip('.')}" if done.reason else ""
        sentences.append(f"{_what(done, node.id)} {when(done.recorded_at)}{who}{because}.")
    for link in replaced[:_STEPS]:
        because = f", because: {link.reason.rstrip('.')}" if link.reason else ""
        sentences.append(f"It {link.kind} {link.target} from {when(link.valid_from)} on{because}.")
    if causes:
        sentences.append(
            "Led to by "
            + ", ".join(f"{each.id} ({_quoted(each.statement)})" for each in causes[:_STEPS])
            + "."
        )
    shaken = None if grounds is None else grounds.shaky
    if shaken is not None:
        sentences.append(str(shaken))
    if grounds is not None and grounds.stand < grounds.of and (shaken is None or shaken.of < 2):
        sentences.append(f"{counted(grounds)}.")
    if len(sentences) == 1:
        sentences.append("No reason is recorded.")
    return " ".join(sentences)


def state(node: Node | Event, until: datetime | None) -> str:
    """What a thing says, and how it stands where it does not."""
    return f"{_named(node)}{_how(node, until)}."


def _how(node: Node | Event, until: datetime | None) -> str:
    """How a thing stands, where it does not."""
    if node.standing == "not_yet":
        begins = node.occurred_at if isinstance(node, Event) else node.valid_from
        return f" is not yet so: it begins {when(begins)}"
    if node.standing in ("ended", "superseded") and isinstance(node, Node):
        past = "has ended" if node.standing == "ended" else "is superseded"
        return f" {past}: it held {during(node.valid_from, until)}"
    return "" if node.standing in UPRIGHT else f" is {node.standing}"


def _what(done: OperationLine, id: str) -> str:
    """An operation in words. One on another thing that closed a part of this one took its place."""
    if done.verb == "undo":
        with suppress(InvalidError):
            return f"What was written {when(moment(instant(done.subject)))} undone"
    if done.subject == id:
        return _VERBS.get(done.verb, done.verb).capitalize()
    verb = "replaced by" if done.verb == "add_node" else _VERBS.get(done.verb, done.verb)
    return f"{verb.capitalize()} {done.subject}"


def _named(node: Node | Event) -> str:
    return f"{_quoted(words(node))} ({node.id})"


def _quoted(text: str) -> str:
    return f"“{line(text, _QUOTE)}”"
