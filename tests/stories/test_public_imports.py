"""What could be imported from the package by name can be, whatever file it is in."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import graphstore

PUBLIC = {
    "analysing": "Analyser Work builtin",
    "consolidation": "Consolidation Group Summarise brief consolidate consolidations fold",
    "context": "Context LeftOut Section context estimate",
    "decay": "DAY Decay weight",
    "embedders": "Embedder NAMES fastembed named openai wordllama",
    "events": "Activity Happening Proposal Recorder TYPES correlate fingerprint history_report patterns window",
    "imports": "Damage RowsReport import_csv import_git import_jsonl import_rows zone_named",
    "indexers": "AutoIndexer FILES SoulFileIndexer SoulIndexed Sync SyncSource Synced sections why_skipped",
    "interchange": "FORMATS export unescaped",
    "lifecycle": "Due Pruned due run",
    "links": "ALIASES Creator Extractor Group KINDS Kind Proposal Proposed Readable Refusal Sentence THEMATIC_MOST UNSAID_STRENGTH Vocabulary Why decided new_kind propose rounded strength_of sweep",
    "mcp": "INSTRUCTIONS PROFILES Profile Server server",
    "memory": "CHUNK Embedder Layer LayerStats Memory MemoryHit MemoryStats Recollection lend recollect",
    "observer": "Compress Message Observed Observer Reflect messages observations queue",
    "recall": "Hit Lens Reached Recalled fuse mentions recall spread",
    "sessions": "Analyser Connected Doubt Following Ingested SessionInfo SessionIngested SessionNode Work builtin connect costs decisions doubts follow ingest lessons lineage listed reanalyze recurring_errors segment_node session_node work_on",
    "timeline": "Page Span Trace messages record_message trace",
    "topics": "Decision Latest Memorized Mention Settled Timeline explicit_override latest_on latest_wins memorize settle topic versioned_topics",
    "transcripts": "Boundary BoundaryType Entry Header Segment SessionStatistics Transcript Warning boundaries read segments statistics",
    "working": "Expertise ExpertiseTracker append clear get set",
}
"""The modules that callers import, each with the names it gives."""

FIRST = """
from graphstore import {room} as by_name
import graphstore.{room}
assert graphstore.{room} is by_name
from graphstore.{room} import {names}
"""


@pytest.mark.parametrize("room", PUBLIC)
def test_a_room_and_its_names_are_found(room):
    by_path = import_module(f"graphstore.{room}")

    assert by_path is getattr(graphstore, room)
    assert [] == [name for name in PUBLIC[room].split() if not hasattr(by_path, name)]
    assert by_path is sys.modules[by_path.__spec__.name]


def test_no_file_of_a_folder_hides_a_function():
    package = Path(graphstore.__file__).parent
    for path in package.rglob("*.py"):
        if not path.name.startswith("__"):
            try:
                import_module(".".join(path.relative_to(package.parent).with_suffix("").parts))
            except ModuleNotFoundError:
                if path.parent.name != "adapters":  # its framework is not installed here
                    raise

    assert [] == [
        f"{room}.{name}"
        for room, names in PUBLIC.items()
        for name in names.split()
        if isinstance(getattr(import_module(f"graphstore.{room}"), name), ModuleType)
    ]


@pytest.mark.parametrize("room", ["decay", "events", "imports", "mcp", "recall", "sessions", "transcripts"])
def test_a_room_is_found_first_of_all(room):
    """In a process that has imported nothing else."""
    code = FIRST.format(room=room, names=", ".join(PUBLIC[room].split()))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ("", 0) == (done.stderr, done.returncode)


def test_errors_and_the_command_line_are_where_they_were():
    from graphstore.cli import main
    from graphstore.errors import InvalidError

    assert callable(main)
    assert graphstore.InvalidError is InvalidError
