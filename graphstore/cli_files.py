"""Commands about whole stores and files: the demo, history from elsewhere, dumps, checks."""

from pathlib import Path
from typing import Annotated

import typer

from graphstore.cli_common import (
    Author,
    Json,
    Mapping,
    Store,
    answer,
    open_store,
    progress_bar,
)


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


def _import(name: str, path: Path, author: str | None, as_json: bool, *sources: Path) -> None:
    from graphstore import imports as importers

    with (
        open_store(path, author=author, create=True) as opened,
        progress_bar(f"importing {sources[0]}") as progress,
    ):
        done = getattr(importers, name)(opened, *sources, progress=progress)
    for damage in getattr(done, "damaged", ()):
        typer.echo(f"left out: {damage}", err=True)
    answer(done, as_json, str(done))


def export(
    store: Store,
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="Where to write it.")],
    as_json: Json = False,
) -> None:
    """Write the whole store to a dump that `restore` reads."""
    with open_store(store, read_only=True) as opened, progress_bar(f"exporting {store}"):
        lines = opened.export(dump)
    answer({"exported": str(dump), "lines": lines}, as_json, f"exported {store} to {dump}, {lines} lines.")


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

    with progress_bar(f"verifying {store}"):
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
