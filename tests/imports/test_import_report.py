"""Every import reports in one way: its own counts, what was damaged, what is worth a warning."""

from __future__ import annotations

import pytest

from graphstore.imports.gasoline import GasolineReport
from graphstore.imports.git import GitReport
from graphstore.imports.memobrain import MemoBrainReport
from graphstore.imports.otlp import OtlpReport
from graphstore.imports.pi_brain import PiBrainReport
from graphstore.imports.records import RowsReport
from graphstore.store.import_report import Damage, ImportReport, ImportTotals, ReasonLeftOut

DAMAGED = (Damage(file="log", line=3, reason="no JSON"),)
REPORTS: list[tuple[ImportReport, str]] = [
    (
        GasolineReport(lines=3, events=2, occurrences=0, links=1, known=1, damaged=DAMAGED),
        "3 lines: 2 new events, 1 new links; 1 known already; 1 damaged",
    ),
    (
        GitReport(repository="project", commits=2, renames_unlinked=1),
        "project: 2 commits, 0 files, 0 versions; 1 renames unlinked",
    ),
    (
        MemoBrainReport(records=1, added=1, revised=0, unchanged=0, links=2),
        "1 record: 1 added, 0 revised, 0 unchanged, 2 links",
    ),
    (
        OtlpReport(spans=2, known=0, traces=1, unknown=("a", "b")),
        "2 new spans of 1 traces; 2 unknown fields left out",
    ),
    (
        PiBrainReport(files=1, nodes=0, versions=0, links=0, known=1),
        "1 files: 0 new nodes, 0 new versions, 0 new links; 1 known already",
    ),
    (
        RowsReport(rows=2, nodes=1, versions=1, links=0, damaged=DAMAGED),
        "2 rows: 1 nodes, 1 versions, 0 links; 1 damaged",
    ),
]


@pytest.mark.parametrize(("report", "expected"), REPORTS, ids=lambda value: type(value).__name__)
def test_report_prints_its_counts_and_reads_back_from_json(report: ImportReport, expected: str) -> None:
    assert expected == str(report)
    assert report == type(report).model_validate_json(report.model_dump_json())


def test_totals_count_what_was_left_out_by_reason_with_examples() -> None:
    lines = [(3, "no 'id'"), (5, "no 'kind'"), (7, "no JSON"), (8, "no 'id'"), (9, "no 'id'")]
    damaged = tuple(Damage(file="log", line=line, reason=reason) for line, reason in lines)
    report = RowsReport(rows=8, nodes=1, versions=2, links=1, damaged=damaged)

    left_out = {
        "no …": ReasonLeftOut(4, ("log:3: no 'id'", "log:5: no 'kind'", "log:8: no 'id'")),
        "no JSON": ReasonLeftOut(1, ("log:7: no JSON",)),
    }
    assert ImportTotals(8, 3, 0, left_out) == report.totals()
    assert not report.totals().is_refused


def test_import_of_which_nothing_was_taken_is_refused() -> None:
    nothing = GasolineReport(lines=1, events=0, occurrences=0, links=0, known=0, damaged=DAMAGED)

    assert nothing.totals().is_refused
    assert not GasolineReport(**{**nothing.model_dump(), "known": 1}).totals().is_refused
    assert not OtlpReport(spans=0, known=0, traces=0).totals().is_refused
