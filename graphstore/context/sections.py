"""Build the context of an agent before it answers: seven sections. The first four stay the same, byte for byte, until their content changes.

A prompt cache can therefore keep them. They depend neither on the question nor on the clock, except for the day. Every fact has the instant from which it
holds. If not everything fits, each section has its share, and the answer reports what was left out.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from graphstore.context import budget, feeders, observer, working
from graphstore.context.budget import FADED, LASTING, PLAIN, STABLE, Name, Part, Share
from graphstore.context.observations import PRIORITIES
from graphstore.context.observer import Message
from graphstore.errors import InvalidError
from graphstore.memory.memory import Memory, MemoryHit, recollect
from graphstore.store import registry
from graphstore.values.inputs import at_least_one, optional_text, text_of
from graphstore.values.models import Event, Node, Value
from graphstore.values.period import during, moment, when
from graphstore.values.text import described, estimate
from graphstore.view.view import Reader

__all__ = ["Context", "LeftOut", "Section", "context", "estimate"]

OLD = timedelta(days=7)
"""An observation of LOW priority that is older than this is left out first."""
_SPOKEN = re.compile(r"^[QA]: ", re.MULTILINE)  # how a chunk marks the parts of an exchange
Texts = str | Mapping[str, Any] | Iterable[str]
Messages = Iterable[Message | Event | str | tuple[str, str]]


class Section(Value):
    """One section: its text with the heading ("" when it is empty), the ids of what it holds, and its tokens."""

    name: Name
    text: str
    ids: tuple[str, ...]
    tokens: int


class LeftOut(Value):
    """What there was no room for in a section: how many parts, and the ids of those that have one."""

    section: Name
    count: int
    ids: tuple[str, ...]


class Context(Value):
    """The context of an agent. `stable_prefix` is the beginning of `text`: its first four sections. `tokens` are those of `text`; `note` says how memory was searched."""

    text: str
    sections: tuple[Section, ...]
    stable_prefix: str
    left_out: tuple[LeftOut, ...]
    tokens: int
    note: str

    def __str__(self) -> str:
        return self.text


@registry.read("context")
def context(
    view: Reader,
    user: str,
    thread: str | None = None,
    query: str = "",
    budget_tokens: int | None = None,
    *,
    identity: Texts | None = None,
    skills: Texts = (),
    memory: Memory | None = None,
    conversation: Messages | None = None,
    recent: int = 20,
    k: int = 20,
    tokens: Callable[[str], int] = estimate,
) -> Context:
    """What an agent that answers `user` in `thread` should know at the view's coordinate, in at most `budget_tokens` (None: all of it).

    The sections, in this order: `identity` (the caller's words; None: the date of the coordinate and what runs here), the bootstrap files, working memory,
    observations by date, `skills` (the caller's words), the `k` chunks of all layers that `query` calls to mind and that say what is not in the other sections
    (by meaning too when `memory` has an embedder), and the `recent` latest messages (`conversation`, else those of the timeline in that thread, and those that
    the observer got). Where there is no room for all, each section has the share of the budget that `shares` tells. Parts are left out whole: first
    observations of LOW priority that are older than a week, then of a conversation the oldest, of memory the worst match, of observations the least
    important and of these the oldest. The last message and the exchange before it stay, cut in their middle where they are very long.
    `tokens` counts; it must count no less for a longer text. Raises InvalidError for a budget or a number out of range.
    """
    text_of("user", user), optional_text("thread", thread), text_of("query", query, empty=True)
    most = None if budget_tokens is None else at_least_one("budget_tokens", budget_tokens)
    at_least_one("recent", recent), at_least_one("k", k)
    if memory is not None and not memory._store._reads_as(view):
        raise InvalidError("memory is that of another store. Give one of the store that is read.")
    here = view.fixed()  # all sections at one coordinate
    first = [
        *_words("identity", _runtime(here) if identity is None else identity),
        *_files(here, user),
        *_pad(here, user, thread),
        *_observations(here, user),
    ]
    latest = observer.messages(here, user, thread, recent) if conversation is None else conversation
    said = list(_conversation(latest, recent))
    told = _Told(first, list(_words("skills", skills)), said, k)
    told.hits, note = _recalled(here, query, user, k, told.most_left_out(), memory)
    parts, kept = told.fitting(most, _checked(tokens), budget.shares(here))
    return _composed(parts, kept, most, tokens, note)


def _composed(
    parts: list[Part], kept: list[Part], most: int | None, tokens: Callable[[str], int], note: str
) -> Context:
    """Return the context of the parts that are kept. The line that reports what was left out is omitted if there is no room for it."""
    gone = budget.missing(parts, kept)
    texts = ((name, mine, budget.section_text(name, mine)) for name, mine in budget.parts_of(kept))
    sections = tuple(
        Section(
            name=name,
            text=text,
            ids=tuple(part.id for part in mine if part.id),
            tokens=tokens(text) if text else 0,
        )
        for name, mine, text in texts
    )
    text = budget.text_of(kept, {name: len(some) for name, some in gone.items()})
    if most is not None and tokens(text) > most:
        text = budget.text_of(kept)
    return Context(
        text=text,
        sections=sections,
        stable_prefix="".join(section.text for section in sections[: len(STABLE)]),
        left_out=tuple(
            LeftOut(section=name, count=len(some), ids=tuple(part.id for part in some if part.id))
            for name, some in gone.items()
        ),
        tokens=tokens(text),
        note=note,
    )


class _Told:
    """Holds the candidate parts: the first sections, skills, the conversation, and recalled chunks without repetitions."""

    def __init__(self, first: list[Part], skills: list[Part], said: list[Part], k: int) -> None:
        self._first, self._skills, self._said, self._k = first, skills, said, k
        self.hits: list[Part] = []

    def most_left_out(self) -> int:
        """Return the largest number of hits that other sections may already contain."""
        return min(sum(1 for part in self._first if part.id), 2 * self._k) + len(self._said)

    def _with(self, first: Iterable[Part], said: Iterable[Part]) -> list[Part]:
        """Return all parts, with the hits that repeat none of `first` and `said`."""
        there = {part.id for part in first if part.id}
        lines = {_plain(part.says) for part in said}
        hits = [hit for hit in self.hits if hit.id not in there and not _repeats(hit.says, lines)]
        return [*self._first, *self._skills, *hits[: self._k], *self._said]

    def fitting(
        self, most: int | None, tokens: Callable[[str], int], shares: Mapping[str, Share]
    ) -> tuple[list[Part], list[Part]]:
        """Return all parts, and those that fit. A part that does not fit into another section may be recalled instead."""
        parts = self._with(self._first, self._said)
        if most is None:
            return parts, parts
        kept = budget.fitting(parts, most, tokens, shares)
        if len(kept) < len(parts):
            parts = self._with(*(
                [part for part in kept if part.section in STABLE],
                [part for part in kept if part.section == "conversation"],
            ))  # fmt: skip
            kept = budget.fitting(parts, most, tokens, shares)
        return parts, kept


def _repeats(text: str, lines: set[str]) -> bool:
    """Return True if a chunk repeats only messages that are shown too."""
    pieces = [piece for piece in map(_plain, _SPOKEN.split(text)) if piece]
    return _plain(text) in lines or (bool(pieces) and all(piece in lines for piece in pieces))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _runtime(view: Reader) -> tuple[str, ...]:
    """Return the coordinate's day with the days before and after it, and the versions that run here."""
    valid, _ = view.coordinate()
    today = moment(valid)
    days = [f"{today + timedelta(days=by):%Y-%m-%d}" for by in (-1, 0, 1)]
    version = getattr(sys.modules.get("graphstore"), "__version__", "")
    return (
        f"Today is {today:%A}, {days[1]} (UTC), yesterday was {days[0]}, tomorrow is {days[2]}.",
        f"graphstore {version} on Python {platform.python_version()}, {platform.system()}".replace("  ", " "),
    )


def _checked(tokens: Callable[[str], int]) -> Callable[[str], int]:
    """Return a count function that raises InvalidError if `tokens` returns anything but a whole number, 0 or more."""

    def counted(text: str) -> int:
        count = tokens(text)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidError(
                f"tokens gave {count!r}. Give a function of a text that gives how many it has."
            )
        return count

    return counted


# ---- the parts --------------------------------------------------------------------------------


def _words(section: Name, texts: Texts) -> Iterator[Part]:
    """Yield the caller's words as parts: a text, several texts, or a mapping of names to meanings."""
    if isinstance(texts, str):
        texts = (texts,)
    elif isinstance(texts, Mapping):
        texts = [f"- {name}: {meaning}" for name, meaning in texts.items()]
    for place, text in enumerate(texts):
        if text_of(section, text, empty=True).strip():
            yield Part(section, text.strip("\n"), None, (-place,))


def _files(view: Reader, user: str) -> Iterator[Part]:
    place = 0
    for name, nodes in feeders.soul(view, user).items():
        for node in nodes:
            first, *rest = (node.text or "").split("\n")
            held = f"[{_validity(node)}]"
            begin = (
                [first, held] if first.lstrip().startswith("#") else [f"{first} {held}"]
            )  # a heading stays as it is
            yield Part("bootstrap", "\n".join([*begin, *rest]), node.id, (-place,), name)
            place += 1


def _pad(view: Reader, user: str, thread: str | None) -> Iterator[Part]:
    pad = working.get(view, user, thread)
    if pad is not None:
        yield Part("working", f"[{_validity(pad)}]\n{pad.text}", pad.id, ())


def _observations(view: Reader, user: str) -> Iterator[Part]:
    faded = moment(view.coordinate()[0]).date() - OLD
    for place, node in enumerate(observer.observations(view, user)):
        priority = node.content.get("metadata", {}).get("priority")
        first, *rest = _set_in(node.text or "").split("\n")
        says = f"- [{priority}] {first}" if priority else f"- {first}"
        weight = (-PRIORITIES.index(priority) if priority else -len(PRIORITIES), place)
        day = node.valid_from.date()
        tier = LASTING if priority == "HIGH" else FADED if priority == "LOW" and day < faded else PLAIN
        whole = "\n".join([f"{says} [{_validity(node)}]", *rest])
        yield Part("observations", whole, node.id, weight, day.isoformat(), tier)


def _recalled(
    view: Reader, query: str, user: str, k: int, more: int, memory: Memory | None
) -> tuple[list[Part], str]:
    """Return the best matches, `more` of them than `k`, since other sections may contain some."""
    if not query.strip():
        return [], "nothing was asked, so memory was not searched"
    # One search, since an embedder may be slow: texts of the sections above may be among the best.
    found = recollect(view, query, k + more, user=user, memory=memory)
    return [_hit(place, hit) for place, hit in enumerate(found.hits)], found.note


def _hit(place: int, hit: MemoryHit) -> Part:
    node = hit.node
    says = "\n  ".join(described(node.content, node.text).splitlines())
    where = node.source or hit.layer
    text = f"- {says} [{_validity(node)}; {where}]"
    return Part("memory", text, node.id, (-place,), says=node.text or "")


def _conversation(messages: Messages, recent: int) -> Iterator[Part]:
    allowed = [each for each in messages if not isinstance(each, Event) or each.authorized is not False]
    spoken = [_spoken(each) for each in allowed[-recent:]]
    tiers = budget.said_last([each.sender for each in spoken])
    for place, each in enumerate(spoken):
        tier = tiers.get(place, PLAIN)
        yield Part("conversation", each.text, each.id, (place,), tier=tier, says=each.says)


class _Spoken(NamedTuple):
    """A message: its text as shown, its id, its sender and its own words."""

    text: str
    id: str | None
    sender: str | None
    says: str


def _spoken(message: Message | Event | str | tuple[str, str]) -> _Spoken:
    if isinstance(message, Event):
        message = observer.message_of(message)
    if isinstance(message, Message):
        return _Spoken(_set_in(str(message)), message.id, message.sender, message.text)
    if isinstance(message, tuple):
        return _Spoken(f"{message[0]}: {message[1]}", None, message[0], message[1])
    text = text_of("a message", message, empty=True)
    return _Spoken(text, None, None, text)


def _set_in(text: str) -> str:
    """Indent every line but the first, so that none can be taken for a heading of a section."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([first, *(line if line[:2] in ("", "  ") else f"  {line}" for line in rest)])


def _validity(node: Node) -> str:
    """Return from when a node holds, until when if that is known, and `shaky` if it is."""
    held = f"since {when(node.valid_from)}" if node.valid_to is None else during(node.valid_from, node.valid_to)  # fmt: skip
    return f"{held}, shaky" if node.standing == "shaky" else held
