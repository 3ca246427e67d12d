"""Which thing is meant by an id or by words, and what became of it, step by step: which thing each step is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphstore import recall, statements
from graphstore.errors import NotFoundError
from graphstore.mcp_answers import StepLine, fields
from graphstore.models import Event, Node, Step, Supersession
from graphstore.search import words
from graphstore.view import View

_FITTING = 5
_RELEVANT = 0.5  # of the best score: what says less of a text is not meant by it
_ENDINGS = ("ing", "es", "ed", "s")
_FILLING = frozenset(
    "a an the of to in on at by for from with about and or is are was were be been am do does did has have had "
    "what which who whom whose when where why how that this these those there i we you he she they our your their my".split()
)


class Meant(NamedTuple):
    """What became of the thing that was meant; None where words do not say which it is. `fitting`: what else they fit. `said`: one of these says them all."""

    found: Supersession | None
    fitting: Sequence[Supersession]
    said: bool


def meant(view: View, id_or_text: str, unknown: Callable[[NotFoundError], NotFoundError]) -> Meant:
    """The thing that an id or a text names. Words mean what says just this, or else the one thing that says them all: what says a part of
    them is never taken for it, since an answer about something else would be told as if it were the one asked for.

    Raises what `unknown` makes of the error where nothing fits, or where it is an id that was told later.
    """
    try:
        return Meant(view.what_superseded(id_or_text), (), True)
    except NotFoundError as error:
        refusal = unknown(error)
        if refusal is not error:
            raise refusal from None
    asked = _stems(id_or_text)
    hits = list(recall.mentions(view, _inflected(telling(id_or_text)), _FITTING))
    if not hits:
        raise refusal
    near = [hit for hit in hits if hit.score >= _RELEVANT * hits[0].score or asked <= _stems(_said(hit.node))]
    fitting = [view.what_superseded(ref(hit.node)) for hit in near]
    exact = [each for each in fitting if statements.same(_said(each.subject), id_or_text)]
    whole = [each for each in fitting if asked <= _stems(_said(each.subject))]
    first = _first(exact) or _first(whole)
    return Meant(first, fitting, bool(whole))


def _first(fitting: Sequence[Supersession]) -> Supersession | None:
    """The one of several that all others came after; None when there is none such, or more."""
    later = {step.node.id for each in fitting for step in each.chain if step.node and step.how != "revised"}
    begins = [each for each in fitting if each.subject.id not in later]
    return begins[0] if len(begins) == 1 else None


def telling(text: str) -> str:
    """A text without the words that English puts into any question: what says many of them is not what was asked for. All of it where nothing else is."""
    said = [word for word in text.split() if word.strip(".,;:?!'\"()").lower() not in _FILLING]
    return " ".join(said) or text


def ref(node: Node | Event) -> str:
    """The id of what stands as it is described; the version's where another describes it now."""
    return node.ref if isinstance(node, Node) and node.standing == "superseded" else node.id


def _said(node: Node | Event) -> str:
    return node.description if isinstance(node, Event) else statements.statement(node.content, node.text)


def _stem(word: str) -> str:
    """A word without the ending that English gives it in a plural or another tense; short words as they are."""
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) > 3), "")
    return word[: len(word) - len(ending)]


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(_stem, words(text)))


def _inflected(text: str) -> str:
    """A text with each of its words in other forms too, since search knows words only as they are written."""
    asked = words(text)
    forms = (_stem(word) + ending for word in asked if len(word) > 3 for ending in ("", *_ENDINGS))
    return " ".join(dict.fromkeys((*asked, *forms)))


# ---------------------------------------------------------------- steps


def steps(view: View, found: Supersession) -> list[StepLine]:
    """The steps of a succession, each with the thing it is of."""
    return [_line(view, step, of) for step, of in zip(found.chain, found.of_steps, strict=True)]


def _line(view: View, step: Step, of: str) -> StepLine:
    told = {} if step.node is None else fields(view, step.node)
    kept = ("id", "kind", "statement", "standing", "valid_from", "valid_to")
    return StepLine(
        how=step.how,
        replaced=of,
        **{name: told[name] for name in kept if name in told},
        since=step.since,
        recorded_at=step.recorded_at,
        who=step.who,
        reason=step.why,
        link=None if step.link is None else step.link.id,
    )


def successors(found: Supersession) -> list[Node | Event]:
    """What stands at the ends of a succession and is no correction of something else that stands: several where it forked."""
    corrections = {step.node.id for step in found.chain if step.node and step.how == "corrected"}
    return [thing for thing in found.current if thing.id not in corrections] or list(found.current)
