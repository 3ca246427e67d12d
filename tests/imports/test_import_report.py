"""Every import reports in one way: its own counts, what was damaged, what is worth a warning."""

from __future__ import annotations

import pytest

from graphstore.imports.gasoline import GasolineReport
from graphstore.imports.git import GitReport
from graphstore.imports.import_report import Damage, ImportReport
from graphstore.imports.memobrain import MemoBrainReport
from graphstore.imports.otlp import OtlpReport
from graphstore.imports.pi_brain import PiBrainReport
from graphstore.imports.records import RowsReport

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
