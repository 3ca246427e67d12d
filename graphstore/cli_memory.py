"""Commands of memory: remember, count, embed anew, let go. What is remembered is recalled by `recall`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphstore.cli_common import (
    Author,
    From,
    Json,
    Metadata,
    Source,
    Store,
    Tx,
    Valid,
    answer,
    answer_node,
    function,
    given,
    json_content,
    open_store,
    progress_bar,
    view_at,
)

if TYPE_CHECKING:
    from graphstore.embedders import Embedder

WITH = "EMBEDDER"
Embed = Annotated[
    str | None,
    typer.Option(
        "--embedder", metavar=WITH, help="wordllama, fastembed, openai (with a model), or module:function."
    ),
]


def embedder(name: str | None) -> "Embedder | None":
    """The embedder of that name; of a name with another module, its function."""
    if name is None:
        return None
    from graphstore import embedders

    kind, colon, _ = name.partition(":")
    if colon and kind not in embedders.NAMES:
        found: Embedder = function(name)
        return found
    return embedders.named(name)


def remember(
    store: Store,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to keep in memory.")],
    layer: Annotated[
        str,
        typer.Option(
            "--layer", metavar="LAYER", help="soul, conversation, tool, group, er1, observation, or your own."
        ),
    ],
    source: Source = None,
    user: Annotated[str | None, typer.Option("--user", help="Whose it is.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="In which thread.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="The slot it is the value of: the one before ends.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag (may be repeated).")] = None,
    valid_from: From = None,
    metadata: Metadata = None,
    embed: Embed = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Keep a text in memory. The same text from the same source is the same chunk."""
    from graphstore.memory import Memory

    options = given(
        source=source, user=user, thread=thread, key=key, tags=tag, valid_from=valid_from,
        metadata=None if metadata is None else json_content(metadata),
    )  # fmt: skip
    with open_store(store, author=author) as opened:
        node = Memory(opened, embedder(embed)).remember(text, layer=layer, **options)
    answer_node("remembered", node, as_json)


def stats(store: Store, valid: Valid = None, tx: Tx = None, as_json: Json = False) -> None:
    """What memory holds of each layer."""
    from graphstore.memory import Memory

    with open_store(store, read_only=True) as opened:
        found = Memory(opened).stats(view_at(opened, valid, tx))
    if as_json:
        answer(found, as_json)
        return
    from graphstore import tell
    from graphstore.windows import plural

    rows: list[tuple[Any, ...]] = [
        (one.layer or "no layer", one.chunks, one.bytes, one.oldest, one.expiring) for one in found.layers
    ]
    tell.table(("layer", "chunks", "bytes", "oldest", "within a day"), rows)
    tell.tell(f"{plural(found.chunks, 'chunk')}, at most {found.cap:,}.")


def lifecycle(
    store: Store,
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="As if it were then. [now]")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Let go of what memory has kept long enough, or too much of. Meant for once a day."""
    from graphstore.lifecycle import due, run

    with open_store(store, author=author, read_only=dry_run) as opened:
        found = due(opened, now) if dry_run else run(opened, now)
    answer(found, as_json)


def reembed(
    store: Store,
    embed: Annotated[
        str,
        typer.Option(
            "--embedder",
            metavar=WITH,
            help="wordllama, fastembed, openai (with a model), or module:function.",
        ),
    ],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Make the vectors that are missing of an embedder's model, and remove those of others. Goes on where it was interrupted."""
    from graphstore.memory import Memory

    with open_store(store, author=author) as opened, progress_bar("embedding") as progress:
        done = Memory(opened, embedder(embed)).reembed(progress)
    answer({"embedded": done}, as_json, f"embedded {done:,}.")
