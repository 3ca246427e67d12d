"""Commands about branches: made, listed, compared, merged, done with. `graphstore --branch NAME COMMAND …` reads and writes on one."""

from typing import Annotated

import typer

from graphstore.cli_common import Author, Json, Reason, Side, Store, answer, open_store

Name = Annotated[str, typer.Argument(metavar="NAME", help="The branch's name.")]


def branch(
    store: Store,
    name: Name,
    tx: Annotated[
        str | None, typer.Option("--tx", metavar="TIME", help="It begins with what was known then. [now]")
    ] = None,
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Begin a line of belief of its own."""
    with open_store(store, author=author) as opened:
        info = opened.branch(name, tx=tx, reason=reason).info
    answer(info, as_json, f"branch {name} begins with what was known at {info.forked_at:%Y-%m-%d %H:%M:%S}Z.")


def branches(store: Store, as_json: Json = False) -> None:
    """The branches there are."""
    with open_store(store, read_only=True) as opened:
        answer(opened.branches(), as_json)


def compare(store: Store, name: Name, as_json: Json = False) -> None:
    """What a branch has that the trunk has not, and the other way round, now."""
    with open_store(store, read_only=True) as opened:
        answer(opened.compare(name), as_json)


def merge(
    store: Store,
    name: Name,
    decide: Annotated[
        list[str] | None,
        typer.Option("--decide", metavar="ID=SIDE", help="Whose word holds of it: trunk or branch."),
    ] = None,
    every: Annotated[Side | None, typer.Option("--all", help="Whose word holds of all the others.")] = None,
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Bring a branch over, all or nothing. Exit code 1 and the conflicts when there are some to decide."""
    sides: dict[str, str] = {}
    for pair in decide or ():
        id, equals, side = pair.rpartition("=")
        if not equals or side not in tuple(Side):
            raise typer.BadParameter(f"{pair!r} is no decision. Give ID=trunk or ID=branch.")
        sides[id] = side
    rest = None if every is None else every.value
    with open_store(store, author=author) as opened:
        done = opened.merge(
            name,
            decide=lambda found: sides.get(found.id, rest if rest in found.choices else None),
            reason=reason,
        )
    answer(done, as_json, str(done))
    if not done.merged:
        raise typer.Exit(1)


def delete_branch(
    store: Store, name: Name, reason: Reason = None, author: Author = None, as_json: Json = False
) -> None:
    """Have done with a branch; what was merged of it stays."""
    with open_store(store, author=author) as opened:
        opened.delete_branch(name, reason=reason)
    answer({"deleted": name}, as_json, f"deleted branch {name}.")
