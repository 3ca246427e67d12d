"""The context of an agent before it answers: seven sections, of which the first four stay the same, byte for byte, until their content changes.

A prompt cache keeps these four. Nothing in them depends on the clock or the question; every fact says since when it holds; and where there is no
room for all of it, the last sections give way first, and the answer says what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphstore.context import feeders, observer, working
from graphstore.context.observations import PRIORITIES
from graphstore.context.observer import Message
from graphstore.core.read.view import Reader
from graphstore.errors import InvalidError
from graphstore.memory.memory import Memory, MemoryHit, recollect
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values.inputs import at_least_one, optional_text, text_of
from graphstore.values.models import Event, Node, Value
from graphstore.values.period import during, when
from graphstore.values.text import described

__all__ = ["Context", "LeftOut", "Section", "context", "estimate"]

Name = Literal["identity", "bootstrap", "working", "observations", "skills", "memory", "conversation"]
_TITLES: dict[Name, str] = {
    "identity": "Identity",
    "bootstrap": "Bootstrap files",
    "working": "Working memory",
    "observations": "Observations",
    "skills": "Skills",
    "memory": "Retrieved memory",
    "conversation": "Conversation",
}
_STABLE = tuple(_TITLES)[:4]  # the sections that make the stable prefix
Texts = str | Mapping[str, Any] | Iterable[str]
Messages = Iterable[Message | Event | str | tuple[str, str]]


def estimate(text: str) -> int:
    """About how many tokens a text has, with no tokenizer: one for four bytes of UTF-8, rounded up.

    >>> estimate("twelve bytes")
    3
    """
    return (len(text.encode()) + 3) // 4


class Section(Value):
    """One section: its text with the heading ("" when it is empty), and the ids of what it holds."""

    name: Name
    text: str
    ids: tuple[str, ...]


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


@dataclass(frozen=True, slots=True)
class _Part:
    """What is included or left out as a whole. `under`: the heading it stands below; `weight`: the lower is left out first, in its section."""

    section: Name
    text: str
    id: str | None
    weight: tuple[Any, ...]
    under: str | None = None


@registry.read("context")
def context(
    view: Reader,
    user: str,
    thread: str | None = None,
    query: str = "",
    budget_tokens: int | None = None,
    *,
    identity: Texts = (),
    skills: Texts = (),
    memory: Memory | None = None,
    conversation: Messages | None = None,
    recent: int = 20,
    k: int = 20,
    tokens: Callable[[str], int] = estimate,
) -> Context:
    """What an agent that answers `user` in `thread` should know at the view's coordinate, in at most `budget_tokens` (None: all of it).

    The sections, in this order: `identity` (the caller's words), the bootstrap files, working memory, observations by date, `skills` (the caller's words),
    the `k` chunks of all layers that `query` calls to mind and that are not in the sections above (by meaning too when `memory` has an embedder), and the `recent` latest
    messages (`conversation`, else those of the timeline in that thread, and those that the observer got). Parts are left out whole, from the last section on: of a conversation the oldest
    first, of memory the worst match, of observations the least important and of these the oldest. `tokens` counts; it must count no less for a longer text.
    Raises InvalidError for a budget or a number out of range.
    """
    text_of("user", user), optional_text("thread", thread), text_of("query", query, empty=True)
    most = None if budget_tokens is None else at_least_one("budget_tokens", budget_tokens)
    at_least_one("recent", recent), at_least_one("k", k)
    if memory is not None and not memory._store._reads_as(view):
        raise InvalidError("memory is that of another store. Give one of the store that is read.")
    here = view.as_of() if isinstance(view, Store) else view  # all sections at one coordinate
    parts = [
        *_words("identity", identity),
        *_files(here, user),
        *_pad(here, user, thread),
        *_observations(here, user),
        *_words("skills", skills),
    ]
    included = {part.id for part in parts if part.id}
    hits, note = _recalled(here, query, user, k, included, memory)
    latest = observer.messages(here, user, thread, recent) if conversation is None else conversation
    parts += [*hits, *_conversation(latest, recent)]
    kept, text = _fitting(parts, most, tokens)
    sections = tuple(_sections(kept))
    return Context(
        text=text,
        sections=sections,
        stable_prefix=_joined(sections[: len(_STABLE)]),
        left_out=tuple(_left_out(parts, kept)),
        tokens=_counted(text, tokens),
        note=note,
    )


# ---- the parts --------------------------------------------------------------------------------


def _words(section: Name, texts: Texts) -> Iterator[_Part]:
    """What the caller says: a text, several, or names with what they mean."""
    if isinstance(texts, str):
        texts = (texts,)
    elif isinstance(texts, Mapping):
        texts = [f"- {name}: {meaning}" for name, meaning in texts.items()]
    for place, text in enumerate(texts):
        if text_of(section, text, empty=True).strip():
            yield _Part(section, text.strip("\n"), None, (-place,))


def _files(view: Reader, user: str) -> Iterator[_Part]:
    place = 0
    for name, nodes in feeders.soul(view, user).items():
        for node in nodes:
            first, *rest = (node.text or "").split("\n")
            yield _Part("bootstrap", "\n".join([f"{first} [{_validity(node)}]", *rest]), node.id, (-place,), name)  # fmt: skip
            place += 1


def _pad(view: Reader, user: str, thread: str | None) -> Iterator[_Part]:
    pad = working.get(view, user, thread)
    if pad is not None:
        yield _Part("working", f"[{_validity(pad)}]\n{pad.text}", pad.id, ())


def _observations(view: Reader, user: str) -> Iterator[_Part]:
    for place, node in enumerate(observer.observations(view, user)):
        priority = node.content.get("metadata", {}).get("priority")
        first, *rest = _set_in(node.text or "").split("\n")
        says = f"- [{priority}] {first}" if priority else f"- {first}"
        weight = (-PRIORITIES.index(priority) if priority else -len(PRIORITIES), place)
        yield _Part(
            "observations", "\n".join([f"{says} [{_validity(node)}]", *rest]), node.id, weight, node.valid_from.date().isoformat(),
        )  # fmt: skip


def _recalled(
    view: Reader, query: str, user: str, k: int, included: set[str], memory: Memory | None
) -> tuple[list[_Part], str]:
    if not query.strip():
        return [], "nothing was asked, so memory was not searched"
    # one question, for an embedder may take its time: what is above may be among the best
    found = recollect(view, query, k + min(len(included), 2 * k), user=user, memory=memory)
    hits = [hit for hit in found.hits if hit.node.id not in included][:k]
    return [_hit(place, hit) for place, hit in enumerate(hits)], found.note


def _hit(place: int, hit: MemoryHit) -> _Part:
    node = hit.node
    says = "\n  ".join(described(node.content, node.text).splitlines())
    where = node.source or hit.layer
    text = f"- {says} [{_validity(node)}; {where}]"
    return _Part("memory", text, node.id, (-place,))


def _conversation(messages: Messages, recent: int) -> list[_Part]:
    parts = []
    for place, message in enumerate(list(messages)[-recent:]):
        name: str | None = None
        if isinstance(message, Message):
            text, name = _set_in(str(message)), message.id
        elif isinstance(message, Event):
            text, name = _set_in(str(observer.message_of(message))), message.id
        elif isinstance(message, tuple):
            text = f"{message[0]}: {message[1]}"
        else:
            text = text_of("a message", message, empty=True)
        parts.append(_Part("conversation", text, name, (place,)))
    return parts


def _set_in(text: str) -> str:
    """The text with every further line set in, so that none stands where the sections have their headings."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([first, *(line if line[:2] in ("", "  ") else f"  {line}" for line in rest)])


def _validity(node: Node) -> str:
    """Since when it holds, until when where that is known, and whether what it rests on has fallen."""
    held = f"since {when(node.valid_from)}" if node.valid_to is None else during(node.valid_from, node.valid_to)  # fmt: skip
    return f"{held}, shaky" if node.standing == "shaky" else held


# ---- what fits --------------------------------------------------------------------------------


def _fitting(
    parts: Sequence[_Part], most: int | None, tokens: Callable[[str], int]
) -> tuple[list[_Part], str]:
    """The parts there is room for, and their text: the fewest are left out with which all fits, and the text ends by saying how many.

    What is kept of the first four sections depends on them and the room alone. Where there is none for the last line either, it is not in the text.
    """
    whole = _text(parts, parts)
    if most is None or _counted(whole, tokens) <= most:
        return list(parts), whole
    first = [part for part in parts if part.section in _STABLE]
    kept = _fewest_out(first, lambda some: _counted(_joined(tuple(_sections(some))), tokens) <= most)
    if len(kept) == len(first):
        rest = [part for part in parts if part.section not in _STABLE]
        kept += _fewest_out(rest, lambda some: _counted(_text(parts, first + some), tokens) <= most)
    text = _text(parts, kept)
    return kept, text if _counted(text, tokens) <= most else _joined(tuple(_sections(kept)))


def _fewest_out(parts: list[_Part], fits: Callable[[list[_Part]], bool]) -> list[_Part]:
    """The most of the parts that fit: left out is from the last section on, and in a section what weighs least. None fit always."""
    if fits(parts):
        return parts
    place = {name: -at for at, name in enumerate(_TITLES)}
    least_first = sorted(range(len(parts)), key=lambda at: (place[parts[at].section], parts[at].weight))

    def after(count: int) -> list[_Part]:
        gone = set(least_first[:count])
        return [part for at, part in enumerate(parts) if at not in gone]

    low, high = 0, len(parts)  # leaving out `low` does not fit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(after(middle)) else (middle, high)
    return after(high)


def _counted(text: str, tokens: Callable[[str], int]) -> int:
    count = tokens(text)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidError(f"tokens gave {count!r}. Give a function of a text that gives how many it has.")
    return count


def _text(parts: Sequence[_Part], kept: Sequence[_Part]) -> str:
    """The sections, and at the end what is missing in them."""
    missing = ", ".join(f"{_TITLES[one.section]} {one.count:,}" for one in _left_out(parts, kept))
    joined = _joined(tuple(_sections(kept)))
    return f"{joined}(Left out for want of room: {missing}.)\n" if missing else joined


def _sections(parts: Sequence[_Part]) -> Iterator[Section]:
    for name, title in _TITLES.items():
        mine = [part for part in parts if part.section == name]
        lines = [f"# {title}"]
        under: str | None = None
        for part in mine:
            if part.under != under:
                lines.append(f"## {part.under}")
                under = part.under
            lines.append(part.text)
        yield Section(
            name=name,
            text="\n".join(lines) + "\n\n" if mine else "",
            ids=tuple(part.id for part in mine if part.id),
        )


def _joined(sections: Sequence[Section]) -> str:
    return "".join(section.text for section in sections)


def _left_out(parts: Sequence[_Part], kept: Sequence[_Part]) -> Iterator[LeftOut]:
    if len(kept) == len(parts):
        return
    there = set(map(id, kept))
    for name in _TITLES:
        gone = [part for part in parts if part.section == name and id(part) not in there]
        if gone:
            yield LeftOut(section=name, count=len(gone), ids=tuple(part.id for part in gone if part.id))
