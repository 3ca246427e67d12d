"""Commands that ask the store: each is the read of its name, at a coordinate."""

import sys
from typing import Annotated, Any

import typer

from graphstore.cli_common import (
    Along,
    Best,
    Depth,
    Direction,
    Format,
    Id,
    Json,
    Kinds,
    Store,
    Tx,
    Valid,
    Way,
    answer,
    given,
    open_store,
    parameters,
    reading,
    view_at,
)
from graphstore.cli_memory import Embed, embedder


def show(store: Store, id: Id, valid: Valid = None, tx: Tx = None, as_json: Json = False) -> None:
    """One thing with all that touches it. (inspect)"""
    with reading(store, valid, tx) as view:
        answer(view.inspect(id), as_json)


def links(
    store: Store,
    id: Id,
    kind: Kinds = None,
    direction: Annotated[Direction, typer.Option("--direction", help="Which way.")] = Direction.both,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What a thing is linked to, both ways. (links_from, backlinks_to)"""
    kinds = tuple(kind or ())
    with reading(store, valid, tx) as view:
        found = [] if direction is Direction.back else list(view.links_from(id, kinds=kinds))
        if direction is not Direction.out:
            seen = {one.id for one in found}
            found += [one for one in view.backlinks_to(id, kinds=kinds) if one.id not in seen]
    answer(found, as_json)


def history(
    store: Store,
    id: Id,
    every: Annotated[bool, typer.Option("--all", help="Also what was once believed. (versions)")] = False,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """Every version of a node over all valid time."""
    with reading(store, valid, tx) as view:
        answer(view.versions(id) if every else view.history(id), as_json)


def superseded(store: Store, id: Id, valid: Valid = None, tx: Tx = None, as_json: Json = False) -> None:
    """What took its place, who said so and why. Ask ID-v1 for one version. (what_superseded)"""
    with reading(store, valid, tx) as view:
        answer(view.what_superseded(id), as_json)


def causes(
    store: Store, id: Id, depth: Depth = 5, valid: Valid = None, tx: Tx = None, as_json: Json = False
) -> None:
    """What led to it."""
    with reading(store, valid, tx) as view:
        answer(view.causes(id, depth=depth), as_json)


def effects(
    store: Store, id: Id, depth: Depth = 5, valid: Valid = None, tx: Tx = None, as_json: Json = False
) -> None:
    """What it led to."""
    with reading(store, valid, tx) as view:
        answer(view.effects(id, depth=depth), as_json)


def walk(
    store: Store,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="What to start from.")],
    kind: Kinds = None,
    hops: Annotated[int, typer.Option("--hops", help="How many links to follow.")] = 2,
    direction: Way = Along.both,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What lies around it, nearest first."""
    with reading(store, valid, tx) as view:
        answer(view.walk(ids, tuple(kind or ()), hops, direction.value), as_json)


def path(
    store: Store,
    source: Annotated[str, typer.Argument(metavar="FROM", help="Where the path begins.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Where it ends.")],
    by: Annotated[Best, typer.Option("--by", help="Fewest hops, or earliest arrival.")] = Best.hops,
    kind: Kinds = None,
    direction: Way = Along.out,
    every: Annotated[bool, typer.Option("--all", help="Every path, the fewest hops first. (paths)")] = False,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """How one thing leads to another by links that follow each other in time."""
    kinds = tuple(kind or ())
    with reading(store, valid, tx) as view:
        if every:
            answer(view.paths(source, target, kinds, direction.value), as_json)
        else:
            answer(view.path(source, target, kinds, by.value, direction.value), as_json)


def recall(
    store: Store,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Some words.")],
    most: Annotated[int, typer.Option("-k", help="At most so many.")] = 10,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only things of this kind or type (may be repeated).")
    ] = None,
    hops: Annotated[
        int, typer.Option("--hops", help="How many links to follow from what the text finds.")
    ] = 2,
    layer: Annotated[
        list[str] | None,
        typer.Option("--layer", help="Only what memory has in this layer (may be repeated)."),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Only what memory has of this user, and of nobody.")
    ] = None,
    embed: Embed = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What a text calls to mind: by its words, and by links from what they find; with an embedder what memory holds by meaning too."""
    from graphstore.recall import recall as recalled

    with open_store(store, read_only=True) as opened:
        view = view_at(opened, valid, tx)
        if not (layer or user or embed):
            answer(recalled(view, text, most, kinds=kind or (), hops=hops), as_json)
            return
        if kind:
            raise typer.BadParameter(
                "--layer, --user and --embedder ask memory, which holds chunks alone; they take no --kind."
            )
        from graphstore.memory import Memory

        memory = Memory(opened, embedder(embed))
        at = view.at
        answer(
            memory.recall(text, most, layers=layer, user=user, valid=at.valid, tx=at.tx, hops=hops), as_json
        )


def diff(
    store: Store,
    id: Id,
    old: Annotated[int, typer.Argument(metavar="OLD", help="A version's number.")],
    new: Annotated[int, typer.Argument(metavar="NEW", help="Another's.")],
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What changed between two versions of a node, field by field."""
    with reading(store, valid, tx) as view:
        answer(view.diff(id, old, new), as_json)


def query(
    store: Store,
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="What to ask; - reads standard input.")],
    valid: Valid = None,
    tx: Tx = None,
    tables: Annotated[bool, typer.Option("--tables", help="The whole history, periods as columns.")] = False,
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A parameter (may be repeated).")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print the rows.")] = Format.table,
    as_json: Json = False,
) -> None:
    """Ask in Cypher; the graph it sees is that of the coordinate."""
    if tables and (valid or tx):
        raise typer.BadParameter("--tables is the whole history; it takes no --valid and no --tx.")
    text = sys.stdin.read() if cypher == "-" else cypher
    params = parameters(param or ())
    with open_store(store, read_only=True) as opened:
        found = (
            opened.query_tables(text, **params)
            if tables
            else view_at(opened, valid, tx).query(text, **params)
        )
        columns, rows = found.columns, found.tuples()
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if as_json or form is Format.json:
        answer([dict(zip(columns, row, strict=True)) for row in rows], as_json=True)
        return
    from graphstore import tell

    show = tell.as_csv if form is Format.csv else tell.table
    show(columns, rows)


def changes(
    store: Store,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what came after.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What each transaction did, oldest first."""

    with open_store(store, read_only=True) as opened:
        answer(opened.changes(since=since), as_json)


def events(
    store: Store,
    type: Annotated[str | None, typer.Option("--type", help="Only events of this type.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WINDOW", help="1h, 7d, 2w, a time, or A..B. [7d]")
    ] = None,
    related_to: Annotated[
        str | None, typer.Option("--related-to", metavar="ID", help="Only what is linked with it.")
    ] = None,
    pattern: Annotated[str | None, typer.Option("--pattern", help="Part of the description.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many, the newest.")] = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What happened lately, what it led to, and what keeps coming back. (history_report)"""
    from graphstore.events import history_report

    options = given(type=type, since=since, related_to=related_to, pattern=pattern, limit=limit)
    with reading(store, valid, tx) as view:
        report = history_report(view, **options)
    if as_json:
        answer(report, as_json)
        return
    from graphstore import tell

    tell.report(report)


def review(
    store: Store,
    settled: Annotated[bool, typer.Option("--settled", help="Also what is decided, or over.")] = False,
    limit: Annotated[int, typer.Option("--limit", help="At most so many of each.")] = 100,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What somebody should look at: what contradicts each other, what is shaky, what an analyser was unsure of. (contradictions, shaky)"""
    from graphstore.doubts import doubts

    with reading(store, valid, tx) as view:
        found: dict[str, list[Any]] = {
            "contradictions": view.contradictions(settled=settled, limit=limit),
            "shaky": view.shaky(limit=limit),
            "unsure": doubts(view, limit),
        }
    if as_json:
        answer(found, as_json)
        return
    from graphstore import tell

    tell.review(found)


def shaky(
    store: Store,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 100,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What stands and rests on something that has fallen, and by which links."""
    with reading(store, valid, tx) as view:
        found = view.shaky(limit=limit)
    answer(found, as_json, None if found else "nothing is shaky.")


def snapshots(store: Store, as_json: Json = False) -> None:
    """The coordinates that were given a name, for --as-of."""
    with open_store(store, read_only=True) as opened:
        found = opened.snapshots()
    answer(found, as_json, None if found else "no coordinate has a name.")
