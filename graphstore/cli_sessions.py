"""Commands about sessions of coding agents: what is in their files, and what is known of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphstore.cli_common import Json, answer, progress_bar

if TYPE_CHECKING:
    from graphstore.transcripts import SessionStatistics

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A session file of pi or Claude Code."),
]


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
