"""Commands of what an agent is told: its files, its scratchpads, and all of it put together."""

from pathlib import Path
from typing import Annotated

import typer

from graphstore.cli_common import (
    Author,
    Json,
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
from graphstore.cli_memory import Embed, embedder

User = Annotated[str, typer.Option("--user", metavar="USER", help="Whose it is.")]
Thread = Annotated[
    str | None, typer.Option("--thread", help="In which thread. [the user's, in every thread]")
]


def index_soul(
    store: Store,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where AGENTS.md, SOUL.md, USER.md … are.")
    ],
    user: Annotated[
        str | None, typer.Option("--user", help="Whose agent lives by them. [everybody's]")
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Read the files an agent lives by: what changed is described anew, what is gone is ended."""
    from graphstore.indexers import SoulFileIndexer

    with open_store(store, author=author) as opened:
        done = SoulFileIndexer(opened, user=user).index(folder)
    _as_it_is(str(done), done, as_json)
    if done.problems:
        raise typer.Exit(1)


def working(
    store: Store,
    user: User,
    thread: Thread = None,
    text: Annotated[str | None, typer.Option("--set", metavar="TEXT", help="Hold this from now on.")] = None,
    more: Annotated[str | None, typer.Option("--append", metavar="TEXT", help="Add a line.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Hold nothing any more.")] = False,
    valid: Valid = None,
    tx: Tx = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """What an agent has at hand: the scratchpad of a user and thread, read or written."""
    from graphstore import working as room

    if (text is not None) + (more is not None) + clear > 1:
        raise typer.BadParameter("Give one of --set, --append and --clear.")
    if text is None and more is None and not clear:
        with reading(store, valid, tx) as view:
            found = room.get(view, user, thread)
        _as_it_is("nothing" if found is None else found.text, found, as_json)
        return
    if valid is not None or tx is not None:
        raise typer.BadParameter("--valid and --tx are for reading. The past is not written.")
    with open_store(store, author=author) as opened:
        if clear:
            cleared = room.clear(opened, user, thread)
            answer({"cleared": cleared}, as_json, "cleared" if cleared else "nothing was there")
            return
        write = room.append if text is None else room.set
        node = write(opened, user, thread, (more if text is None else text) or "")
    _as_it_is(node.text, node, as_json)


def context(
    store: Store,
    user: User,
    thread: Thread = None,
    query: Annotated[str, typer.Option("--query", metavar="TEXT", help="What is asked.")] = "",
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="TOKENS", help="At most so long. [all of it]")
    ] = None,
    identity: Annotated[
        list[str] | None, typer.Option("--identity", help="Who the agent is (may be repeated).")
    ] = None,
    skills: Annotated[
        str | None,
        typer.Option(
            "--skills", metavar="OBJECT", help="A JSON object: skills and what they do; @FILE reads one."
        ),
    ] = None,
    recent: Annotated[int | None, typer.Option("--recent", help="So many messages at most. [20]")] = None,
    embed: Embed = None,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """What an agent is told before it answers: seven sections, the first four the same until what they say changes."""
    from graphstore import context as room
    from graphstore.memory import Memory

    options = given(
        identity=identity,
        skills=None if skills is None else json_content(skills),
        recent=recent,
        budget_tokens=budget,
    )
    with open_store(store, read_only=True) as opened:
        memory = Memory(opened, embedder(embed)) if embed else None
        view = view_at(opened, valid, tx)
        found = room.context(view, user, thread, query, memory=memory, **options)
    typer.echo(f"note: {found.note}", err=True)
    if found.left_out:
        missing = ", ".join(f"{one.section} {one.count:,}" for one in found.left_out)
        typer.echo(f"note: left out for want of room: {missing}", err=True)
    _as_it_is(found.text.removesuffix("\n"), found, as_json)


def _as_it_is(text: str | None, value: object, as_json: bool) -> None:
    """The text with no line folded and no bracket taken for a mark: it is given to an agent."""
    if as_json:
        answer(value, as_json)
    else:
        typer.echo(text)
