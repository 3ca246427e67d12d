"""Choose what of a context fits into a budget. Each section has a floor and a ceiling: shares of the budget, which are settings of the store.

Three things are left out last: the question, the exchange before it, and observations of HIGH priority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from graphstore.errors import InvalidError
from graphstore.store import registry
from graphstore.store.store import Store
from graphstore.values.models import Value
from graphstore.view.view import Reader

__all__ = ["TITLES", "Counting", "Name", "Part", "Share", "fitting", "set_share", "shares"]

Name = Literal["identity", "bootstrap", "working", "observations", "skills", "memory", "conversation"]
TITLES: dict[Name, str] = {
    "identity": "Identity",
    "bootstrap": "Bootstrap files",
    "working": "Working memory",
    "observations": "Observations",
    "skills": "Skills",
    "memory": "Retrieved memory",
    "conversation": "Conversation",
}
STABLE = tuple(TITLES)[:4]  # the sections of the stable prefix
_REST = tuple(TITLES)[4:]
Counting = Callable[[str], int]
FADED, PLAIN, LASTING, EXCHANGE, QUESTION = range(5)
"""Tiers of importance: an old LOW observation, any other part, a HIGH observation, the last exchange, the question."""
_CUT = {EXCHANGE: 12, QUESTION: 5}  # a message of this tier may have at most one n-th of the budget
_SHORT = 100  # tokens: messages are not cut to fewer
SHARES = "context_shares"  # setting: the shares that were set
_DEFAULTS: dict[str, tuple[float, float]] = {
    "identity": (0.05, 0.2),
    "bootstrap": (0.1, 0.4),
    "working": (0.05, 0.25),
    "observations": (0.2, 0.45),
    "skills": (0.03, 0.2),
    "memory": (0.17, 0.5),
    "conversation": (0.12, 0.5),
}


class Share(Value):
    """What a section has of a budget, 0 to 1: no less than `floor` while others have more than theirs, no more than `ceiling` once something is left out."""

    floor: float
    ceiling: float


@registry.read("context")
def shares(view: Reader) -> dict[str, Share]:
    """The floor and the ceiling of each section, as shares of the budget."""
    kept = view.setting(SHARES) or {}
    found = {name: kept.get(name, share) for name, share in _DEFAULTS.items()}
    return {name: Share(floor=floor, ceiling=ceiling) for name, (floor, ceiling) in found.items()}


@registry.write("context")
def set_share(
    store: Store, section: str, floor: float | None = None, ceiling: float | None = None
) -> dict[str, Share]:
    """Set the floor or the ceiling of a section, as shares of the budget; kept in the store. Gives those of all sections.

    Raises InvalidError for an unknown section, a share that is not from 0 to 1, a floor above its ceiling, and floors that come to more than the budget.
    """
    with store.verb(is_narrow=True):
        known = shares(store)
        if section not in known:
            raise InvalidError.choice("section", section, known)
        before = known[section]
        wanted = (
            before.floor if floor is None else _share("floor", floor),
            before.ceiling if ceiling is None else _share("ceiling", ceiling),
        )
        if wanted[0] > wanted[1]:
            raise InvalidError(f"floor {wanted[0]:g} is above ceiling {wanted[1]:g}. Give both.")
        whole = wanted[0] + sum(share.floor for name, share in known.items() if name != section)
        if whole > 1 + 1e-9:
            raise InvalidError(
                f"floor {wanted[0]:g} makes the floors {whole:g} of the budget. Lower others first: at most 1."
            )
        if wanted != (before.floor, before.ceiling):
            store.keep_setting("set_share", SHARES, {**(store.setting(SHARES) or {}), section: list(wanted)})
        return shares(store)


def _share(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidError(f"{name} {value!r} is no share of the budget. Give a number from 0 to 1.")
    return float(value)


@dataclass(frozen=True, slots=True)
class Part:
    """A unit that is included or left out as a whole. `under`: its heading; `weight`: within its section the lowest goes first; `tier`: its importance, which
    counts before the weight; `says`: its own words."""

    section: Name
    text: str
    id: str | None
    weight: tuple[Any, ...]
    under: str | None = None
    tier: int = PLAIN
    says: str = ""


def section_text(name: Name, parts: Iterable[Part]) -> str:
    """Return the parts of a section below its heading; "" if there are none."""
    lines = [f"# {TITLES[name]}"]
    under: str | None = None
    for part in parts:
        if part.under != under:
            lines.append(f"## {part.under}")
            under = part.under
        lines.append(part.text)
    return "\n".join(lines) + "\n\n" if len(lines) > 1 else ""


def text_of(parts: Sequence[Part], left_out: Mapping[Name, int] | None = None) -> str:
    """Return the sections in their order, and at the end how many parts of each are missing."""
    joined = "".join(section_text(name, mine) for name, mine in parts_of(parts))
    missing = ", ".join(f"{TITLES[name]} {count:,}" for name, count in (left_out or {}).items() if count)
    return f"{joined}(Left out for want of room: {missing}.)\n" if missing else joined


def missing(parts: Sequence[Part], kept: Sequence[Part]) -> dict[Name, list[Part]]:
    """Return the parts that are not kept, by section."""
    gone: dict[Name, list[Part]] = {}
    for part in parts_not_in(parts, kept):
        gone.setdefault(part.section, []).append(part)
    return gone


def parts_not_in(parts: Iterable[Part], kept: Iterable[Part]) -> list[Part]:
    """Return the parts that are not among `kept`, in their order."""
    there = set(map(_name, kept))
    return [part for part in parts if _name(part) not in there]


def fitting(parts: Sequence[Part], most: int, tokens: Counting, shares: Mapping[str, Share]) -> list[Part]:
    """Return the parts that fit into `most` tokens, with a last line that counts the others. `parts` are in the order of the sections.

    If not all fit, old observations of LOW priority go first. Then each section is cut to its ceiling, without its HIGH observations and the last messages.
    The first four sections yield what the floors of the others need, whether those use it or not: the prefix must not depend on the question. Then sections
    are cut to their floors, the last section first, then below them. At the very end the last exchange and the question go.
    """

    def whole(some: Sequence[Part]) -> bool:
        return tokens(_noted(parts, some)) <= most

    kept = list(parts)
    if whole(kept):
        return kept
    kept = _without(kept, [part for part in kept if part.tier == FADED], whole)
    if whole(kept):
        return kept
    kept = [
        _shortened(part, max(most // _CUT[part.tier], _SHORT), tokens) if part.tier in _CUT else part
        for part in kept
    ]
    for name in TITLES:
        goes = [part for part in _by_weight(kept, name) if part.tier <= PLAIN]
        if goes and tokens(goes[-1].text) <= _SHORT:
            goes.pop()  # its best part stays for now if it is short
        kept = _without(kept, goes, _within(name, shares[name].ceiling * most, tokens))
    left = most - sum(_reserved(kept, name, shares[name].floor * most, tokens) for name in _REST)
    first = _order(_of(kept, STABLE), STABLE, most, tokens, shares)
    kept = _without(kept, first, lambda some: tokens(text_of(_of(some, STABLE))) <= left)
    there = set(map(_name, kept))
    rest = _order(_of(kept, _REST), _REST, most, tokens, shares)
    last = sorted((part for part in kept if part.tier >= EXCHANGE), key=lambda part: (part.tier, part.weight))
    return _without(kept, [*rest, *(part for part in first if _name(part) in there), *last], whole)


def _reserved(parts: Iterable[Part], name: Name, floor: float, tokens: Counting) -> float:
    """Return the tokens that the first sections reserve for a later section: its floor, or less for a shorter conversation."""
    if name != "conversation":
        return floor
    return min(floor, tokens(section_text(name, (part for part in parts if part.section == name))))


def _within(name: Name, size: float, tokens: Counting) -> Callable[[list[Part]], bool]:
    """Return the test of whether a section of some parts has at most `size` tokens."""
    return lambda some: tokens(section_text(name, (part for part in some if part.section == name))) <= size


def _order(
    parts: Sequence[Part], names: Sequence[Name], most: int, tokens: Counting, shares: Mapping[str, Share]
) -> list[Part]:
    """Return the parts in the order in which they are left out: first those above the floors, last section first, HIGH observations last; then those below."""
    above: list[Part] = []
    below: list[Part] = []
    for name in reversed(names):
        mine = [part for part in _by_weight(parts, name) if part.tier <= LASTING]
        there = _without(_of(parts, (name,)), mine, _within(name, shares[name].floor * most, tokens))
        cut = max(len(parts_not_in(mine, there)) - 1, 0)  # the part that crosses the floor stays
        above += mine[:cut]
        below += mine[cut:]
    return [part for some in (above, below) for part in sorted(some, key=lambda part: part.tier == LASTING)]


def _without(parts: list[Part], order: Sequence[Part], fits: Callable[[list[Part]], bool]) -> list[Part]:
    """Leave out the shortest beginning of `order` that makes the rest fit; all of it if nothing does."""

    def after(count: int) -> list[Part]:
        return parts_not_in(parts, order[:count])

    if fits(parts):
        return parts
    low, high = 0, len(order)  # leaving out `low` parts is not enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(after(middle)) else (middle, high)
    return after(high)


def _noted(parts: Sequence[Part], kept: Sequence[Part]) -> str:
    return text_of(kept, {name: len(some) for name, some in missing(parts, kept).items()})


def _name(part: Part) -> tuple[Any, ...]:
    """Return the identity of a part, the same whether it is cut or not."""
    return part.section, part.weight


def _by_weight(parts: Iterable[Part], name: Name | str) -> list[Part]:
    return sorted((part for part in parts if part.section == name), key=lambda part: part.weight)


def _of(parts: Iterable[Part], names: Sequence[Name]) -> list[Part]:
    return [part for part in parts if part.section in names]


def _shortened(part: Part, most: int, tokens: Counting) -> Part:
    """Cut a part to at most `most` tokens; a longer one keeps its beginning and its end."""
    text = part.text
    if tokens(text) <= most:
        return part

    def cut(length: int) -> str:
        return f"{text[:length]} … (cut) … {text[len(text) - length :]}"

    low, high = 0, len(text) // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tokens(cut(middle)) <= most else (low, middle)
    return replace(part, text=cut(low))


def said_last(speakers: Sequence[str | None]) -> dict[int, int]:
    """Return the tiers of the messages that stay, by place. The last message is the question; the last messages of the two previous turns are the exchange.
    Messages without a sender are turns of their own."""
    runs: list[tuple[str | None, int]] = []
    for place, speaker in enumerate(speakers):
        if runs and speaker is not None and runs[-1][0] == speaker:
            runs[-1] = (speaker, place)
        else:
            runs.append((speaker, place))
    return {place: QUESTION if not back else EXCHANGE for back, (_, place) in enumerate(runs[:-4:-1])}


def parts_of(some: Iterable[Part]) -> Iterator[tuple[Name, list[Part]]]:
    """Yield each section with its parts, in order; empty sections too."""
    found = list(some)
    for name in TITLES:
        yield name, [part for part in found if part.section == name]
