"""Commands about the timeline: messages written and read, and the tree of a trace."""

from pathlib import Path
from typing import Annotated

import typer

from graphstore.cli_common import (
    Author,
    Json,
    Metadata,
    Store,
    Tx,
    Valid,
    answer,
    given,
    json_content,
    open_store,
    reading,
    view_at,
)

Sender = Annotated[str | None, typer.Option("--sender", help="Who it is from.")]
Thread = Annotated[str | None, typer.Option("--thread", help="The conversation it belongs to.")]
Classification = Annotated[str | None, typer.Option("--classification", help="How it was classified.")]


def message(
    store: Store,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="TEXT, AUDIO, IMAGE, SYSTEM, or another.")],
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What it says; may be empty beside a medium.")
    ] = "",
    id: Annotated[str | None, typer.Option("--id", help="Its id. [a new one]")] = None,
    occurred_at: Annotated[
        str | None, typer.Option("--occurred-at", metavar="TIME", help="When. [now]")
    ] = None,
    sender: Sender = None,
    sender_name: Annotated[
        str | None, typer.Option("--sender-name", help="What the sender is called.")
    ] = None,
    thread: Thread = None,
    trace_id: Annotated[str | None, typer.Option("--trace-id", help="The trace it is part of.")] = None,
    span_id: Annotated[str | None, typer.Option("--span-id", help="The span it is told of.")] = None,
    parent_span_id: Annotated[
        str | None, typer.Option("--parent-span-id", help="The span around it.")
    ] = None,
    classification: Classification = None,
    unauthorized: Annotated[bool, typer.Option("--unauthorized", help="It was not authorized.")] = False,
    media_path: Annotated[
        Path | None, typer.Option("--media-path", metavar="FILE", help="The medium; hashed if it is there.")
    ] = None,
    media_hash: Annotated[str | None, typer.Option("--media-hash", help="The medium's SHA-256.")] = None,
    related_to: Annotated[
        list[str] | None,
        typer.Option("--related-to", metavar="ID", help="What it is about (may be repeated)."),
    ] = None,
    metadata: Metadata = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Record a message on the timeline. (record_message)"""
    from graphstore.timeline import record_message

    options = given(
        id=id, occurred_at=occurred_at, sender=sender, sender_name=sender_name, thread=thread, trace_id=trace_id, span_id=span_id,
        parent_span_id=parent_span_id, classification=classification, media_path=media_path, media_hash=media_hash,
        related_to=related_to, metadata=None if metadata is None else json_content(metadata),
    )  # fmt: skip
    with open_store(store, author=author) as opened:
        recorded = record_message(opened, type, text, authorized=not unauthorized, **options)
    for warning in recorded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    words = recorded.event.description or recorded.event.media_path
    answer(recorded, as_json, f"{'recorded' if recorded.is_new else 'known:'} {recorded.event.id}: {words}")


def timeline(
    store: Store,
    sender: Sender = None,
    trace: Annotated[str | None, typer.Option("--trace", metavar="ID", help="Only of this trace.")] = None,
    thread: Thread = None,
    type: Annotated[str | None, typer.Option("--type", help="Only messages of this type.")] = None,
    classification: Classification = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="From a time on, or 2h, 7d, 4w ago.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before then.")] = None,
    authorized: Annotated[
        bool | None, typer.Option("--authorized/--unauthorized", help="Only those that were, or were not.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many, the newest.")] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Go on after the page that ended with it.")
    ] = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """Messages, newest first, a page at a time. (messages)"""
    from graphstore.timeline import messages

    if cursor is not None and (valid or tx):
        raise typer.BadParameter("a --cursor knows its coordinate; it takes no --valid and no --tx.")
    options = given(
        sender=sender, trace=trace, thread=thread, type=type, classification=classification, until=until,
        authorized=authorized, limit=limit, cursor=cursor,
    )  # fmt: skip
    with open_store(store, read_only=True) as opened:
        view = view_at(opened, valid, tx) if valid or tx else opened
        if since is not None:
            options["since"] = _begin(since, view.at.valid)
        page = messages(view, **options)
    if as_json:
        answer({"events": page.events, "cursor": page.cursor}, as_json)
        return
    from graphstore import tell

    tell.timeline(page.events)
    if page.cursor is not None:
        typer.echo(f"more: --cursor {page.cursor}")


def _begin(since: str, now: object) -> object:
    """The beginning of an age such as 2h; a time as it is."""
    import re

    if not re.fullmatch(r"[0-9]{1,9}[mhdw]", since):
        return since
    from graphstore.period import instant, moment
    from graphstore.windows import window

    return moment(window(since, instant(now))[0])  # type: ignore[arg-type]


def trace(
    store: Store,
    id: Annotated[
        str, typer.Argument(metavar="ID", help="A trace's id, or a unique beginning of 6 characters or more.")
    ],
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """The spans of a trace as a tree, with how long each took and what is odd about it."""
    from graphstore.timeline import trace as traced

    with reading(store, valid, tx) as view:
        answer(traced(view, id), as_json)
