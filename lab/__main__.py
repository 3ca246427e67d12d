"""`python -m lab --minutes 10 --seed 1 --only kill fault`: rounds until the time is over; prints what was done, and what was found with its seed.

`python -m lab fuzz journal --minutes 1`: a fuzzer of journal, dump, imports, wire, mcp or cypher. `python -m lab oracle --operations 1000000`: random
programs beside the oracle. `python -m lab worlds --answers 5000000`: how things stand in random worlds, beside the oracle. `python -m lab releases --answers
1000000`: this release beside another one.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from pathlib import Path

from lab import fuzz, releases
from lab.rounds import ROUNDS, room_for


def lab(arguments: list[str]) -> int:
    """Run rounds. Returns 1 when anything was found."""
    said = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    said.add_argument("--minutes", type=float, default=60)
    said.add_argument("--seed", default=None, help="a run's seed, or the whole seed of one round (kill-17-3)")
    said.add_argument("--only", nargs="*", choices=list(ROUNDS), default=list(ROUNDS))
    said.add_argument("--rounds", type=int, default=None, help="at most so many")
    said.add_argument(
        "--keep", type=Path, default=None, help="where the folders are made (default: the temporary folder)"
    )
    told = said.parse_args(arguments)
    seed = told.seed or str(secrets.randbelow(10**9))
    print(f"seed {seed}", flush=True)
    if seed.count("-") == 2:
        seeds = [seed]
    else:
        seeds = [
            f"{told.only[number % len(told.only)]}-{seed}-{number}" for number in range(told.rounds or 10**6)
        ]
    end = time.monotonic() + told.minutes * 60
    counts: Counter[str] = Counter()
    found = 0
    for each in seeds:
        if time.monotonic() > end:
            break
        name, start = each.partition("-")[0], time.monotonic()
        with room_for(name, each, told.keep) as round:
            round.run(ROUNDS[name])
        counts.update(round.counts)
        counts["rounds"] += 1
        print(f"{each}: {_told(round.counts)} · {time.monotonic() - start:.1f} s", flush=True)
        if round.problems:
            found += 1
            print(f"FOUND by --seed {each}, kept in {round.folder}:", flush=True)
            for problem in round.problems[:12]:
                print(f"  {problem}", flush=True)
    print(f"{found} rounds found something. In all: {_told(counts)}. Seed {seed}.")
    return int(found > 0)


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items()))


def main(arguments: list[str]) -> int:
    """Rounds; or what the first word names."""
    if arguments[:1] == ["fuzz"]:
        return fuzz.main(arguments[1:])
    if arguments[:1] == ["oracle"]:
        from lab import oracle  # it needs the tests and hypothesis

        return oracle.main(arguments[1:])
    if arguments[:1] == ["worlds"]:
        from lab import worlds  # it needs the tests

        return worlds.main(arguments[1:])
    if arguments[:1] == ["releases"]:
        return releases.main(arguments[1:])
    return lab(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
