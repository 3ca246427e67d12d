"""The headers of every Python Enhancement Proposal since 2000, held against a straight scan of the table.

How a header is told to the store: an author date is valid time, a commit date transaction time, a commit one transaction.

- A header is a version of its proposal from the author date on; a proposal whose file is gone (`D`) ends there.
- `superseded_by` is a link `successor supersedes proposal` that holds as long as the header says so. The other
  direction, `replaces`, stays in the content: the two agree for few pairs, and one statement needs one place.
- A superseded proposal is still a document. Superseding ends the old header, and the header that says so, written in
  the same transaction, describes the document from there on. So links are written before headers, new proposals before
  links.
- Within a commit the last row of a proposal counts. A commit date not after the one before is raised by a microsecond.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby

import pytest

import graphstore
from graphstore import GraphStore, NotFoundError, View
from tests.conftest import Clock, day, shared_data

pytestmark = pytest.mark.rest

TICK = timedelta(microseconds=1)
YEAR_ENDS = [day(f"{year}-12-31") for year in range(2000, 2027)]


# ---- the straight scan ------------------------------------------------------------------------


@dataclass
class Header:
    """One row of the table: what the proposal's file said from `valid` on, as recorded at `tx`."""

    valid: datetime
    tx: datetime
    content: dict[str, str] | None  # None: the file is gone


@dataclass
class Scan:
    """The table in memory. Every answer walks the rows of a proposal, last recorded first."""

    headers: dict[str, list[Header]] = field(default_factory=dict)

    def said(self, pep: str, valid: datetime, tx: datetime) -> Header | None:
        for header in reversed(self.headers[pep]):
            if header.valid <= valid and header.tx <= tx:
                return header
        return None

    def content(self, pep: str, valid: datetime, tx: datetime) -> dict[str, str] | None:
        header = self.said(pep, valid, tx)
        return header.content if header else None

    def is_known(self, pep: str, tx: datetime) -> bool:
        return self.headers[pep][0].tx <= tx

    def successors(self, pep: str, valid: datetime, tx: datetime) -> set[str]:
        content = self.content(pep, valid, tx)
        return set(content["superseded_by"].split()) if content else set()

    def ever_successors(self, pep: str, tx: datetime) -> set[str]:
        """What took its place at any time, as known at a tx."""
        begins = [header.valid for header in self.headers[pep] if header.tx <= tx]
        return {after for valid in begins for after in self.successors(pep, valid, tx)}

    def became(self, pep: str, valid: datetime, tx: datetime) -> tuple[list[set[str]], set[str], set[str]]:
        """What took its place at any time, level by level; which proposals that are in its place now are gone; what stands at the ends."""
        levels, seen, level = [], {pep}, {pep}
        while level := {after for one in level for after in self.ever_successors(one, tx)} - seen:
            seen |= level
            levels.append(level)
        gone, current, waiting = set(), set(), [pep]
        for one in waiting:
            after, header = self.successors(one, valid, tx), self.said(one, valid, tx)
            waiting += after - set(waiting)
            if header and not header.content:
                gone.add(one)
            elif header and not after:
                current.add(one)
        return levels, gone, current


def scan_of(rows: list[dict[str, str]]) -> Scan:
    scan = Scan()
    last = day("1990-01-01")
    for _, commit in groupby(rows, key=lambda row: row["commit"]):
        found = list(commit)
        last = max(datetime.fromisoformat(found[0]["commit_date"]), last + TICK)
        for row in {row["pep"]: row for row in found}.values():
            header = Header(
                datetime.fromisoformat(row["author_date"]), last, None if row["op"] == "D" else row
            )
            scan.headers.setdefault(row["pep"], []).append(header)
    return scan


# ---- the same through the store ---------------------------------------------------------------


def load(store: GraphStore, rows: list[dict[str, str]]) -> None:
    known: set[str] = set()
    gone: set[str] = set()
    links: dict[str, dict[str, str]] = {}  # proposal -> successor -> link id
    last = day("1990-01-01")
    for _, commit in groupby(rows, key=lambda row: row["commit"]):
        found = list(commit)
        last = max(datetime.fromisoformat(found[0]["commit_date"]), last + TICK)
        said = {row["pep"]: row for row in found}
        with store.transaction(at=last, reason=found[0]["commit"]):
            new = said.keys() - known
            for pep in sorted(new):
                store.add_node("pep", said[pep], id=f"pep-{pep}", valid_from=said[pep]["author_date"])
            known |= new
            for pep, row in said.items():
                tell_successors(store, row, links.setdefault(pep, {}))
            for pep, row in said.items():
                if row["op"] == "D":
                    if pep not in gone:
                        store.end(f"pep-{pep}", at=row["author_date"])
                    gone.add(pep)
                elif pep not in new or row["superseded_by"]:
                    store.revise(f"pep-{pep}", row, valid_from=row["author_date"])
                    gone.discard(pep)


def tell_successors(store: GraphStore, row: dict[str, str], links: dict[str, str]) -> None:
    named = row["superseded_by"].split()
    for successor in [successor for successor in links if successor not in named]:
        store.unlink(links.pop(successor), valid_from=row["author_date"])
    for successor in named:
        if successor not in links:
            link = store.link(
                f"pep-{successor}",
                "supersedes",
                f"pep-{row['pep']}",
                valid_from=row["author_date"],
                reason=row["commit"],
            )
            links[successor] = link.id


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with shared_data("peps/pep_history.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def scan(rows: list[dict[str, str]]) -> Scan:
    return scan_of(rows)


@pytest.fixture(scope="module")
def peps(rows: list[dict[str, str]]) -> Iterator[GraphStore]:
    with graphstore.open(":memory:", clock=Clock("2027-01-01")) as store:
        load(store, rows)
        yield store


# ---- store and scan ---------------------------------------------------------------------------


def check(view: View, scan: Scan, valid: datetime, tx: datetime) -> int:
    """Hold every proposal at one coordinate against the scan; says how many stood."""
    stood = 0
    unknown = [pep for pep in scan.headers if not scan.is_known(pep, tx)]
    for pep in unknown[:1] + unknown[-1:]:
        for read in (view.node, view.what_superseded):
            with pytest.raises(NotFoundError):
                read(f"pep-{pep}")
    standing = {f"pep-{pep}" for pep in scan.headers if scan.content(pep, valid, tx)}
    assert standing == {node.id for node in view.nodes()}
    for pep in scan.headers.keys() - set(unknown):
        id = f"pep-{pep}"
        content = scan.content(pep, valid, tx)
        if content is None:
            with pytest.raises(NotFoundError):
                view.node(id)
        else:
            assert content == view.node(id).content, (pep, valid, tx)
            stood += 1
        check_succession(view, scan, pep, valid, tx)
    return stood


def check_succession(view: View, scan: Scan, pep: str, valid: datetime, tx: datetime) -> None:
    levels, gone, current = scan.became(pep, valid, tx)
    found = view.what_superseded(f"pep-{pep}")
    named = [step.node.id.removeprefix("pep-") for step in found.chain if step.how == "superseded"]
    in_levels = []
    for level in levels:
        in_levels.append(set(named[: len(level)]))
        named = named[len(level) :]

    assert (levels, []) == (in_levels, named), (pep, valid, tx)
    others = [step.how for step in found.chain if step.how != "superseded"]
    assert ["ended"] * len(gone) == others or (["revised"] == others and not levels)
    assert current == {node.id.removeprefix("pep-") for node in found.current}, (pep, valid, tx)


def test_table_is_the_known_one(rows, scan):
    assert 3004 == len(rows)
    assert 742 == len(scan.headers)


@pytest.mark.parametrize("year_end", YEAR_ENDS, ids=lambda at: str(at.year))
def test_knowledge_at_a_year_end_is_what_the_scan_says(peps, scan, year_end):
    assert check(peps.knowledge_at(year_end), scan, year_end, year_end) > 20


@pytest.mark.parametrize("year_end", YEAR_ENDS, ids=lambda at: str(at.year))
def test_a_year_end_seen_from_elsewhere_is_what_the_scan_says(peps, scan, year_end):
    for valid, tx in (
        (year_end, YEAR_ENDS[-1]),  # the past, as known today
        (YEAR_ENDS[-1], year_end),  # today, as expected then
        (year_end - timedelta(days=365), year_end),
    ):
        check(peps.as_of(valid=valid, tx=tx), scan, valid, tx)


def test_a_header_committed_long_after_it_was_written_is_believed_from_the_commit(peps, rows, scan):
    late = 0
    for pep, headers in scan.headers.items():
        for header in headers:
            if header.tx - header.valid > timedelta(hours=1):
                between = header.valid + (header.tx - header.valid) / 2
                for tx in (header.tx - TICK, header.tx):
                    if not scan.is_known(pep, tx):
                        continue
                    expected = scan.content(pep, between, tx)
                    view = peps.as_of(valid=between, tx=tx)
                    if expected is None:
                        with pytest.raises(NotFoundError):
                            view.node(f"pep-{pep}")
                    else:
                        assert expected == view.node(f"pep-{pep}").content
                late += 1
    assert late > 3


def test_distutils_metadata_was_superseded_three_times_over(peps):
    found = peps.knowledge_at("2026-12-31").what_superseded("pep-241")

    assert ["pep-314", "pep-345", "pep-566"] == [step.node.id for step in found.chain]
    assert ["pep-566"] == [node.id for node in found.current]
    assert {"bf3465d3e315"} == {step.why for step in found.chain}


def test_a_successor_withdrawn_from_the_header_is_no_successor_after_it_but_was_before(peps):
    assert ["pep-649"] == superseded_by(peps, "pep-563", "2024-12-31")
    assert ["pep-649", "pep-749"] == sorted(superseded_by(peps, "pep-563", "2025-12-31"))
    assert ["pep-101"] == superseded_by(peps, "pep-102", "2016-12-31")
    assert [] == superseded_by(peps, "pep-102", "2018-12-31")
    assert "superseded by pep-101 since 2011-03-04 04:58:22Z until 2017-11-11 18:30:43Z" in str(
        peps.knowledge_at("2018-12-31").what_superseded("pep-102")
    )
    assert ["pep-101"] == superseded_by(peps, "pep-102", "2022-12-31")


def superseded_by(store: GraphStore, id: str, at: str) -> list[str]:
    """What is in its place by links that hold then."""
    view = store.knowledge_at(at)
    steps = view.what_superseded(id).chain
    return [step.node.id for step in steps if step.link and step.node and step.link.valid_to is None]
