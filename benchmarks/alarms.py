"""`python -m benchmarks.alarms [--wrong] [--pairs FILE] [--embedder NAME]`: how right the candidates of `contradictions()` and the warnings of writes are.

The warnings are measured on plain pairs of sentences (`write_pairs/*.jsonl`): the first of each pair stands, the second is written with `warn=True`. Each
pair has a scope of its own, then all are in one. The candidates are measured on labelled pairs with tags and fields (`alarm_pairs.py`).

Each pair is told in a scope of its own, as of 1 and 30 January, so every candidate is an answer about one pair. Then all facts are told once more in one
scope, where facts of many projects meet: there every candidate that is no pair labelled as contradicting is a false alarm.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import graphstore
from benchmarks.alarm_pairs import DISAGREE, NOTEBOOK, Fact, Labelled, pairs
from graphstore.store.links import Pair, Verdict
from graphstore.values import sameness

PRECISION = 0.9
RECALL, FALSE_ALARMS = 0.7, 0.05  # of the warnings of writes
PLAIN = Path(__file__).parent / "write_pairs"
SHARED = 0.2  # the former rule: so much of their words in common


def tell(store: graphstore.GraphStore, fact: Fact, id: str, since: str, scope: str) -> None:
    """Write a fact down."""
    store.add_node(
        fact.kind, fact.content, id=id, tags=fact.tags, key=fact.key, valid_from=since, scope=scope
    )


def told_apart(told: list[Labelled], ask: list[list[Pair]]) -> set[int]:
    """The pairs that are candidates, each in a scope of its own. `ask`: gets what a judge is handed."""

    def judge(handed: list[Pair]) -> list[Verdict]:
        ask.append(handed)
        return [Verdict(False)] * len(handed)

    with graphstore.open(":memory:") as store:
        with store.transaction():
            for number, pair in enumerate(told):
                tell(store, pair.older, f"{number}-old", "2026-01-01", f"pair {number}")
                tell(store, pair.newer, f"{number}-new", "2026-01-30", f"pair {number}")
        store.sweep(judge=judge)
        return {int(found.source.id.partition("-")[0]) for found in store.contradictions()}


def told_together(told: list[Labelled]) -> tuple[int, int, list[str]]:
    """How many candidates there are when all is in one scope, how many of them are pairs labelled as contradicting, and the others."""
    facts: dict[str, Fact] = {}
    true = set()
    for pair in told:
        ends = [f"{since} {fact}" for since, fact in (("2026-01-01", pair.older), ("2026-01-30", pair.newer))]
        facts |= dict(zip(ends, (pair.older, pair.newer), strict=True))
        if pair.contradicts:
            true.add(frozenset((_id(ends[0]), _id(ends[1]))))
    with graphstore.open(":memory:") as store:
        with store.transaction():
            for name, fact in facts.items():
                if fact.key is None:  # a slot takes the place of what is in it, which is another matter
                    tell(store, fact, _id(name), name[:10], "")
        found = store.contradictions()
    others = [each for each in found if frozenset((each.source.id, each.target.id)) not in true]
    said = [f"{each.about}: {each.source.content} | {each.target.content}" for each in others]
    return len(found), len(found) - len(others), said


def notebook() -> tuple[list[tuple[str, str]], list[tuple[str, str]], int]:
    """Of an agent's notebook: the candidates that are contradictions, those that are not, and how many contradictions there are."""
    true = {frozenset(pair.split()) for pair in DISAGREE}
    with graphstore.open(":memory:") as store:
        for number, (name, (content, tags, kind)) in enumerate(NOTEBOOK.items()):
            store.add_node(
                kind,
                content,
                id=f"n-{name}",
                tags=tags.split(),
                valid_from=f"2026-01-01T{number // 60:02}:{number % 60:02}Z",
            )
        found = [(each.source.id[2:], each.target.id[2:]) for each in store.contradictions()]
    right = [pair for pair in found if frozenset(pair) in true]
    return right, [pair for pair in found if pair not in right], len(true)


def _id(name: str) -> str:
    return f"f{abs(hash(name)):x}"


def shares_words(pair: Labelled) -> bool:
    """The former rule: one kind, a fifth of the words, and not the same."""
    one, other = (sameness.statement(fact.content, None) for fact in (pair.older, pair.newer))
    alike = sameness.overlap(one, other) >= SHARED and not sameness.same(one, other)
    return alike and pair.older.kind == pair.newer.kind


def line(name: str, told: list[Labelled], alarms: Iterable[int]) -> str:
    """Precision and recall of some alarms, as a row of the table."""
    raised = set(alarms)
    true = {number for number, pair in enumerate(told) if pair.contradicts}
    hits = len(raised & true)
    precision = hits / len(raised) if raised else 1.0
    recall = hits / len(true) if true else 1.0
    return f"| {name:<42} | {len(told):>5} | {len(true):>4} | {len(raised):>6} | {precision:>9.3f} | {recall:>6.3f} |"


# ---- warnings of writes -------------------------------------------------------------------------


@dataclass(frozen=True)
class PlainPair:
    """Two sentences, how they relate (`contrary`, `same`, `unrelated`, `compatible`), and whether the pair was held back while the rules were made."""

    a: str
    b: str
    label: str
    part: str = "dev"


def plain_pairs(path: Path) -> list[PlainPair]:
    """Read a file with a JSON object a line."""
    return [PlainPair(**json.loads(row)) for row in path.read_text(encoding="utf-8").splitlines() if row]


def warned(told: list[PlainPair], embedder: str | None, *, together: bool) -> list[tuple[bool, bool]]:
    """For each pair: whether the second sentence is warned of as contrary, and as similar. `together`: all first sentences stand in one scope."""
    found = []
    with graphstore.open(":memory:", embedder=embedder) as store:
        with store.transaction():
            for number, pair in enumerate(told):
                store.add_node(
                    "fact", {"says": pair.a}, id=f"a{number}", scope="" if together else f"pair {number}"
                )
        for number, pair in enumerate(told):
            node = store.add_node(
                "fact",
                {"says": pair.b},
                id=f"b{number}",
                scope="" if together else f"pair {number}",
                warn=True,
            )
            found.append((bool(node.maybe_contrary), bool(node.similar)))
            if together:  # only the first sentences stand
                store.retract(node.id, reason="measured")
    return found


def warnings(paths: list[Path], embedder: str | None, wrong: bool) -> bool:
    """Print how right the warnings are; return True if the recall and the false alarms of every file are as wanted."""
    met = True
    print(f"warnings of writes, {f'with the embedder {embedder}' if embedder else 'without an embedder'}:")
    for path in paths:
        told = plain_pairs(path)
        alone, together = (warned(told, embedder, together=each) for each in (False, True))
        print(f"  {path.name}:")
        for label in ("contrary", "compatible", "unrelated", "same"):
            for part in sorted({pair.part for pair in told}):
                chosen = [n for n, pair in enumerate(told) if (pair.label, pair.part) == (label, part)]
                if chosen:
                    alarms, alike, crowd = (
                        sum(found[n][which] for n in chosen)
                        for found, which in ((alone, 0), (alone, 1), (together, 0))
                    )
                    print(
                        f"    {label:<10} {part:<5} {len(chosen):>4} pairs: {alarms:>3} contrary ({alarms / len(chosen):.1%}), "
                        f"{alike:>3} similar; {crowd:>3} contrary to something when all stand in one scope"
                    )
        rates = {
            label: sum(alone[n][0] for n, pair in enumerate(told) if pair.label == label)
            / max(1, sum(pair.label == label for pair in told))
            for label in ("contrary", "unrelated")
        }
        is_met = rates["contrary"] >= RECALL and rates["unrelated"] <= FALSE_ALARMS
        met = met and is_met
        print(
            f"    contrary recall {rates['contrary']:.3f}, at least {RECALL} wanted; false alarms on unrelated writes {rates['unrelated']:.3f}, at most "
            f"{FALSE_ALARMS} wanted: {'met' if is_met else 'MISSED'}"
        )
        for n, pair in enumerate(told) if wrong else ():
            if alone[n][0] != (pair.label == "contrary") and pair.part != "held":
                print(f"      {pair.label}: {pair.a} | {pair.b}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alarms", description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="print each pair that is not as labelled")
    parser.add_argument(
        "--pairs", type=Path, action="append", help="measure the warnings on these files alone"
    )
    parser.add_argument("--embedder", help="the embedder of the store, such as wordllama")
    options = parser.parse_args()
    are_met = warnings(options.pairs or sorted(PLAIN.glob("*.jsonl")), options.embedder, options.wrong)
    if options.pairs:
        return 0 if are_met else 1
    return 0 if candidates(options.wrong) and are_met else 1


def candidates(wrong: bool) -> bool:
    """Print how right the candidates of `contradictions()` are; return True if they are as precise as wanted."""
    told = pairs()
    handed: list[list[Pair]] = []
    alarms = told_apart(told, handed)
    print(f"| {'':<42} | pairs | true | alarms | precision | recall |")
    print(f"|{'-' * 44}|{'-' * 6}:|{'-' * 5}:|{'-' * 7}:|{'-' * 10}:|{'-' * 7}:|")
    print(line("all", told, alarms))
    parts = {
        "English": [pair.language == "en" for pair in told],
        "Russian": [pair.language == "ru" for pair in told],
    }
    for name, wanted in parts.items():
        some = [number for number, in_it in enumerate(wanted) if in_it]
        raised = [at for at, number in enumerate(some) if number in alarms]
        print(line(name, [told[at] for at in some], raised))
    print(
        line("shared words alone, as it was before", told, [n for n, p in enumerate(told) if shares_words(p)])
    )
    asked = {int(each.newer.id.partition("-")[0]) for each in handed[0]}
    print(line("what a judge is asked about", told, asked))
    print()
    for (group, label), count in sorted(
        Counter((p.group, p.contradicts) for p in told).items(), key=lambda e: (not e[0][1], e[0][0])
    ):
        raised = sum(n in alarms for n, p in enumerate(told) if (p.group, p.contradicts) == (group, label))
        print(
            f"  {'contradict' if label else 'do not':<10}  {group:<34} {raised:>3} of {count:>3} raise an alarm"
        )
    count, right, others = told_together(told)
    if wrong:
        for number, pair in enumerate(told):
            if (number in alarms) != pair.contradicts:
                how = "missed" if pair.contradicts else "false alarm"
                print(f"{how}: {pair.group}: {pair.older} | {pair.newer}")
        print("\n".join(f"false alarm in one scope: {each}" for each in others))
    right_ones, wrong_ones, planted = notebook()
    if wrong:
        print(
            f"false alarms in the notebook: {wrong_ones}; missed: {set(DISAGREE) - {f'{b} {a}' for a, b in right_ones}}"
        )
    days = [n for n, pair in enumerate(told) if "Day 30" in pair.group]
    true = sum(pair.contradicts for pair in told)
    precision = sum(told[number].contradicts for number in alarms) / len(alarms)
    print(
        f"\nall in one scope: {count} candidates, {right} of them labelled pairs: precision {right / count:.3f}"
    )
    alike = len(right_ones) / max(1, len(right_ones) + len(wrong_ones))
    print(
        f"an agent's notebook of {len(NOTEBOOK)} facts, written when the rules were done: {len(right_ones)} of {planted} contradictions found, "
        f"{len(wrong_ones)} false alarms: precision {alike:.3f}"
    )
    print(
        f"Day 1 and Day 30 of the documents: {sum(n in alarms for n in days)} of {len(days)} ways of telling found"
    )
    met = precision >= PRECISION and right >= PRECISION * count and set(days) <= alarms
    print(
        f"{len(told)} pairs, {true} true: precision {precision:.3f}, at least {PRECISION} wanted: {'met' if met else 'MISSED'}"
    )
    return met


if __name__ == "__main__":
    sys.exit(main())
