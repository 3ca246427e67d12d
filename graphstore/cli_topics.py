"""Commands about topics: what messages say is memorized, and a topic asked for."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from graphstore.cli_common import (
    Author,
    Json,
    Session,
    Store,
    Timezone,
    Tx,
    Valid,
    answer,
    given,
    open_store,
    reading,
)

Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="A key, a version of one (auth_v2), a tag, or some words.")
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only nodes of this kind.")]
Scope = Annotated[str | None, typer.Option("--scope", help="Only nodes of this scope.")]


def memorize(
    store: Store,
    messages: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Messages: a JSON list, or an object a line; - standard input."),
    ],
    session: Session = None,
    timezone: Timezone = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Know what messages say, with the dates, tags and supersessions written in them; all of them or none."""
    from graphstore import topics
    from graphstore.memobrain import whole_messages

    raw = sys.stdin.buffer.read() if messages == "-" else Path(messages).read_bytes()
    told = whole_messages(raw, "standard input" if messages == "-" else messages, timezone)
    with open_store(store, author=author) as opened:
        done = topics.memorize(opened, told, session=session)
    for remark in done.remarks:
        typer.echo(f"note: {remark}", err=True)
    lines = [f"memorized {node.id}: {node.text}" for node in done.nodes]
    lines += [f"{link.source} supersedes {link.target}" for link in done.links]
    answer(done, as_json, "\n".join(lines) or "nothing to memorize.")


def topic(
    store: Store,
    name: Topic,
    kind: Kind = None,
    scope: Scope = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """All that was said of a topic over time: past, current and planned."""
    from graphstore import topics

    with reading(store, valid, tx) as view:
        found = topics.topic(view, name, kind=kind, scope=scope)
    answer(found, as_json, str(found))


def latest(
    store: Store,
    name: Topic,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", help="latest_wins, explicit_override or versioned_topics. [latest_wins]"),
    ] = None,
    kind: Kind = None,
    scope: Scope = None,
    limit: Annotated[int | None, typer.Option("--limit", help="At most so many of each list. [20]")] = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What stands on a topic, since when, and what it was before. (latest_on)"""
    from graphstore import topics

    options = given(strategy=strategy, kind=kind, scope=scope, limit=limit)
    with reading(store, valid, tx) as view:
        found = topics.latest_on(view, name, **options)
    answer(found, as_json, str(found))
