"""Commands that keep a copy of a store elsewhere up to date: Delta tables."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from graphstore.cli import common
from graphstore.cli.common import Json, Store, answer
from graphstore.cli.shown import echo

if TYPE_CHECKING:
    from graphstore.interchange.lake import Taken

Address = Annotated[
    str, typer.Argument(metavar="URI", help="Where the tables are: a folder, or s3://bucket/path.")
]
Storage = Annotated[
    list[str] | None,
    typer.Option(
        "--storage",
        metavar="KEY=VALUE",
        help="A setting of the object store, such as AWS_ENDPOINT_URL=…, beside those of the environment (may be repeated).",
    ),
]
Every = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.01, help="How often to look for what is new.")
]


def _settings(pairs: list[str] | None) -> dict[str, str]:
    found = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{pair!r} is no setting. Give KEY=VALUE, such as AWS_REGION=eu-west-1.")
        found[name] = value
    return found


def lake_follow(
    store: Store, uri: Address, every: Every = 1.0, storage: Storage = None, as_json: Json = False
) -> None:
    """Append what is recorded to Delta tables, until interrupted. Killed and started again it goes on: each row is there once."""
    from graphstore.interchange import lake

    def told(done: "Taken") -> None:
        said = f"{done.rows:,} rows and {done.closings:,} closings, up to {done.tx}."
        echo(json.dumps(done._asdict()) if as_json else said)
        sys.stdout.flush()

    with common.exits_on_sigterm(), common.open_here(store) as opened:
        lake.follow(opened, uri, told, every=every, options=_settings(storage))


def lake_sql(
    uri: Address,
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="What is asked, of the tables and views that `graphstore sql` has."
        ),
    ],
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter, $NAME in the text (may be repeated)."),
    ] = None,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Ask Delta tables of a store in SQL, as of DuckDB."""
    from graphstore.cli import printing
    from graphstore.interchange import lake

    found = lake.ask(uri, text, common.parameters(param or ()), options=_settings(storage))
    if as_json:
        answer(found.legible(), True)
    else:
        printing.result_table(found.columns, found.tuples())
