"""Recall what a text brings to mind: a search finds seeds, links are followed from them, and the rankings are combined.

The steps of a question: words → seeds that stand at the coordinate → paths from them → activation → combined ranks → hits, each with its path.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from math import inf, sqrt
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from graphstore.errors import InvalidError
from graphstore.memory import embedders
from graphstore.search.search import Matches, words
from graphstore.store import registry
from graphstore.values.decay import Decay
from graphstore.values.inputs import at_least_one, ids, text_of, whole_within
from graphstore.values.models import UPRIGHT, Event, Json, Link, Node, Standing, Value, marked
from graphstore.values.period import TimeLike
from graphstore.values.searched_text import text_of_node
from graphstore.values.text import given_text
from graphstore.values.vocabulary import Vocabulary
from graphstore.values.words import asked_fields, remaining
from graphstore.view import ranking
from graphstore.view.coverage import COVERS, FLOOR, Strength, coverage_of_text, said
from graphstore.view.filters import ANY, Filters
from graphstore.view.nearby import NearbyLinks
from graphstore.view.sight import Sight
from graphstore.view.view import Reader
from graphstore.view.weighing import Weights

__all__ = ["Hit", "Lens", "Reached", "Recalled", "fuse", "mentions", "recall", "spread"]

MOST_HOPS = 4
"""The largest `hops`: the number of paths grows tenfold with each hop."""
DIRECTIONS = ("out", "in", "both")
OTHER_SCOPES = "other scopes"
"""The key in `Recalled.elsewhere` of things that stand in scopes outside the filter."""
_LINE = 96
_LOOKED_AT = 50  # things that do not stand, examined when no standing thing is a strong answer

T = TypeVar("T", bound=Hashable)
L = TypeVar("L")


class Hit(Value):
    """One thing recalled. A seed was found by the text and its path is empty; anything else was reached from `seed` by `path`.

    `text_score` is BM25, `spread_score` the activation that came by links, `vector_score` the likeness of meaning (a cosine), 0 where there is none;
    `score` is what they make together. `weight` is what decay left of each, 1 without decay. `coverage` is the share of the question's weight that its own
    text says, 0 to 1; `strength` is strong where that is half at least, or where the question names it. `matched` are the words of the question as they stand
    in the text, `snippet` the part of it around them.
    """

    node: Node | Event
    score: float
    text_score: float
    text_rank: int | None
    spread_score: float
    spread_rank: int | None
    vector_score: float
    vector_rank: int | None
    seed: str
    path: tuple[Link, ...]
    weight: float = 1.0
    coverage: float = 0.0
    strength: Strength = "weak"
    matched: tuple[str, ...] = ()
    snippet: str = ""

    @property
    def standing(self) -> Standing:
        """Return the standing at the coordinate."""
        return self.node.standing

    @property
    def since(self) -> datetime:
        """Return the instant from which it holds, or at which it happened."""
        return self.node.occurred_at if isinstance(self.node, Event) else self.node.valid_from

    @property
    def until(self) -> datetime | None:
        """Return the instant until which it holds; None if no end is known."""
        return None if isinstance(self.node, Event) else self.node.valid_to

    def __str__(self) -> str:
        way = " ".join(_step(link, here) for link, here in zip(self.path, self._way(), strict=True))
        return f"{_shown(self.node)}{f'  [{self.seed} {way}]' if way else ''}"

    def _way(self) -> Iterator[str]:
        here = self.seed
        for link in self.path:
            yield here
            here = link.target if link.source == here else link.source


class Recalled(Value):
    """What a text called to mind, best first, plans included: what is `not_yet` and begins later than all that is known here. `note` says how it was
    searched and which words nothing here says.

    `left_out`: how many more things say a little of it, less than is worth showing. `elsewhere`, where nothing that stands is a strong answer: how many things
    that do not stand say it, by how they stand; `standing="any"` shows them. Where a scope was asked also how many say it in `other scopes`.
    `truncated`: there is more as good as this, and a higher `k` shows it.
    """

    text: str
    hits: tuple[Hit, ...]
    note: str
    left_out: int = 0
    elsewhere: dict[str, int] = {}
    truncated: bool = False

    def __iter__(self) -> Iterator[Hit]:  # type: ignore[override]
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __str__(self) -> str:
        lines = [f"{rank}. {hit}" for rank, hit in enumerate(self.hits, 1)]
        more = f"; there is more than these {len(self.hits)}: ask for a higher k" if self.truncated else ""
        return "\n".join(
            [*(lines or [f"Nothing here comes to mind for {self.text!r}."]), f"({self.note}{more})"]
        )


class Lens(Protocol):
    """The interface by which a module adapts a recall. Its methods are called while the store's lock is held."""

    @property
    def note(self) -> str:
        """Return how the search was done, for the answer's note."""

    def seen(self, sight: Sight) -> Callable[[int], bool] | None:
        """Return the test of which entities may be found and passed through; None if all may."""

    def nearest(self, sight: Sight, most: int, fits: Callable[[int], bool] | None, /) -> Mapping[int, float]:
        """Return the entities nearest in meaning among those that stand, are seen and fit, with their scores, best first."""


class Reached(NamedTuple, Generic[T, L]):
    """A thing reached by paths: the sum of their activation, and the strongest path with its seed."""

    activation: float
    seed: T
    path: tuple[L, ...]


@registry.read("recall")
def recall(
    view: Reader,
    text: str,
    k: int = 10,
    *,
    kinds: Iterable[str] | str = (),
    tag: Iterable[str] | str = (),
    key: Iterable[str] | str = (),
    scope: Iterable[str] | str = (),
    author: Iterable[str] | str = (),
    source: Iterable[str] | str = (),
    standing: Iterable[str] | str = (),
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    recorded_since: TimeLike | None = None,
    recorded_until: TimeLike | None = None,
    hops: int = 2,
    fan_out: int = 10,
    hop_weight: float = 0.5,
    rrf: float = 60,
    along: Iterable[str] | str = (),
    direction: str = "both",
    decay: Decay | None = None,
    lens: Lens | None = None,
) -> Recalled:
    """The `k` things that a text calls to mind among what stands at the view's coordinate.

    The `k` best matches of the text are the seeds. From each, links that hold there are followed up to `hops` times, the `fan_out` strongest of a
    thing, of kinds that are walked unless `along` names others; each hop weighs `hop_weight` / √(1 + links of the thing reached), and a thing is activated by
    the sum over all paths of the seed's share of the best score times the weights. A thing is worth the sum of its shares of the best by words (1), by meaning
    (0.3) and by links (0.35), and what it gains where the turn of a conversation before or after it matches, where the text names who said it, when it was
    (`in March`, `last week`), or its id or key. `rrf` is taken and not used. `kinds`: only hits of these node kinds or event types; the way to them may lead
    through others. So with the other filters: of each one value must fit (`source` by its beginning), and what is said began or happened in
    [`since`, `until`) and was recorded in [`recorded_since`, `recorded_until`). `field:value` in the text is a filter too, as `tag:billing` or
    `since:2026-03-01`; filters without words give what fits, the newest first. With a `standing` of what does not stand (`ended`, `any`) it is asked as by `mentions`. What is kept twice (batches of messages, segments, summaries) is a hit only
    when its kind is named. With `decay` the scores of all rankings are multiplied by what each thing weighs at the coordinate, before they are ranked. What is near in meaning, with an embedder of the store, is a seed too,
    its share the better of the two. `lens`: what is seen at all, and that ranking otherwise. A message that was
    not authorized is no hit and no way. The hits count as looked up. Raises InvalidError for a number out of range, and when a time is after
    the one that ends it, be it an argument or in the text.
    """
    walk = _LinkWalk(hops, fan_out, hop_weight, along, direction)
    left_out: list[str] = []
    _refuse_bad(text, k, walk, rrf, decay)
    filters = Filters.from_question(
        view,
        {"kind": ids("kinds", kinds), "tag": tag, "key": key, "scope": scope, "author": author, "source": source, "standing": standing},
        {"since": since, "until": until, "recorded_since": recorded_since, "recorded_until": recorded_until},
        asked_fields(text),
        left_out,
    )  # fmt: skip
    if filters.of_the_past:
        return _noting(_mentions(view, text, k, filters, lens), left_out)
    lens = lens or embedders.asked(view, text)
    with view.reading() as sight:
        recalled = _standing(
            sight, text, k, filters, walk, vocabulary=view.vocabulary, decay=decay, lens=lens
        )
    view._count_access(hit.node.id for hit in recalled.hits)
    return _noting(recalled, left_out)


class _LinkWalk(NamedTuple):
    """Holds how links are followed from the seeds."""

    hops: int
    fan_out: int
    hop_weight: float
    along: Iterable[str] | str
    direction: str


def _standing(
    sight: Sight,
    text: str,
    k: int,
    filters: Filters,
    walk: _LinkWalk,
    *,
    vocabulary: Vocabulary,
    decay: Decay | None,
    lens: Lens,
) -> Recalled:
    """Return what a text brings to mind among what stands."""
    weigh = None if decay is None else Weights(sight, decay).weight_of
    seen = _seen(sight, lens)
    pool = max(k, ranking.POOL)
    found = sight.found(text, pool, weigh=weigh, seen=seen)
    if filters != Filters() and not words(remaining(text)):
        return _listed(sight, text, k, filters, seen)
    meant = _meant(sight, lens, k, weigh, seen)
    followed = frozenset.union(*vocabulary.named(walk.along)) or None
    near = NearbyLinks(sight, followed, walk.direction, walk.fan_out, lens.seen(sight))
    seeds = _seeds(found, meant, k)
    sight.read_links(seeds)
    reached = spread(seeds, near.strongest, near.degree, hops=walk.hops, hop_weight=walk.hop_weight)
    if weigh is not None:
        reached = {
            ent: each._replace(activation=each.activation * weigh(ent)) for ent, each in reached.items()
        }
    found, fits = _fitting(sight, text, pool, found, filters, weigh=weigh, seen=seen)
    if not all(fits(ent) for ent in meant):
        meant = _meant(sight, lens, k, weigh, fits)
    order = _ordered(sight, found, meant, reached, fits)
    says = dict(zip(order.best, found.coverages(order.best), strict=True))
    led_to = (order.meaning, order.ways, order.gained)  # found by something other than a word of low weight
    shown = [ent for ent in order.best if says[ent] >= FLOOR or any(ent in each for each in led_to)]
    weights = {ent: 1.0 if weigh is None else weigh(ent) for ent in shown[:k]}
    hits = tuple(_hit(sight, ent, found, order, weight, says[ent]) for ent, weight in weights.items())
    is_strong = any(hit.strength == "strong" for hit in hits)
    plans = {} if filters.standing else _plans(sight, found, filters, seen, k)
    elsewhere = {} if is_strong else _elsewhere(sight, found, filters, seen, set(plans))
    hits = _with_plans(hits, plans.values())
    return Recalled.made(
        {
            "text": text,
            "hits": hits[:k],
            "note": _note(text, found, lens.note, elsewhere, {hit.node.id.casefold() for hit in hits}),
            "left_out": len(order.best) - len(shown),
            "elsewhere": elsewhere,
            "truncated": len(shown) + len(plans) > k,
        }
    )


@registry.read("recall")
def mentions(
    view: Reader,
    text: str,
    k: int = 10,
    *,
    kinds: Iterable[str] | str = (),
    tag: Iterable[str] | str = (),
    key: Iterable[str] | str = (),
    scope: Iterable[str] | str = (),
    author: Iterable[str] | str = (),
    source: Iterable[str] | str = (),
    standing: Iterable[str] | str = (),
    since: TimeLike | None = None,
    until: TimeLike | None = None,
    recorded_since: TimeLike | None = None,
    recorded_until: TimeLike | None = None,
) -> Recalled:
    """The `k` things that say a text best among all recorded by the view's tx, whatever became of them: each once, as the version says it
    that says it best. So what was superseded, retracted or has not begun is found too, by words it has no more.

    `kinds`: only these node kinds or event types; the other filters are those of `recall`. Nothing is counted as looked up. Raises InvalidError for
    a number out of range.
    """
    text_of("text", text, empty=True)
    left_out: list[str] = []
    at_least_one("k", k)
    filters = Filters.from_question(
        view,
        {"kind": ids("kinds", kinds), "tag": tag, "key": key, "scope": scope, "author": author, "source": source, "standing": standing},
        {"since": since, "until": until, "recorded_since": recorded_since, "recorded_until": recorded_until},
        asked_fields(text),
        left_out,
    )  # fmt: skip
    return _noting(_mentions(view, text, k, filters), left_out)


def _noting(recalled: Recalled, left_out: list[str]) -> Recalled:
    """Return an answer whose note says first which filters in the text were left out, and why."""
    return (
        recalled.model_copy(update={"note": "; ".join((*left_out, recalled.note))}) if left_out else recalled
    )


def _mentions(view: Reader, text: str, k: int, filters: Filters, lens: Lens | None = None) -> Recalled:
    with view.reading() as sight:
        seen = _seen(sight, lens)
        if filters != Filters() and not words(remaining(text)):
            return _listed_ever(sight, text, k, filters, seen)
        fits, standing = filters.fitting(sight), filters.standing - {ANY}
        found = sight.found(text, 1)  # gives the weights of the words here
        best: dict[int, Hit] = {}
        passed: set[int] = set()
        for ent, number, score in sight.found_ever(text, filters.kind):
            if ent in best or (fits is not None and not fits(ent, sight.last_row(ent, number))):
                continue
            if (standing and ent in passed) or not seen(ent):
                continue
            passed.add(ent)
            hit = _mention(sight, found, ent, number, score, len(best) + 1)
            if not standing or hit.node.standing in standing:
                best[ent] = hit
                if len(best) > k:
                    break
        note, hits = "full-text over all that was ever recorded", tuple(best.values())
        return Recalled(text=text, hits=hits[:k], note=note, truncated=len(hits) > k)


def _seen(sight: Sight, lens: Lens | None) -> Callable[[int], bool]:
    """Return the test of which entities may be found and passed through. It never admits an unauthorized message."""
    seen, admitted = None if lens is None else lens.seen(sight), sight.admitted()
    return admitted if seen is None else lambda ent: seen(ent) and admitted(ent)


def _listed_ever(sight: Sight, text: str, k: int, filters: Filters, seen: Callable[[int], bool]) -> Recalled:
    """Return the newest `k` things ever recorded that fit, each as its last fitting version. Used when the question has only filters."""
    index, fits = sight.index, filters.fitting(sight)
    held: dict[int, tuple[int, str, int, int]] = {}
    for ver in sight.versions_ever():
        ent, number = index.v_ent[ver], index.v_num[ver]
        wanted = index.kind[ent] in filters.kind if filters.kind else not ranking.says_again(sight, ent)
        if not wanted or ent in index.gone or not seen(ent):
            continue
        row = sight.last_row(ent, number)
        if row >= 0 and (fits is None or fits(ent, row)) and (ent not in held or number > held[ent][3]):
            held[ent] = (-index.r_from[row], index.names[ent], ent, number)
    things = (
        sight.thing(ent) if sight.is_event(ent) else sight.described(ent, number)
        for _, _, ent, number in sorted(held.values())
    )
    standing = filters.standing - {ANY}
    fitting = (_fitted(thing) for thing in things if not standing or thing.standing in standing)
    hits = tuple(islice(fitting, k))
    left = sum(1 for _ in fitting) if standing else len(held) - len(hits)
    note = "what fits of all that was ever recorded, the newest first"
    return Recalled(text=text, hits=hits, note=note, left_out=left, truncated=left > 0)


def _listed(sight: Sight, text: str, k: int, filters: Filters, seen: Callable[[int], bool]) -> Recalled:
    """Return the newest `k` things that stand and fit. Used when the question has only filters."""
    index, fits = sight.index, filters.fitting(sight)
    held: list[tuple[int, str, int]] = []
    for ent in _asked(sight, filters):
        if (not filters.kind and ranking.says_again(sight, ent)) or not seen(ent):
            continue
        row = sight.find(ent)
        if row >= 0 and (fits is None or fits(ent, row)) and sight.standing(ent) in UPRIGHT:
            held.append((-index.r_from[row], index.names[ent], ent))
    hits = tuple(_fitted(sight.thing(ent)) for _, _, ent in nsmallest(k, held))
    left = max(0, len(held) - k)
    return Recalled(
        text=text, hits=hits, note="what fits, the newest first", left_out=left, truncated=left > 0
    )


def _asked(sight: Sight, filters: Filters) -> Iterable[int]:
    """Yield all known entities of the wanted kinds, or else of the wanted scopes."""
    both = (False, True)
    if filters.kind:
        return (ent for events in both for ent in sight.of_kinds(filters.kind, events))
    scopes = filters.scope or (None,)
    return (ent for events in both for scope in scopes for ent in sight.entities(events, scope=scope))


def _fitted(thing: Node | Event) -> Hit:
    return _made_hit(thing, coverage=1.0, strength="strong")


def _with_plans(hits: Sequence[Hit], plans: Iterable[Hit]) -> tuple[Hit, ...]:
    """Insert plans that are a strong answer after the last strong hit, and the others at the end. The order of the hits stays."""
    strong = max((place for place, hit in enumerate(hits, 1) if hit.strength == "strong"), default=0)
    sure: list[Hit] = []
    unsure: list[Hit] = []
    for plan in plans:
        (sure if plan.strength == "strong" else unsure).append(plan)
    return (*hits[:strong], *sure, *hits[strong:], *unsure)


_UNRANKED = {
    **dict.fromkeys(("node", "score", "text_score", "text_rank", "spread_score", "spread_rank", "vector_score", "vector_rank", "seed")),
    **dict.fromkeys(("score", "text_score", "spread_score", "vector_score"), 0.0),
    "path": (), "weight": 1.0, "coverage": 0.0, "strength": "weak", "matched": (), "snippet": "",
}  # fmt: skip
"""The fields of a hit for which there is no ranking, in their order."""


def _made_hit(thing: Node | Event, **found: Any) -> Hit:
    return Hit.made({**_UNRANKED, "node": thing, "seed": thing.id, **found})


def _says(sight: Sight, found: Matches, thing: Node | Event, share: float, is_named: bool = False) -> Json:
    """Return the fields of a hit that say how well a thing's own text answers the question."""
    words_said = said(sight.core.search.analyzer, found.question.terms, text_of_thing(thing))
    return {
        "coverage": round(share, 4),
        "strength": "strong" if share >= COVERS or is_named else "weak",
        "matched": words_said.words,
        "snippet": words_said.snippet,
    }


def _plans(
    sight: Sight, found: Matches, filters: Filters, seen: Callable[[int], bool], most: int
) -> dict[int, Hit]:
    """Return what begins later than all that is known here and matches the question, best first."""
    fits, plans = filters.fitting(sight), dict[int, Hit]()
    for ent, number, score in sight.planned(found.question.text, filters.kind):
        if ent in plans or not seen(ent) or (not filters.kind and ranking.says_again(sight, ent)):
            continue
        if fits is not None and not fits(ent, sight.last_row(ent, number)):
            continue
        hit = _mention(sight, found, ent, number, score, len(plans) + 1)
        if hit.standing == "not_yet" and hit.coverage >= FLOOR:
            plans[ent] = hit
            if len(plans) == most:
                break
    return plans


def _elsewhere(
    sight: Sight, found: Matches, filters: Filters, seen: Callable[[int], bool], passed: set[int]
) -> dict[str, int]:
    """Count the matching things that do not stand, by standing, and those that stand in scopes outside the filter. Only the best matches are examined;
    `passed` are skipped."""
    index, fits = sight.index, filters._replace(scope=frozenset()).fitting(sight)
    many: dict[str, int] = {}
    for ent, number, _ in sight.found_ever(found.question.text, filters.kind, fallen=not filters.scope):
        there, stands = not filters.scope or index.scope[ent] in filters.scope, sight.stands(ent)
        if ent in passed or stands == there or not seen(ent):
            continue
        if fits is not None and not fits(ent, sight.last_row(ent, number)):
            continue
        passed.add(ent)
        thing = sight.thing(ent) if sight.is_event(ent) else sight.described(ent, number)
        if _share_said(sight, found, thing) >= COVERS:
            how = thing.standing if there else OTHER_SCOPES
            many[how] = many.get(how, 0) + 1
        if len(passed) == _LOOKED_AT:
            break
    return many


def text_of_thing(thing: Node | Event) -> str:
    """Return the text of a thing: its statement, then the rest of its content."""
    if isinstance(thing, Event):
        return thing.description
    body = {"text": given_text(thing.content, thing.text), "content": thing.content, "tags": thing.tags}
    return text_of_node(body, thing.kind, None)


def _share_said(sight: Sight, found: Matches, thing: Node | Event) -> float:
    analyzer, terms = sight.core.search.analyzer, found.question.terms
    return coverage_of_text(analyzer, terms, found.weights, text_of_thing(thing))


def _mention(sight: Sight, found: Matches, ent: int, number: int, score: float, rank: int) -> Hit:
    thing = sight.thing(ent) if sight.is_event(ent) else sight.described(ent, number)
    says = _says(sight, found, thing, _share_said(sight, found, thing))
    return _made_hit(thing, score=score, text_score=score, text_rank=rank, **says)


def _seeds(found: Matches, meant: Mapping[int, float], k: int) -> dict[int, float]:
    """Return the starts of paths: the `k` best by text and those by meaning, each with the better of its two shares."""
    best = (found.matches[0][1] if found.matches else 0.0) or 1.0
    seeds = {ent: score / best for ent, score in found.matches[:k]}
    for ent, score in ranking.shares(meant).items():
        seeds[ent] = max(score, seeds.get(ent, 0.0))
    return seeds


def _meant(
    sight: Sight,
    lens: Lens,
    k: int,
    weigh: Callable[[int], float] | None,
    fits: Callable[[int], bool],
) -> Mapping[int, float]:
    """Return the `k` things nearest in meaning that fit, with their scores, best first."""
    if weigh is None:
        return lens.nearest(sight, k, fits)
    weighed: dict[int, float] = {}
    asked = k
    while True:  # a weight is at most 1: beyond the last one, nothing can beat the k best
        near = lens.nearest(sight, asked, fits)
        weighed |= {
            ent: score * weigh(ent) for ent, score in near.items() if score > 0 and ent not in weighed
        }
        best = nsmallest(k, weighed, key=lambda ent: (-weighed[ent], sight.id(ent)))
        last = min(near.values(), default=0.0)
        if len(near) < asked or last <= 0 or (len(best) == k and weighed[best[-1]] > last):
            return {ent: weighed[ent] for ent in best}
        asked *= 4


def _refuse_bad(text: object, k: object, walk: _LinkWalk, rrf: object, decay: object) -> None:
    text_of("text", text, empty=True)
    at_least_one("k", k)
    whole_within("hops", walk.hops, 0, MOST_HOPS)
    at_least_one("fan_out", walk.fan_out)
    _share("hop_weight", walk.hop_weight, 1.0)
    _share("rrf", rrf, inf)
    if walk.direction not in DIRECTIONS:
        raise InvalidError.choice("direction", walk.direction, DIRECTIONS)
    if decay is not None and not isinstance(decay, Decay):
        raise InvalidError(
            f"decay {decay!r} is no Decay. Give a graphstore.values.decay.Decay(…), or None; what a hop weighs is hop_weight."
        )


def _ranks_of(ranking: Iterable[T]) -> dict[T, int]:
    """Return the rank of each thing in a ranking, from 1."""
    return {thing: rank for rank, thing in enumerate(ranking, 1)}


def _fitting(
    sight: Sight,
    text: str,
    pool: int,
    found: Matches,
    filters: Filters,
    *,
    weigh: Callable[[int], float] | None,
    seen: Callable[[int], bool],
) -> tuple[Matches, Callable[[int], bool]]:
    """Return the matches that may be hits, and the test of which entities may be. Search again if some found ones may not."""
    kind, wanted, chosen, standing = sight.kind, filters.kind, filters.fitting(sight), filters.standing

    def fits(ent: int) -> bool:
        of_kind = kind(ent) in wanted if wanted else not ranking.says_again(sight, ent)
        return (
            of_kind
            and seen(ent)
            and (found.admits is None or found.admits(ent))
            and (chosen is None or chosen(ent, sight.find(ent)))
            and (not standing or sight.standing(ent) in standing)
        )

    if all(fits(ent) for ent, _ in found.matches):
        return found, fits
    return sight.found(text, pool, weigh=weigh, seen=fits), fits


class _Order(NamedTuple):
    """Holds everything found, best first, and each thing's score by words, meaning, links and gains."""

    best: list[int]
    worth: dict[int, float]
    text: dict[int, float]
    meaning: Mapping[int, float]
    ways: Mapping[int, Reached[int, int]]
    beside: dict[int, int]
    gained: Mapping[int, float]
    ranks: tuple[Mapping[int, int], ...]
    """The rank of each thing by words, by links and by meaning, from 1."""


def _ordered(
    sight: Sight,
    found: Matches,
    meant: Mapping[int, float],
    reached: Mapping[int, Reached[int, int]],
    fits: Callable[[int], bool],
) -> _Order:
    """Order what was found by its worth: the sum of its shares and gains."""
    text = dict(found.matches)
    meaning = {ent: score for ent, score in meant.items() if fits(ent)}
    ways = {ent: each for ent, each in reached.items() if fits(ent)}
    by_links = sorted(ways, key=lambda ent: (-ways[ent].activation, sight.id(ent)))
    ranks = tuple(map(_ranks_of, (text, by_links, meaning)))
    greatest = max(text.values(), default=0.0) or 1.0
    by_words = {
        ent: score / greatest for ent, score in text.items()
    }  # what decay reduced to zero is still found
    beside = ranking.worth(sight, found, fits)
    worth = ranking.woven(
        (
            (1.0, by_words),
            (ranking.MEANING, ranking.shares(meaning)),
            (ranking.LINKS, ranking.shares({ent: each.activation for ent, each in ways.items()})),
            (1.0, beside.gains),
        )
    )
    best = sorted(worth, key=lambda ent: (-worth[ent], ranks[0].get(ent, inf), sight.id(ent)))
    return _Order(best, worth, text, meaning, ways, beside.beside, beside.gains, ranks)


def _hit(sight: Sight, ent: int, found: Matches, order: _Order, weight: float, share: float) -> Hit:
    way, (by_words, by_links, by_meaning) = order.ways.get(ent), order.ranks
    thing = sight.thing(ent)
    is_named = order.gained.get(ent, 0.0) >= ranking.NAMED[-1]
    led = None if ent in order.text or ent in order.meaning else way
    seed = led.seed if led else ent if ent in order.text else order.beside.get(ent, ent)
    return _made_hit(
        thing,
        score=order.worth[ent],
        text_score=order.text.get(ent, 0.0),
        text_rank=by_words.get(ent),
        spread_score=way.activation if way else 0.0,
        spread_rank=by_links.get(ent),
        vector_score=order.meaning.get(ent, 0.0),
        vector_rank=by_meaning.get(ent),
        seed=sight.id(seed),
        path=tuple(map(sight.link, led.path)) if led else (),
        weight=weight,
        **_says(sight, found, thing, share, is_named),
    )


def spread(
    seeds: Mapping[T, float],
    strongest: Callable[[T], Iterable[tuple[L, T]]],
    degree: Callable[[T], int],
    *,
    hops: int = 2,
    hop_weight: float = 0.5,
) -> dict[T, Reached[T, L]]:
    """Return what the paths from `seeds` activate, by at least one hop. A path visits no thing twice.

    `strongest(thing)` returns the links to follow from a thing, each with the thing it leads to, strongest first. `degree` returns the number of all its
    links. Among paths that add the same activation, the first found is kept: the earlier seed first, then the stronger links.
    """
    found: dict[T, Reached[T, L]] = {}
    damped: dict[T, float] = {}

    def walk_from(seed: T, path: tuple[L, ...], way: tuple[T, ...], energy: float) -> None:
        for link, thing in strongest(way[-1]):
            if thing in way:
                continue
            weight = damped.get(thing)
            if weight is None:
                weight = damped[thing] = hop_weight / sqrt(1 + degree(thing))
            brought = energy * weight
            before, further = found.get(thing), (*path, link)
            if before is None:
                found[thing], most[thing] = Reached(brought, seed, further), brought
            elif brought > most[thing]:
                found[thing], most[thing] = Reached(before.activation + brought, seed, further), brought
            else:
                found[thing] = Reached(before.activation + brought, before.seed, before.path)
            if len(further) < hops:
                walk_from(seed, further, (*way, thing), brought)  # noqa: F821 (deleted below, when all are done)

    most: dict[T, float] = {}  # activation of the path that is kept
    if hops > 0:
        for seed, energy in seeds.items():
            walk_from(seed, (), (seed,), energy)
    del walk_from  # it refers to itself, and so to its arguments
    return found


def fuse(rankings: Sequence[Sequence[T]], rrf: float = 60) -> dict[T, float]:
    """Return the reciprocal rank fusion: for each thing the sum of 1 / (rrf + rank) over its rankings; ranks begin at 1."""
    fused: dict[T, float] = {}
    for each in rankings:
        for rank, thing in enumerate(each, 1):
            fused[thing] = fused.get(thing, 0.0) + 1 / (rrf + rank)
    return fused


def _note(
    text: str, found: Matches, note: str, elsewhere: Mapping[str, int], named: Container[str] = ()
) -> str:
    """Return how the search was done, and which words of the text occur nowhere. `named`: ids of the hits, in lower case."""
    listed = ", ".join(
        f"{many} {standing}" for standing, many in elsewhere.items() if standing != OTHER_SCOPES
    )
    if listed:
        note = f"{note}; what does not stand says it: {listed} (standing=any shows them)"
    if OTHER_SCOPES in elsewhere:
        note = f"{note}; {elsewhere[OTHER_SCOPES]} in other scopes say it (without scope= they are shown)"
    if unknown := [word for word in found.unknown if word.casefold() not in named]:
        return f"{note}; no word here is {' or '.join(map(repr, unknown))}"
    return note if found.matches or words(text) else f"{note}; {text!r} holds no word"


def _shown(thing: Node | Event) -> str:
    kind = thing.type if isinstance(thing, Event) else thing.kind
    text = thing.description if isinstance(thing, Event) else thing.text or _fields(thing.content)
    begins = thing.occurred_at if isinstance(thing, Event) else thing.valid_from
    named = f"{thing.id} {kind}{marked(thing.standing, begins)}"
    return f"{named}: {text}" if len(text) <= _LINE else f"{named}: {text[: _LINE - 1]}…"


def _fields(content: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in content.items())


def _step(link: Link, here: str) -> str:
    return f"{link.kind} {link.target}" if link.source == here else f"← {link.kind} {link.source}"


def _share(name: str, value: object, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        allowed = "above 0" if most == inf else f"above 0 and at most {most:g}"
        raise InvalidError(f"{name} {value!r} is out of range. Give a number {allowed}.")
