"""The outside checker: holds a store against what the processes noted, with no knowledge of how it works.

Acknowledged: there exactly once. Refused: not there. Unknown: there once or not at all, whole or not at all, and as it was resolved. Erased:
its bytes are in no file. What a follower saw at a transaction is what the store tells of it. It verifies, and a dump gives it back.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import graphstore
from graphstore import GraphStoreError
from lab.notes import lines, state
from lab.writer import BRANCH

BY_REASON = {"add", "pair", "tell", "replace", "take_back", "aside"}


@dataclass
class Request:
    """What one request was, and what its client was told: the outcome that counts, and whether it was resolved."""

    id: str
    facts: dict[str, Any]
    word: str = "unknown"
    told: list[str] = field(default_factory=list)
    unfinished: bool = False  # kept, and an error says that opening the store again finishes it

    def hear(self, line: dict[str, Any]) -> None:
        """Take in a line of the notes."""
        word = line["word"]
        if word == "intent":
            self.word = "unknown"
        else:
            self.told.append(f"{word}: {line.get('why', '')}"[:300])
            self.word = word
            self.unfinished = self.unfinished or bool(line.get("why"))


def requests(notes: Path) -> list[Request]:
    """Every request of every client, with its outcome."""
    found: dict[str, Request] = {}
    for line in lines(notes, "client-*.jsonl"):
        if "request" not in line:
            continue
        request = found.setdefault(line["request"], Request(line["request"], line))
        request.hear(line)
    return list(found.values())


class Check:
    """The store as it is now, against the notes."""

    def __init__(self, path: Path, notes: Path) -> None:
        self.path, self.notes = path, notes
        self.asked = requests(notes)
        self.counts: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []

    def wrong(self, what: str, request: Request | None = None) -> None:
        """Note a problem."""
        tail = f" [{request.id} {request.facts['verb']} {request.told}]" if request else ""
        self.problems.append(what + tail)

    def run(self) -> None:
        """Do every check."""
        for line in lines(self.notes, "*.jsonl"):
            if line["word"] == "wrong":
                self.wrong(f"{line['of'].partition('t')[0]}: {line['why']} {line.get('trace', '')}")
            if line["word"] == "open" and "DamageError" in line["why"]:
                self.wrong(f"{line['of']} could not open: {line['why']}")
        self.bytes_gone("when it was acknowledged")
        with graphstore.open(self.path) as store:
            self.outcomes(store)
            self.erased(store)
            self.verified(store)
            self.followers(store)
            self.dump(store)
            now = state(store), store.stats()["last_tx"]
        with graphstore.open(self.path, read_only=True) as store:
            if now != (state(store), store.stats()["last_tx"]):
                self.wrong("opened again it is not what it was when it was closed")
        self.bytes_gone("after it was opened")

    # ------------------------------------------------------------------ requests

    def outcomes(self, store: Any) -> None:
        """Each request is there as often as its client was told."""
        txs: dict[str, set[Any]] = collections.defaultdict(set)
        for line in (store, store.on(BRANCH)):
            for change in line.changes():
                if change.reason:
                    txs[change.reason].add((change.branch, change.tx))
        self.known = {node.id: node for node in store.nodes()}
        self.events = {event.id: event for event in store.events()}
        self.versions: dict[str, list[Any]] = {}
        self.aside = {node.id for node in store.on(BRANCH).nodes()}
        self.telling = {tally: store.versions(tally) for tally in self._tallies(store)}
        self.gone = {request.facts["gone"] for request in self.asked if "gone" in request.facts}
        self.taken = {r.facts[w] for r in self.asked for w in ("target", "replaced") if w in r.facts}
        for request in self.asked:
            self.counts[request.word] += 1
            if len(request.told) > 1:
                self.counts[
                    "resolved" if any("unknown" in told for told in request.told) else "repeated"
                ] += 1
            if request.facts["verb"] in ("erase", "purge"):
                continue
            times = self.times(store, request, txs)
            want = {"acknowledged": {1}, "refused": {0}, "absent": {0}, "unknown": {0, 1}}[request.word]
            if times not in want:
                self.wrong(f"{request.word}, and there {times} times", request)
            elif times:
                self.whole(store, request)

    def _tallies(self, store: Any) -> Iterator[str]:
        for name in {request.facts["tally"] for request in self.asked if "tally" in request.facts}:
            if name in self.known:
                yield name

    def times(self, store: Any, request: Request, txs: dict[str, set[Any]]) -> int:
        """How often a request was done."""
        verb = request.facts["verb"]
        if verb in BY_REASON:
            return len(txs[request.id])
        if verb == "event":
            event = self.events.get(request.id)
            return 0 if event is None else event.count
        parts = {self.stands(store, id) for id in request.facts["nodes"]}
        if len(parts) > 1:
            self.wrong("half of it is there", request)
        if verb == "secret" and request.facts["nodes"][0] in self.gone:
            return 1 if request.word == "acknowledged" else 0  # judged by `erased`
        return int(True in parts)

    def stands(self, store: Any, id: str) -> bool:
        """Whether a thing is known."""
        try:
            return id in self.known or store.inspect(id).node.id == id
        except graphstore.NotFoundError:
            return False

    def whole(self, store: Any, request: Request) -> None:
        """All of what was asked holds."""
        facts = request.facts
        for id in facts.get("nodes", ()):
            if id not in self.taken | self.gone and (
                id not in self.known
                or (facts["verb"] != "secret" and self.known[id].content["by"] != request.id)
            ):
                self.wrong(f"{id} is not as it was written", request)
        if "link" in facts:
            two, one = facts["link"]
            if [one] != [link.target for link in store.links_from(two, kinds=("uses",))]:
                self.wrong(f"the link {two} uses {one} is not there once", request)
        if "tally" in facts:
            told = [row.content["by"] for row in self.telling.get(facts["tally"], ())]
            if request.id not in told:
                self.wrong("its version is not there", request)
        if facts["verb"] == "aside" and request.id not in self.aside:
            self.wrong("it is not on its branch", request)
        if facts["verb"] == "take_back" and store.inspect(facts["target"]).node.standing != "retracted":
            self.wrong(f"{facts['target']} is not retracted", request)
        if facts["verb"] == "replace" and store.inspect(facts["replaced"]).node.standing != "superseded":
            self.wrong(f"{facts['replaced']} is not superseded", request)

    # ------------------------------------------------------------------ erased

    def erased(self, store: Any) -> None:
        """What was erased reads so; what was refused stands with its content."""
        for request in self.asked:
            if "gone" not in request.facts:
                continue
            id = request.facts["gone"]
            try:
                standing = store.inspect(id).node.standing
            except graphstore.NotFoundError:
                standing = "unknown id"
            gone = standing in ("erased", "evicted", "unknown id")
            if request.word == "acknowledged" and not gone:
                self.wrong(f"{id} was erased, and reads as {standing}", request)
            if request.word in ("refused", "absent") and gone:
                self.wrong(f"{id} was not erased, and reads as {standing}", request)
            if request.word == "unknown" and gone:
                request.word = "acknowledged"

    def bytes_gone(self, when: str) -> None:
        """The bytes of what was erased are in no file of the store."""
        tokens = {
            request.facts["nodes"][0]: request.facts["token"]
            for request in self.asked
            if "token" in request.facts
        }
        gone = {
            tokens[request.facts["gone"]]: request
            for request in self.asked
            if "gone" in request.facts and request.word == "acknowledged"
            if when != "when it was acknowledged" or not request.unfinished
        }
        if not gone:
            return
        for file in self.path.rglob("*"):
            data = file.read_bytes() if file.is_file() else b""
            for token, request in gone.items():
                if token.encode() in data:
                    self.wrong(
                        f"the bytes of {request.facts['gone']} are still in {file.name} ({when})", request
                    )
        self.counts["erased"] = len(gone)

    # ------------------------------------------------------------------ copies

    def verified(self, store: Any) -> None:
        """`verify` finds nothing, and the tables have what the index has."""
        found = store.verify()
        if not found.ok:
            self.wrong(f"verify: {[problem.message for problem in found.problems[:5]]}")
        told = {row["id"] for row in store.query_tables("MATCH (n:Node) RETURN n.id AS id")}
        if missing := self.known.keys() - told:
            self.wrong(f"the tables miss {len(missing)} nodes: {sorted(missing)[:5]}")

    def followers(self, store: Any) -> None:
        """What a follower saw at a tx is what the store tells of that tx."""
        seen = {
            (line["tx"], line["state"], line["of"])
            for line in lines(self.notes, "follower-*.jsonl")
            if line["word"] == "saw"
        }
        known = {str(change.tx) for line in (store, store.on(BRANCH)) for change in line.changes()}
        last = str(store.stats()["last_tx"])
        own: dict[str, str] = {}
        for tx, digest, who in sorted(seen):
            self.counts["looks of followers"] += 1
            if tx not in known or tx > last:
                self.counts["looks at what is gone since"] += 1
            elif digest != own.setdefault(tx, state(store, tx)):
                self.wrong(f"{who} saw another state at {tx}")

    def dump(self, store: Any) -> None:
        """A dump, restored and dumped again, is the same."""
        with tempfile.TemporaryDirectory(prefix="lab-dump-") as folder:
            first, second = Path(folder) / "a.jsonl", Path(folder) / "b.jsonl"
            store.export(first)
            with graphstore.restore(first, Path(folder) / "again.gs") as again:
                again.export(second)
                if state(again) != state(store):
                    self.wrong("what was restored from a dump is another state")
            if first.read_bytes() != second.read_bytes():
                self.wrong("the dump of what was restored from a dump is another")


def main() -> None:
    """Print what was counted and found as JSON."""
    said = argparse.ArgumentParser()
    said.add_argument("path", type=Path)
    said.add_argument("notes", type=Path)
    told = said.parse_args()
    check = Check(told.path, told.notes)
    try:
        check.run()
    except GraphStoreError as error:
        check.wrong(f"the store could not be checked: {type(error).__name__}: {error}")
    except Exception:
        check.wrong(f"the check ended: {traceback.format_exc()[-2000:]}")
    json.dump({"counts": check.counts, "problems": check.problems}, sys.stdout)


if __name__ == "__main__":
    main()
