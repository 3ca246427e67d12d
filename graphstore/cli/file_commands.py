"""Commands about whole stores and files: the demo, dumps, checks, what a session file holds, copies that are kept up to date elsewhere."""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphstore.cli import common
from graphstore.cli.pager import echo

if TYPE_CHECKING:
    from graphstore.cli.command_rows import CommandRun
    from graphstore.interchange.bolt import GraphWritten
    from graphstore.interchange.lake import Taken


def demo(asked: "CommandRun") -> Any:
    """Import a repository's history and ask it five questions; or write the store of a made-up team."""
    from graphstore.cli import demo as tours

    repository, folder, team = asked.pop("repository", "folder", "team")
    if team:
        from graphstore.cli import made_up_team

        place = str(made_up_team.make(folder or Path("graphstore-demo")))
        asked.words = f"Wrote two weeks of a made-up team into {place}.\n{tours.look_at(place)}"
        return {"store": place}
    with common.progress_bar("reading the history") as progress:
        tour = tours.run(repository, folder, progress)
    asked.words = lambda: tours.show(tour)
    return tours.as_dict(tour)


# ---- dumps and files for other tools -----------------------------------------------------------


_DUMP = "graphstore"
"""The format of a dump, which `restore` reads."""


def check_export(values: Mapping[str, Any]) -> None:
    """Refuse options that the format does not have."""
    form = values.get("format", _DUMP)
    if form == _DUMP and values.keys() & {"valid", "tx"}:
        raise typer.BadParameter("a dump is the whole history; --valid and --tx are for the other formats.")
    if "storage" in values and form != "delta":
        raise typer.BadParameter("only --format delta writes into an object store; no other takes --storage.")


def export(asked: "CommandRun") -> Any:
    """Write a store in a format."""
    dump, form, storage = asked.pop("dump", "format", "storage")
    place = common.shown(asked.path)
    with common.progress_bar(f"exporting {place}"):
        if form == "pi-brain":
            from graphstore.imports.pi_brain import export_pi_brain

            done = export_pi_brain(asked.view, Path(dump))
            for warning in done.warnings:
                common.say(f"left out: {warning}", err=True)
            asked.words = f"exported {place} to {dump}: {done}."
            return {"exported": dump, **done.model_dump()}
        count, what = _exported(asked, dump, form or _DUMP, common.storage_settings(storage))
    asked.words = f"exported {place} to {dump}, {count} {what}."
    return {"exported": dump, what.replace(" ", "_"): count}


def _exported(asked: "CommandRun", dump: str, form: str, settings: Mapping[str, str]) -> tuple[int, str]:
    """Write a store in a format. Returns how many, of what."""
    if form == _DUMP:
        return asked.store.export(Path(dump)), "lines"
    if form == "gasoline":
        from graphstore.imports.gasoline import export_gasoline

        return export_gasoline(asked.view, Path(dump)), "lines"
    if form == "otlp":
        from graphstore.imports.otlp import export_otlp

        return export_otlp(asked.view, Path(dump)), "spans"
    from graphstore.interchange import formats, lake

    chosen = None if form == "delta" else formats.FORMATS[form]
    if chosen is not None and not chosen.history:
        return formats.export(asked.view, dump, format=form), chosen.counted
    if asked.valid:
        raise typer.BadParameter(
            f"{form} is the whole history up to --tx; it takes no --valid and no --as-of."
        )
    known = asked.view.at.tx
    if chosen is None:
        return lake.export_delta(asked.store, dump, tx=known, options=settings), "rows and closings"
    return formats.export(asked.store, dump, format=form, tx=known), chosen.counted


def restore(asked: "CommandRun") -> Any:
    """Make a new store from a dump."""
    import graphstore

    store = asked.path
    with common.progress_bar(f"restoring {store}"), graphstore.restore(asked.pop("dump"), store) as restored:
        notices = restored.notices
    for notice in notices:
        common.note(notice)
    with common.open_store(store, read_only=True) as opened:
        stats = opened.stats()
    asked.words = f"restored {store}, {stats['transactions']} transactions."
    return stats


def copy(asked: "CommandRun") -> Any:
    """Copy a store into a folder or into PostgreSQL."""
    import graphstore

    with common.progress_bar("copying"):
        done = graphstore.copy(*asked.pop("source", "target"))
    asked.words = f"copied {done.lines} of {done.total} lines, the last with the digest {done.digest}."
    return done._asdict()


# ---- SQL ----------------------------------------------------------------------------------------


def sql(asked: "CommandRun") -> Any:
    """Ask the whole history in SQL."""
    from graphstore.interchange.sql import ask

    text, params, tx, file = asked.pop("text", "param", "tx", "output")
    known = common.view_at(asked.store, None, tx).at.tx
    found = ask(asked.store, common.text_or_input(text), common.parameters(params), tx=known)
    return asked.rows(found, file=file)


def lake_sql(asked: "CommandRun") -> Any:
    """Ask Delta tables in SQL."""
    from graphstore.interchange import lake

    uri, text, params, storage = asked.pop("uri", "text", "param", "storage")
    settings = common.storage_settings(storage)
    return asked.rows(lake.ask(uri, text, common.parameters(params), options=settings))


# ---- whole stores -------------------------------------------------------------------------------


def verify(asked: "CommandRun") -> Any:
    """Check every line, digest and table of a store."""
    import graphstore

    store, place = asked.path, common.shown(asked.path)
    with common.progress_bar(f"verifying {place}"):
        try:
            with common.open_store(store, read_only=True) as opened:
                found = opened.verify()
        except graphstore.DamageError:
            if place != str(store):  # an address: there are no files to be read
                raise
            found = graphstore.verify(store)
    asked.is_refused = not found.ok
    return found


def compact(asked: "CommandRun") -> Any:
    """Give the free pages of a store's file back."""
    import graphstore

    store = asked.path
    with common.progress_bar(f"compacting {store}"):
        done = graphstore.compact(store)
    asked.words = f"{store} has {done.after:,} bytes in its ledger, and had {done.before:,}."
    if not done.whole:
        asked.words += (
            " Another process reads an old snapshot: the file shrinks when the store is written after that."
        )
    return done._asdict()


def rebuild(asked: "CommandRun") -> Any:
    """Make the rows of the ledger from its chain again, and the graph tables with them."""
    place = common.shown(asked.path)
    with (
        common.progress_bar(f"making the rows of {place} anew"),
        common.open_store(asked.path) as opened,
    ):
        opened.rebuild()
        transactions = opened.stats()["transactions"]
    asked.words = f"the rows of {transactions} transactions were made anew."
    return {"transactions": transactions}


# ---- tokens -------------------------------------------------------------------------------------


def token_add(asked: "CommandRun") -> Any:
    """Make a token for the server of a store."""
    from graphstore.errors import InvalidError
    from graphstore.ledger import tokens

    name, scopes, rights, expires, record_reads = asked.pop(
        "name", "scope", "rights", "expires", "record_reads"
    )
    try:
        days = None if expires is None else float(expires.removesuffix("d"))
    except ValueError:
        raise InvalidError(f"{expires!r} is no number of days. Give one, such as 90d.") from None
    token = tokens.add(
        common.folder_with_tokens(asked.path),
        name,
        scopes=tuple(scopes or ()),
        rights=rights or "read",
        days=days,
        record_reads=bool(record_reads),
    )
    asked.words = token
    return {"name": name, "token": token}


def token_list(asked: "CommandRun") -> list[dict[str, Any]]:
    """Return what each token made by name may do and see."""
    from graphstore.ledger import tokens
    from graphstore.values.period import iso

    return [
        {
            "name": one.name,
            "rights": one.rights,
            "scopes": one.scopes,
            "expires": None if one.expires is None else iso(int(one.expires * 1_000_000)),
            "record_reads": one.record_reads,
        }
        for one in tokens.grants(common.folder_with_tokens(asked.path))
    ]


def token_lines(found: list[dict[str, Any]]) -> str | None:
    """Return a line for each token."""
    lines = []
    for one in found:
        until = "" if one["expires"] is None else f"  until {one['expires']}"
        recorded = "  its reads are recorded" if one["record_reads"] else ""
        scopes = ", ".join(one["scopes"]) or "everything"
        lines.append(f"{one['name']}  {one['rights']}  {scopes}{until}{recorded}")
    return "\n".join(lines) or None


def token_revoke(asked: "CommandRun") -> Any:
    """Let a token in no more."""
    from graphstore.ledger import tokens

    name = asked.pop("name")
    tokens.revoke(common.folder_with_tokens(asked.path), name)
    return {"revoked": name}


# ---- session files ------------------------------------------------------------------------------


def session_stats(asked: "CommandRun") -> Any:
    """Read a session file."""
    from graphstore.sessions.transcripts import transcript

    file, parent = asked.pop("file", "parent")
    with common.progress_bar("reading") as progress:
        return transcript.statistics(transcript.read(file, parent=parent, progress=progress))


# ---- copies that are kept up to date elsewhere -------------------------------------------------


def lake_follow(asked: "CommandRun") -> None:
    """Append what is recorded to Delta tables, until interrupted."""
    from graphstore.interchange import lake

    uri, every, storage = asked.pop("uri", "every", "storage")

    def report(done: "Taken") -> None:
        _print_step(asked, done, f"{done.rows:,} rows and {done.closings:,} closings, up to {done.tx}.")

    with common.exits_on_sigterm():
        settings = common.storage_settings(storage)
        lake.follow(asked.store, uri, report, every=every or 1.0, options=settings, failed=common.note)


def _print_step(asked: "CommandRun", done: Any, text: str) -> None:
    """Print what was just done, at once."""
    echo(json.dumps(done._asdict()) if asked.as_json else text)
    sys.stdout.flush()


@contextmanager
def _ended() -> Iterator[Callable[[], bool]]:
    """Give a function that returns True once the command was asked to end (Ctrl-C, SIGTERM). The driver of a database is not interrupted; asked twice, the command ends at once."""
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


def check_project(values: Mapping[str, Any]) -> None:
    """Refuse a coordinate for the whole history."""
    if "history" in values and values.keys() & {"valid", "tx"}:
        raise typer.BadParameter("--history is of all coordinates; it takes no --valid and no --tx.")


def project(asked: "CommandRun") -> None:
    """Keep the graph of a Bolt server as the store has it, until interrupted."""
    from graphstore.interchange import bolt
    from graphstore.store.change_feed import ChangeFeed

    uri, history, database, once, every = asked.pop("uri", "history", "database", "once", "every")
    store, valid, tx = asked.store, asked.valid, asked.tx

    def report(done: "GraphWritten") -> None:
        _print_step(
            asked, done, f"{done.changed:,} written and {done.removed:,} taken away, up to {done.tx}."
        )

    with _ended() as ended, bolt.BoltGraph(uri, database=database) as graph:
        if once:
            report(graph.write_new(ChangeFeed(store)) if history else graph.show(store, valid=valid, tx=tx))
        else:
            bolt.follow(
                store, graph, report,
                history=bool(history), valid=valid, tx=tx, every=every or 1.0, ended=ended, failed=common.note,
            )  # fmt: skip
    raise typer.Exit  # each step was printed
