"""Commands about whole stores and files: the demo, history from elsewhere, dumps, checks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphstore.cli_common import (
    Author,
    DumpFormat,
    Json,
    Mapping,
    Session,
    Store,
    Timezone,
    Tx,
    Valid,
    answer,
    given,
    open_store,
    place_of,
    progress_bar,
    view_at,
)

if TYPE_CHECKING:
    from graphstore.store import GraphStore


def demo(
    repository: Annotated[
        Path | None,
        typer.Argument(metavar="REPOSITORY", help="A git repository. [the one here]", exists=True),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", help="Keep the store below this folder. [a temporary one]", file_okay=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import a repository's history and ask it the five questions."""
    from graphstore import demo as tours

    with progress_bar("reading the history") as progress:
        tour = tours.run(repository, folder, progress)
    if as_json:
        answer(tours.as_dict(tour), as_json)
    else:
        tours.tell(tour)


def import_git(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The repository.")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """A repository's history: a node per file, a version per change, an event per commit."""
    _import("import_git", store, author, as_json, path)


def import_jsonl(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="One JSON object a line.")],
    mapping: Mapping,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Records, one JSON object a line."""
    _import("import_jsonl", store, author, as_json, path, mapping)


def import_csv(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A table with a header.")],
    mapping: Mapping,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Records, one row each."""
    _import("import_csv", store, author, as_json, path, mapping)


def import_gasoline(
    store: Store,
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="An events.jsonl, or a folder with .gasoline.")
    ],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """The event log of Gasoline, with its links and its retention."""
    _import("import_gasoline", store, author, as_json, path, module="graphstore.gasoline")


def import_otlp(
    store: Store,
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="OTLP/JSON, or protobuf bytes.", exists=True, dir_okay=False),
    ],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Traces of OpenTelemetry: an event for each span."""
    _import("import_otlp", store, author, as_json, path, module="graphstore.otlp")


def import_messages(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Messages: a JSON list, or an object a line.")],
    session: Session = None,
    timezone: Timezone = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Messages of chats, with the dates, tags and supersessions written in them."""
    options = given(session=session, timezone=timezone)
    _import("import_messages", store, author, as_json, path, module="graphstore.memobrain", **options)


def import_memobrain(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A graph that MemoBrain saved as JSON.")],
    timezone: Timezone = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """The thoughts of a MemoBrain graph, what they supersede, and its edges."""
    _import(
        "import_memobrain",
        store,
        author,
        as_json,
        path,
        module="graphstore.memobrain",
        **given(timezone=timezone),
    )


def import_pi_brain(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="One with YYYY/MM/…-v1.json files.")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """What is known of agent sessions, as JSON files: every version of each node, and the edges."""
    _import("import_pi_brain", store, author, as_json, path, module="graphstore.pi_brain")


def _import(
    name: str,
    path: Path,
    author: str | None,
    as_json: bool,
    *sources: Path,
    module: str = "graphstore.imports",
    **options: Any,
) -> None:
    from importlib import import_module

    importers = import_module(module)
    with (
        open_store(path, author=author, create=True) as opened,
        progress_bar(f"importing {sources[0]}") as progress,
    ):
        done = getattr(importers, name)(opened, *sources, progress=progress, **options)
    for damage in getattr(done, "damaged", ()):
        typer.echo(f"left out: {damage}", err=True)
    for place in getattr(done, "unknown", ()):
        typer.echo(f"unknown field left out: {place}", err=True)
    for warning in getattr(done, "warnings", ()):
        typer.echo(f"warning: {warning}", err=True)
    answer(done, as_json, str(done))


def export(
    store: Store,
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="Where to write it.")],
    form: Annotated[
        DumpFormat,
        typer.Option(
            "--format",
            help="The whole store; its events as a Gasoline log, its traces as OTLP, its sessions as JSON files; the graph of a "
            "view (graphml, gexf, node-link, neo4j-csv, neo4j-cypher); or the whole history up to --tx (parquet, gexf-timeline, prov-json, "
            "prov-xml, prov-n, prov-o).",
        ),
    ] = DumpFormat.graphstore,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """Write the whole store to a dump that `restore` reads; or, with --format, what other tools read."""
    if form is DumpFormat.graphstore and (valid or tx):
        raise typer.BadParameter("a dump is the whole history; --valid and --tx are for the other formats.")
    with open_store(store, read_only=True) as opened, progress_bar(f"exporting {place_of(store)}"):
        if form is DumpFormat.pi_brain:
            from graphstore.pi_brain import export_pi_brain

            done = export_pi_brain(view_at(opened, valid, tx), dump)
            for warning in done.warnings:
                typer.echo(f"left out: {warning}", err=True)
            answer(
                {"exported": str(dump), **done.model_dump()},
                as_json,
                f"exported {place_of(store)} to {dump}: {done}.",
            )
            return
        lines, what = _exported(opened, dump, form, valid, tx)
    answer(
        {"exported": str(dump), what.replace(" ", "_"): lines},
        as_json,
        f"exported {place_of(store)} to {dump}, {lines} {what}.",
    )


def _exported(
    opened: "GraphStore", dump: Path, form: DumpFormat, valid: str | None, tx: str | None
) -> tuple[int, str]:
    """Write a store in a format: how many, of what."""
    if form is DumpFormat.graphstore:
        return opened.export(dump), "lines"
    if form is DumpFormat.gasoline:
        from graphstore.gasoline import export_gasoline

        return export_gasoline(view_at(opened, valid, tx), dump), "lines"
    if form is DumpFormat.otlp:
        from graphstore.otlp import export_otlp

        return export_otlp(view_at(opened, valid, tx), dump), "spans"
    from graphstore import interchange

    chosen = interchange.FORMATS[form]
    if not chosen.history:
        view = view_at(opened, valid, tx)
        return interchange.export(view, dump, format=form.value), chosen.counted
    if valid:
        raise typer.BadParameter(
            f"{form.value} is the whole history up to --tx; it takes no --valid and no --as-of."
        )
    known = view_at(opened, None, tx).at.tx
    return interchange.export(opened, dump, format=form.value, tx=known), chosen.counted


def restore(
    store: Store,
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="What `export` wrote.", exists=True)],
    as_json: Json = False,
) -> None:
    """Make a new store from a dump."""
    import graphstore

    with progress_bar(f"restoring {store}"):
        graphstore.restore(dump, store).close()
    with open_store(store, read_only=True) as opened:
        stats = opened.stats()
    answer(stats, as_json, f"restored {store}, {stats['transactions']} transactions.")


def verify(store: Store, as_json: Json = False) -> None:
    """Check every line, digest and table of a store. Exit code 1 when something is wrong."""
    import graphstore

    with progress_bar(f"verifying {place_of(store)}"):
        try:
            with open_store(store, read_only=True) as opened:
                found = opened.verify()
        except graphstore.DamageError:
            found = graphstore.verify(store)
    answer(found, as_json)
    if not found.ok:
        raise typer.Exit(1)


def stats(store: Store, as_json: Json = False) -> None:
    """How much a store holds."""
    with open_store(store, read_only=True) as opened:
        answer(opened.stats(), as_json)


def retention(
    store: Store,
    days: Annotated[int | None, typer.Option("--days", help="Keep events for so many days.")] = None,
    bytes: Annotated[int | None, typer.Option("--bytes", help="Keep the journal below this size.")] = None,
    forget_none: Annotated[bool, typer.Option("--forget-none", help="Keep everything for ever.")] = False,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """How long events are kept: shown, or set anew. What is older goes at the next opening for writing."""
    given_now = given(days=days, bytes=bytes)
    if forget_none and given_now:
        raise typer.BadParameter("--forget-none lifts every limit; it takes no --days and no --bytes.")
    from graphstore.windows import plural

    with open_store(store, author=author, read_only=not (given_now or forget_none)) as opened:
        if given_now:
            opened.set_retention(**{**opened.retention, **given_now})
        elif forget_none:
            opened.set_retention()
        kept = opened.retention
    limits = [] if kept["days"] is None else [f"for {plural(kept['days'], 'day')}"]
    if kept["bytes"] is not None:
        limits.append(f"while the journal is within {kept['bytes']:,} bytes")
    answer(kept, as_json, f"events are kept {' and '.join(limits)}." if limits else "everything is kept.")


def trust(
    store: Store,
    ranks: Annotated[
        list[str] | None, typer.Argument(metavar="CLASS=RANK...", help="Rank these source classes anew.")
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """How far each class of sources is trusted: shown, or set anew. Who ranks lower may not replace what a higher one said in a slot."""
    wanted = {}
    for pair in ranks or ():
        name, equals, rank = pair.partition("=")
        if not equals or not rank.lstrip("-").isdigit():
            raise typer.BadParameter(f"{pair!r} is no rank. Give CLASS=NUMBER, such as user=3.")
        wanted[name] = int(rank)
    with open_store(store, author=author, read_only=not wanted) as opened:
        if wanted:
            opened.set_trust({**opened.trust, **wanted})
        kept = opened.trust
    answer(kept, as_json, None if kept else "every source is trusted alike.")
