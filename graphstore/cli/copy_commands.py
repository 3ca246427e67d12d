"""Commands that keep a copy of a store elsewhere up to date: Delta tables, the graph of a Bolt server."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from graphstore.cli import common
from graphstore.cli.common import Json, Param, Storage, Store, Tx, Valid, answer
from graphstore.cli.pager import echo

if TYPE_CHECKING:
    from graphstore.interchange.bolt import Shown
    from graphstore.interchange.lake import Taken

Address = Annotated[
    str, typer.Argument(metavar="URI", help="Where the tables are: a folder, or s3://bucket/path.")
]
Every = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.01, help="How often to look for what is new.")
]


def lake_follow(
    store: Store, uri: Address, every: Every = 1.0, storage: Storage = None, as_json: Json = False
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
    param: Param = None,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Ask Delta tables of a store in the SQL of DuckDB."""
    from graphstore.cli import printing
    from graphstore.interchange import lake

    found = lake.ask(uri, text, common.parameters(param or ()), options=common.storage_settings(storage))
    if as_json:
        answer(found.legible(), True)
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
    store: Store,
    uri: Annotated[
        str,
        typer.Argument(metavar="URI", help="The Bolt server, such as bolt://host:7687 or neo4j+s://host."),
    ],
    history: Annotated[
        bool, typer.Option("--history", help="The whole history with both periods, and no coordinate.")
    ] = False,
    valid: Valid = None,
    tx: Tx = None,
    database: Annotated[
        str | None, typer.Option("--database", metavar="NAME", help="Which database of the server.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Write what is new, and end.")] = False,
    every: Every = 1.0,
    as_json: Json = False,
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
            report(graph.take(ChangeFeed(opened)) if history else graph.show(opened, valid=valid, tx=tx))
        else:
            bolt.follow(
                opened, graph, report,
                history=history, valid=valid, tx=tx, every=every, ended=ended, failed=common.note,
            )  # fmt: skip
