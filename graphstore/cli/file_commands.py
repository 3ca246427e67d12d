"""Commands about whole stores and files: the demo, dumps, checks, what a session file holds, copies that are kept up to date elsewhere."""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphstore.cli import common
from graphstore.cli.pager import echo

if TYPE_CHECKING:
    from graphstore.interchange.bolt import Shown
    from graphstore.interchange.lake import Taken
    from graphstore.sessions.transcripts.transcript import SessionStatistics
    from graphstore.store.store import Branch, GraphStore


def demo(
    repository: Annotated[
        Path | None,
        typer.Argument(metavar="REPOSITORY", help="A git repository. [the one here]", exists=True),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Keep the store below this folder. [a temporary one]", file_okay=False),
    ] = None,
    team: Annotated[
        bool,
        typer.Option(
            "--team", help="Instead: two weeks of a made-up team, to look at with `graphstore page`."
        ),
    ] = False,
    as_json: common.Json = False,
) -> None:
    """Import a repository's history and ask it the five questions."""
    from graphstore.cli import demo as tours

    if team:
        from graphstore.cli import made_up_team

        place = made_up_team.make(folder or Path("graphstore-demo"))
        if as_json:
            common.answer({"store": str(place)}, True)
        else:
            typer.echo(f"Wrote two weeks of a made-up team into {place}.\n{tours.look_at(str(place))}")
        return
    with common.progress_bar("reading the history") as progress:
        tour = tours.run(repository, folder, progress)
    if as_json:
        common.answer(tours.as_dict(tour), as_json)
    else:
        tours.show(tour)


def export(
    store: common.Store,
    dump: Annotated[
        str,
        typer.Argument(metavar="DUMP", help="Where to write it; with --format delta also s3://bucket/path."),
    ],
    form: Annotated[
        common.DumpFormat,
        typer.Option(
            "--format",
            help="The whole store; its events as a Gasoline log, its traces as OTLP, its sessions as JSON files; the graph of a "
            "view (graphml, gexf, node-link, neo4j-csv, neo4j-cypher); or the whole history up to --tx (parquet, delta, gexf-timeline, prov-json, "
            "prov-xml, prov-n, prov-o).",
        ),
    ] = common.DumpFormat.graphstore,
    valid: common.Valid = None,
    tx: common.Tx = None,
    storage: common.Storage = None,
    as_json: common.Json = False,
) -> None:
    """Write the whole store to a dump that `restore` reads; or, with --format, what other tools read."""
    if form is common.DumpFormat.graphstore and (valid or tx):
        raise typer.BadParameter("a dump is the whole history; --valid and --tx are for the other formats.")
    if storage and form is not common.DumpFormat.delta:
        raise typer.BadParameter("only --format delta writes into an object store; no other takes --storage.")
    settings = common.storage_settings(storage)
    with (
        common.open_store(store, read_only=True) as opened,
        common.progress_bar(f"exporting {common.shown(store)}"),
    ):
        if form is common.DumpFormat.pi_brain:
            from graphstore.imports.pi_brain import export_pi_brain

            done = export_pi_brain(common.view_at(opened, valid, tx), Path(dump))
            for warning in done.warnings:
                common.say(f"left out: {warning}", err=True)
            common.answer(
                {"exported": str(dump), **done.model_dump()},
                as_json,
                f"exported {common.shown(store)} to {dump}: {done}.",
            )
            return
        lines, what = _exported(opened, dump, form, valid, tx, settings)
    common.answer(
        {"exported": str(dump), what.replace(" ", "_"): lines},
        as_json,
        f"exported {common.shown(store)} to {dump}, {lines} {what}.",
    )


def _exported(
    opened: "GraphStore | Branch",
    dump: str,
    form: common.DumpFormat,
    valid: str | None,
    tx: str | None,
    settings: Mapping[str, str],
) -> tuple[int, str]:
    """Write a store in a format: how many, of what."""
    if form is common.DumpFormat.graphstore:
        return opened.export(Path(dump)), "lines"
    if form is common.DumpFormat.gasoline:
        from graphstore.imports.gasoline import export_gasoline

        return export_gasoline(common.view_at(opened, valid, tx), Path(dump)), "lines"
    if form is common.DumpFormat.otlp:
        from graphstore.imports.otlp import export_otlp

        return export_otlp(common.view_at(opened, valid, tx), Path(dump)), "spans"
    from graphstore.interchange import formats, lake

    chosen = None if form is common.DumpFormat.delta else formats.FORMATS[form]
    if chosen is not None and not chosen.history:
        view = common.view_at(opened, valid, tx)
        return formats.export(view, dump, format=form.value), chosen.counted
    if valid:
        raise typer.BadParameter(
            f"{form.value} is the whole history up to --tx; it takes no --valid and no --as-of."
        )
    known = common.view_at(opened, None, tx).at.tx
    if chosen is None:
        return lake.export_delta(opened, dump, tx=known, options=settings), "rows and closings"
    return formats.export(opened, dump, format=form.value, tx=known), chosen.counted


def sql(
    store: common.Store,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT",
            help="What is asked of nodes, versions, events, occurrences, links, operations, and of node_as_of(valid, tx), link_as_of, event_as_of, succession_as_of(id, valid, tx) and node_diff; - reads it from standard input.",
        ),
    ],
    param: common.Param = None,
    tx: common.Tx = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="Write them to a new .parquet, .csv or .jsonl instead."),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """Ask the whole history in the SQL of DuckDB."""
    from graphstore.cli import printing
    from graphstore.graph.result_files import save
    from graphstore.interchange.sql import ask

    given = common.parameters(param or ())
    with common.open_store(store, read_only=True) as opened:
        found = ask(
            opened,
            sys.stdin.read() if text == "-" else text,
            given,
            tx=common.view_at(opened, None, tx).at.tx,
        )
        columns, rows, listed = found.columns, found.tuples(), found.legible()
    if output is not None:
        save(found, output)
        common.answer({"rows": len(found), "file": str(output)}, as_json, f"{len(found):,} rows in {output}")
    elif as_json:
        common.answer(listed, True)
    else:
        printing.result_table(columns, rows)


def restore(
    store: common.Store,
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="What `export` wrote.", exists=True)],
    as_json: common.Json = False,
) -> None:
    """Make a new store from a dump."""
    import graphstore

    with common.progress_bar(f"restoring {store}"), graphstore.restore(dump, store) as restored:
        notices = restored.notices
    for notice in notices:
        common.say(f"note: {notice}", err=True)
    with common.open_store(store, read_only=True) as opened:
        stats = opened.stats()
    common.answer(stats, as_json, f"restored {store}, {stats['transactions']} transactions.")


def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The address of a store of release 0.1 in PostgreSQL.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="A folder: a new one, or one with an earlier copy.")
    ],
    as_json: common.Json = False,
) -> None:
    """Copy every line of a store of release 0.1 from PostgreSQL into a folder, and check it. What is there already is gone on from."""
    import graphstore

    with common.progress_bar("copying"):
        done = graphstore.copy(source, target)
    common.answer(
        done._asdict(),
        as_json,
        f"copied {done.lines} of {done.total} lines, the last with the digest {done.digest}.",
    )


def verify(store: common.Store, as_json: common.Json = False) -> None:
    """Check every line, digest and table of a store. Exit code 1 when something is wrong."""
    import graphstore

    with common.progress_bar(f"verifying {common.shown(store)}"):
        try:
            with common.open_store(store, read_only=True) as opened:
                found = opened.verify()
        except graphstore.DamageError:
            if common.shown(store) != str(store):  # an address: there are no files to be read
                raise
            found = graphstore.verify(store)
    common.answer(found, as_json)
    if not found.ok:
        raise typer.Exit(1)


def compact(store: common.Store, as_json: common.Json = False) -> None:
    """Give the free pages of a store's file back. It needs twice the room of the file for a moment."""
    import graphstore

    with common.progress_bar(f"compacting {store}"):
        done = graphstore.compact(store)
    words = f"{store} has {done.after:,} bytes in its ledger, and had {done.before:,}."
    if not done.whole:
        words += (
            " Another process reads an old snapshot: the file shrinks when the store is written after that."
        )
    common.answer(done._asdict(), as_json, words)


def rebuild(store: common.Store, as_json: common.Json = False) -> None:
    """Make the rows of the ledger anew from its chain, and the graph tables with them. Only copies are made: nothing that was recorded changes."""
    with (
        common.progress_bar(f"making the rows of {common.shown(store)} anew"),
        common.open_store(store) as opened,
    ):
        opened.rebuild()
        transactions = opened.stats()["transactions"]
    common.answer(
        {"transactions": transactions}, as_json, f"the rows of {transactions} transactions were made anew."
    )


def session_stats(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", exists=True, dir_okay=False, help="A session file of pi or Claude Code."
        ),
    ],
    parent: Annotated[
        Path | None,
        typer.Option("--parent", exists=True, dir_okay=False, help="The file it was forked from."),
    ] = None,
    as_json: common.Json = False,
) -> None:
    """What a session file holds, and what the session took. What it copied from its parent is counted apart."""
    from graphstore.sessions.transcripts import transcript

    with common.progress_bar("reading") as progress:
        found = transcript.statistics(transcript.read(file, parent=parent, progress=progress))
    common.answer(found, as_json, _statistics(found))


def _statistics(found: "SessionStatistics") -> str:
    """The statistics, a line for each that is not empty."""
    from graphstore.values.period import when

    version = f" {found.version}" if found.version is not None else ""
    counted = (
        f"{found.entries:,}, {found.content_entries:,} of content, in {_many(found.segments, 'segment')}"
    )
    lasted = "" if found.duration_minutes is None else f", {found.duration_minutes:,} minutes"
    rows = {
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
    return "\n".join(f"{name:<12} {value}" for name, value in rows.items() if value)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


# ---- copies that are kept up to date elsewhere -------------------------------------------------

Address = Annotated[
    str, typer.Argument(metavar="URI", help="Where the tables are: a folder, or s3://bucket/path.")
]
Every = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.01, help="How often to look for what is new.")
]


def lake_follow(
    store: common.Store,
    uri: Address,
    every: Every = 1.0,
    storage: common.Storage = None,
    as_json: common.Json = False,
) -> None:
    """Append what is recorded to Delta tables, until interrupted. Killed and started again it goes on: each row is there once."""
    from graphstore.interchange import lake

    def told(done: "Taken") -> None:
        said = f"{done.rows:,} rows and {done.closings:,} closings, up to {done.tx}."
        echo(json.dumps(done._asdict()) if as_json else said)
        sys.stdout.flush()

    with common.exits_on_sigterm(), common.open_store(store, read_only=True) as opened:
        settings = common.storage_settings(storage)
        lake.follow(opened, uri, told, every=every, options=settings, failed=common.note)


def lake_sql(
    uri: Address,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="What is asked, of the tables and views that `graphstore sql` has."
        ),
    ],
    param: common.Param = None,
    storage: common.Storage = None,
    as_json: common.Json = False,
) -> None:
    """Ask Delta tables of a store in the SQL of DuckDB."""
    from graphstore.cli import printing
    from graphstore.interchange import lake

    found = lake.ask(uri, text, common.parameters(param or ()), options=common.storage_settings(storage))
    if as_json:
        common.answer(found.legible(), True)
    else:
        printing.result_table(found.columns, found.tuples())


@contextmanager
def _ended() -> Iterator[Callable[[], bool]]:
    """Whether the command was asked to end (Ctrl-C, SIGTERM). The driver of a database is not to be interrupted; asked twice the command ends at once."""
    asked: list[int] = []

    def end(number: int, _: object) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def project(
    store: common.Store,
    uri: Annotated[
        str,
        typer.Argument(metavar="URI", help="The Bolt server, such as bolt://host:7687 or neo4j+s://host."),
    ],
    history: Annotated[
        bool, typer.Option("--history", help="The whole history with both periods, and no coordinate.")
    ] = False,
    valid: common.Valid = None,
    tx: common.Tx = None,
    database: Annotated[
        str | None, typer.Option("--database", metavar="NAME", help="Which database of the server.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Write what is new, and end.")] = False,
    every: Every = 1.0,
    as_json: common.Json = False,
) -> None:
    """Keep the graph of a Bolt server, such as Neo4j, as the store has it, until interrupted: at a coordinate, or the whole history.

    NEO4J_USERNAME and NEO4J_PASSWORD of the environment let in. Killed and started again it goes on: each row is there once.
    """
    from graphstore.interchange import bolt
    from graphstore.store.change_feed import ChangeFeed

    if history and (valid or tx):
        raise typer.BadParameter("--history is of all coordinates; it takes no --valid and no --tx.")

    def report(done: "Shown") -> None:
        text = f"{done.changed:,} written and {done.removed:,} taken away, up to {done.tx}."
        echo(json.dumps(done._asdict()) if as_json else text)
        sys.stdout.flush()

    with (
        _ended() as ended,
        common.open_store(store, read_only=True) as opened,
        bolt.BoltGraph(uri, database=database) as graph,
    ):
        if once:
            report(
                graph.write_history(ChangeFeed(opened)) if history else graph.show(opened, valid=valid, tx=tx)
            )
        else:
            bolt.follow(
                opened, graph, report,
                history=history, valid=valid, tx=tx, every=every, ended=ended, failed=common.note,
            )  # fmt: skip
