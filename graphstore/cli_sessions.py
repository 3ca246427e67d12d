"""Commands about sessions of coding agents: what is in their files, and what is known of them."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphstore.cli_common import (
    Author,
    Id,
    Json,
    Store,
    Tx,
    Valid,
    answer,
    function,
    open_store,
    progress_bar,
    reading,
)

if TYPE_CHECKING:
    from graphstore.ingesting import Ingested
    from graphstore.transcripts import SessionStatistics


class Per(StrEnum):
    """What costs are summed by."""

    project = "project"
    model = "model"
    session = "session"
    day = "day"


File = Annotated[
    Path,
    typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A session file of pi or Claude Code."),
]

Place = Annotated[
    Path, typer.Argument(metavar="PATH", exists=True, help="A session file, or a folder with such files.")
]
Project = Annotated[
    str | None, typer.Option("--project", help="Only of this project: its path, or the end of it.")
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Go on: tell what is written from now on, until interrupted.")
]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.05, help="How often to look.")]
Analyzer = Annotated[
    str | None,
    typer.Option("--analyzer", metavar="MODULE:NAME", help="What describes a segment. [the built-in one]"),
]
Computer = Annotated[
    str | None, typer.Option("--computer", help="Where the sessions ran. [this computer's name]")
]


def import_pi(
    store: Store,
    path: Place,
    follow: Follow = False,
    every: Every = 2.0,
    analyzer: Analyzer = None,
    computer: Computer = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Sessions of pi: a node per session and per segment, with how they hang together."""
    _import("pi", store, path, follow, every, analyzer, computer, author, as_json)


def import_claude(
    store: Store,
    path: Place,
    follow: Follow = False,
    every: Every = 2.0,
    analyzer: Analyzer = None,
    computer: Computer = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Sessions of Claude Code, those of sub-agents included."""
    _import("claude", store, path, follow, every, analyzer, computer, author, as_json)


def _import(
    form: str,
    path: Path,
    place: Path,
    follow: bool,
    every: float,
    analyzer: str | None,
    computer: str | None,
    author: str | None,
    as_json: bool,
) -> None:
    from graphstore import sessions

    how: dict[str, Any] = {"analyze": _analyser(analyzer), "computer": computer, "format": form}
    with open_store(path, author=author, create=True) as opened:
        if follow:
            following = sessions.Following(opened, place, **how)
            sessions.follow(following, lambda done: _tell(done, as_json), every=every)
        with progress_bar(f"importing {place}") as progress:
            done = sessions.ingest(opened, place, progress=progress, **how)
        _tell(done, as_json)


def reanalyze(store: Store, analyzer: Analyzer = None, author: Author = None, as_json: Json = False) -> None:
    """Describe anew what an older analyser wrote of sessions, from their files. What people corrected stays."""
    from graphstore import sessions

    with open_store(store, author=author) as opened, progress_bar("analysing") as progress:
        done = sessions.reanalyze(opened, analyze=_analyser(analyzer), progress=progress)
    _tell(done, as_json)


def list_sessions(
    store: Store,
    project: Annotated[str | None, typer.Option("--project", help="Only those of this folder.")] = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """The sessions that are known, the first first."""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        found = sessions.listed(view, project=project)
    if as_json:
        answer(found, as_json)
        return
    from graphstore.tell import table, when

    rows = [
        (
            one.id,
            when(one.started_at),
            one.project,
            one.name,
            one.segments,
            one.entries,
            one.copied or None,
            one.parent,
            "missing" if one.missing else None,
        )
        for one in found
    ]
    table(("id", "began", "project", "name", "segments", "entries", "copied", "forked from", ""), rows)


def connect(
    store: Store,
    window_days: Annotated[
        float, typer.Option("--window-days", help="Hold each against those of so many days before it.")
    ] = 30,
    threshold: Annotated[float, typer.Option("--threshold", help="How alike is alike, from 0 to 1.")] = 0.2,
    most: Annotated[int, typer.Option("--most", help="So many links of a kind from one segment.")] = 50,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Link segments of sessions that have to do with each other: tags, topics, words, lessons, errors, techniques."""
    from graphstore import sessions

    with open_store(store, author=author) as opened:
        done = sessions.connect(opened, window_days=window_days, threshold=threshold, most=most)
    answer(done, as_json, str(done))


def work(
    store: Store,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Its path, or the end of it.")],
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Begun then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Begun before.")] = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What was done on a project. (sessions.work_on)"""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        _say(sessions.work_on(view, project, since, until), as_json)


def decisions(
    store: Store, project: Project = None, valid: Valid = None, tx: Tx = None, as_json: Json = False
) -> None:
    """Which decisions stand."""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        _say(sessions.decisions(view, project), as_json)


def lessons(
    store: Store,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="TAG...", help="Lessons with any of these. [all]")
    ] = None,
    level: Annotated[str | None, typer.Option("--level", help="Such as project, task, user, tool.")] = None,
    project: Project = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """Which lessons apply, the surest first."""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        _say(sessions.lessons(view, tags or (), level=level, project=project), as_json)


def errors(
    store: Store,
    at_least: Annotated[int, typer.Option("--at-least", help="In so many sessions.")] = 2,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """Which errors recur across sessions. (sessions.recurring_errors)"""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        _say(sessions.recurring_errors(view, at_least), as_json)


def lineage(store: Store, id: Id, valid: Valid = None, tx: Tx = None, as_json: Json = False) -> None:
    """What a session was forked from, and what from it. ID: of a session or a segment."""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        _say(sessions.lineage(view, id), as_json)


def costs(
    store: Store,
    by: Annotated[Per, typer.Option("--by", help="What to sum by.")] = Per.project,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What sessions took: money and tokens."""
    from graphstore import sessions

    with reading(store, valid, tx) as view:
        _say(sessions.costs(view, by.value), as_json)


def _say(found: object, as_json: bool) -> None:
    answer(found, as_json, str(found))


def _analyser(name: str | None) -> Any:
    from graphstore import sessions

    return sessions.builtin if name is None else function(name)


def _tell(done: "Ingested", as_json: bool) -> None:
    for damage in done.damaged:
        typer.echo(f"left out: {damage}", err=True)
    for warning in done.warnings:
        typer.echo(f"warning: {warning}", err=True)
    answer(done, as_json, str(done))


def stats(
    file: File,
    parent: Annotated[
        Path | None,
        typer.Option("--parent", exists=True, dir_okay=False, help="The file it was forked from."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a session file holds, and what the session took. What it copied from its parent is counted apart."""
    from graphstore import transcripts

    with progress_bar("reading") as progress:
        found = transcripts.statistics(transcripts.read(file, parent=parent, progress=progress))
    answer(found, as_json, _told(found))


def _told(found: "SessionStatistics") -> str:
    """The statistics, a line for each that there is something to say of."""
    from graphstore.tell import when

    version = f" {found.version}" if found.version is not None else ""
    counted = (
        f"{found.entries:,}, {found.content_entries:,} of content, in {_many(found.segments, 'segment')}"
    )
    lasted = "" if found.duration_minutes is None else f", {found.duration_minutes:,} minutes"
    said = {
        "session": f"{found.session_id} ({found.format}{version})",
        "name": found.name,
        "folder": found.cwd,
        "forked from": found.parent_session,
        "copied": f"{_many(found.copied, 'entry', 'entries')}, not counted below" if found.copied else None,
        "entries": counted,
        "time": f"{when(found.started_at)} → {when(found.ended_at)}{lasted}",
        "boundaries": _counts(found.boundaries),
        "types": _counts(found.types),
        "messages": _counts(found.messages),
        "tools": _counts(found.tools),
        "tool errors": found.tool_errors and str(found.tool_errors),
        "models": _counts(found.models),
        "tokens": _counts({name.replace("_", " "): count for name, count in found.tokens if count}),
        "cost": None if found.cost is None else f"${found.cost:,.4f}",
        "warnings": _counts(found.warnings) or "none",
    }
    return "\n".join(f"{name:<12} {value}" for name, value in said.items() if value)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
