"""The commands of the timeline: messages written and read a page at a time, and traces drawn."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from tests.cli.test_command_line import answer, refused, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with three messages of one trace, the last of them not authorized."""
    path = tmp_path / "talk.gs"
    run("init", path)
    for number, (sender, text, *more) in enumerate(
        [("ana", "hello"), ("bot", "good day", "--parent-span-id", "s0"), ("ana", "no", "--unauthorized")]
    ):
        run("message", path, "TEXT", text, "--id", f"m{number}", "--sender", sender, "--thread", "a", "--trace-id", "request-1",
            "--span-id", f"s{number}", "--occurred-at", f"2026-01-01T10:00:0{number}Z", *more)  # fmt: skip
    return path


def test_message_records_and_says_so(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "voice.ogg").write_bytes(b"OggS")
    said = run("message", folder, "AUDIO", "--media-path", tmp_path / "voice.ogg", "--id", "m9")
    known = run("message", folder, "AUDIO", "--media-path", tmp_path / "voice.ogg", "--id", "m9")

    assert said.startswith("recorded m9: ") and "voice.ogg" in said
    assert known.startswith("known: m9")
    event = answer("timeline", folder, "--type", "AUDIO")["events"][0]
    assert (hashlib.sha256(b"OggS").hexdigest(), True) == (event["media_hash"], event["authorized"])


def test_message_wants_something_to_say(folder: Path) -> None:
    assert "says nothing" in refused("message", folder, "TEXT")
    assert "other content" in refused("message", folder, "TEXT", "changed", "--id", "m0")


def test_timeline_shows_the_newest_first(folder: Path) -> None:
    lines = run("timeline", folder).splitlines()

    assert ["m2", "m1", "m0"] == [line.split()[-1] for line in lines[2:]]
    assert "not authorized" in lines[2]
    assert "nothing." in run("timeline", folder, "--sender", "nobody")


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (("--sender", "ana"), ["m2", "m0"]),
        (("--sender", "ana", "--authorized"), ["m0"]),
        (("--unauthorized",), ["m2"]),
        (("--trace", "request-1", "--thread", "a", "--limit", "1"), ["m2"]),
        (("--since", "2026-01-01T10:00:01Z", "--until", "2026-01-01T10:00:02Z"), ["m1"]),
        (("--since", "1h"), []),
        (("--since", "1h", "--valid", "2026-01-01T11:00:01Z"), ["m2", "m1"]),
        (("--valid", "2026-01-01T10:00:01Z"), ["m1", "m0"]),
    ],
)
def test_timeline_filters(folder: Path, filters: tuple[str, ...], ids: list[str]) -> None:
    assert ids == [event["id"] for event in answer("timeline", folder, *filters)["events"]]


def test_timeline_goes_on_after_a_page(folder: Path) -> None:
    first = answer("timeline", folder, "--limit", 2)
    run("message", folder, "TEXT", "meanwhile", "--occurred-at", "2026-01-01T10:00:00.5Z")
    second = answer("timeline", folder, "--limit", 2, "--cursor", first["cursor"])

    assert (["m0"], None) == ([event["id"] for event in second["events"]], second["cursor"])
    assert f"--cursor {first['cursor'][:20]}"[:12] in run("timeline", folder, "--limit", 2)
    assert "other filters" in refused("timeline", folder, "--sender", "ana", "--cursor", first["cursor"])
    assert "--valid" in refused(
        "timeline", folder, "--valid", "2026-02-01", "--cursor", first["cursor"], code=2
    )


def test_trace_draws_the_tree(folder: Path) -> None:
    said = run("trace", folder, "request-1")

    assert said.splitlines()[1:4] == ["├─ TEXT ana: hello", "│  └─ TEXT bot: good day", "└─ TEXT ana: no"]
    assert ["s0", "s1", "s2"] == [span["span_id"] for span in answer("trace", folder, "request-1")["spans"]]
    assert "no trace 'unknown'" in refused("trace", folder, "unknown")
    assert "Nearest: 'request-1'" in refused("trace", folder, "request")


@pytest.mark.parametrize(
    ("module", "missing", "words", "extra"),
    [
        ("graphstore.imports.otlp", "opentelemetry.proto.trace.v1.trace_pb2", ("export", "--format", "otlp"), "graphstore[otel]"),
        ("graphstore.interchange.cloud_events", "cloudevents.core.v1.event", ("changes", "--format", "cloudevents"), "graphstore[cloudevents]"),
    ],
)  # fmt: skip
def test_what_needs_an_extra_says_which(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    missing: str,
    words: tuple[str, ...],
    extra: str,
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    command, *options = words
    out = (folder.with_name("out.json"),) if command == "export" else ()

    assert f"pip install '{extra}'" in refused(command, folder, *out, *options)
    assert not folder.with_name("out.json").exists()
