"""The command line: a command per method of the store, under the same names.

Only typer is imported here; the store, rich and the engine come in when a command runs, so that `--help` answers at
once. For the same reason annotations are plain objects: as text (`from __future__`) typer takes 20 ms more over them.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from graphstore.models import Node
    from graphstore.store import GraphStore
    from graphstore.view import View


class Door(TyperGroup):
    """Turns what the store refuses into one line on stderr and exit code 1."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False  # typer would import pydantic (60 ms) to make sense of a None here
        return option

    def invoke(self, ctx: Any) -> Any:
        from graphstore.errors import GraphStoreError

        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (GraphStoreError, OSError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("interrupted; what was committed is kept.", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Door,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What was true, what did we believe, what superseded it, and why.",
    epilog="Times are dates (midnight UTC) or ISO 8601 instants such as 2026-01-30T12:00:00Z. "
    "Exit codes: 0 done, 1 refused or problems found, 2 wrong usage.",
)
imports = typer.Typer(
    cls=Door, help="Bring in history from elsewhere.", no_args_is_help=True, rich_markup_mode=None
)


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    json = "json"
    csv = "csv"


class Direction(StrEnum):
    """Which way links are read."""

    out = "out"
    back = "back"
    both = "both"


Store = Annotated[Path, typer.Argument(metavar="STORE", help="The store's folder, such as memory.gs.")]
Id = Annotated[
    str, typer.Argument(metavar="ID", help="An id, a unique beginning of one (6 characters or more).")
]
Content = Annotated[
    str, typer.Argument(metavar="CONTENT", help="A JSON object; @FILE reads a file, - standard input.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Valid = Annotated[
    str | None, typer.Option("--valid", metavar="TIME", help="As it was in the world then. [now]")
]
Tx = Annotated[str | None, typer.Option("--tx", metavar="TIME", help="As the store knew it then. [now]")]
From = Annotated[str | None, typer.Option("--valid-from", metavar="TIME", help="It holds from here on.")]
To = Annotated[str | None, typer.Option("--valid-to", metavar="TIME", help="It holds until here.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, in your words.")]
Source = Annotated[str | None, typer.Option("--source", help="Where it is from.")]
Trigger = Annotated[str | None, typer.Option("--trigger", help="What made this version come about.")]
Author = Annotated[
    str | None, typer.Option("--author", envvar="GRAPHSTORE_AUTHOR", help="Who says so. [the user's name]")
]
Mapping = Annotated[
    Path,
    typer.Option("--mapping", metavar="FILE", exists=True, dir_okay=False, help="Which column is what."),
]
Metadata = Annotated[str | None, typer.Option("--metadata", help="A JSON object.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", help="Only links of this kind (may be repeated).")]
Depth = Annotated[int, typer.Option("--depth", help="How many steps to follow.")]


# ---- opening and answering --------------------------------------------------------------------


@contextmanager
def _open(
    path: Path, *, author: str | None = None, read_only: bool = False, create: bool = False
) -> Iterator["GraphStore"]:
    """The store, closed afterwards; what it had to mend on the way is told on standard error."""
    import graphstore

    driver: Any = os.environ.get("GRAPHSTORE_DRIVER", "kuzu")
    who = author or os.environ.get("USER")
    store = graphstore.open(path, read_only=read_only, create=create, author=who, driver=driver)
    try:
        with store:
            yield store
    finally:
        for notice in store.notices:
            typer.echo(f"note: {notice}", err=True)


@contextmanager
def _reading(path: Path, valid: str | None = None, tx: str | None = None) -> Iterator["View"]:
    with _open(path, read_only=True) as store:
        yield _view(store, valid, tx)


def _view(store: "GraphStore", valid: str | None, tx: str | None) -> "View":
    """The view asked for; a tx between the last transaction and the present is answered with what is known: this reads once and ends."""
    from graphstore.period import EPOCH, instant

    latest = store.stats()["last_tx"] or EPOCH
    if tx is not None and instant(latest) < instant(tx, "tx") <= time.time_ns() // 1000:
        tx = None
    return store.as_of(valid=valid, tx=tx)


def _answer(value: object, as_json: bool, said: str | None = None) -> None:
    """`value` as JSON, or in words: those of `said` where the value alone does not tell what was done."""
    from graphstore import tell

    if as_json:
        tell.as_json(value)
    else:
        tell.tell(value if said is None else said)


def _done(word: str, node: "Node", as_json: bool) -> None:
    from graphstore.tell import label, when

    period = f"valid {when(node.valid_from)} → {when(node.valid_to)}"
    _answer(node, as_json, f"{word} {node.ref}, {period}: {label(node)}")


def _stands(node: Any) -> str:
    return "still stands now" if node.standing == "stands" else f"is {node.standing} now"


_OBJECT = 'Give an object, such as \'{"text": "…"}\'.'


def _content(text: str) -> dict[str, Any]:
    import orjson

    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        text = Path(text[1:]).read_text(encoding="utf-8")
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"{text!r} is no JSON ({error}). {_OBJECT}") from None
    if not isinstance(content, dict):
        raise typer.BadParameter(f"{text!r} is no JSON object. {_OBJECT}")
    return content


def _params(pairs: Iterable[str]) -> dict[str, Any]:
    """Cypher parameters from `name=value`; a value is JSON where it parses, text otherwise."""
    import orjson

    params: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is no parameter. Give name=value.", param_hint="--param")
        try:
            params[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            params[name] = value
    return params


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given, so that the others keep the method's own defaults."""
    return {name: value for name, value in options.items() if value not in (None, (), [])}


@contextmanager
def _progress(what: str) -> Iterator[Callable[..., None]]:
    """A function `(done, total)` that moves a bar on standard error; nothing is shown when that is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done=0, total=None, *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done=0, total=None, *_: bar.update(task, completed=done, total=total)


# ---- commands that write ----------------------------------------------------------------------


def _version(asked: bool) -> None:
    if asked:
        from graphstore import __version__

        typer.echo(f"graphstore {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
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

    with _progress("reading the history") as progress:
        tour = tours.run(repository, folder, progress)
    if as_json:
        _answer(tours.as_dict(tour), as_json)
    else:
        tours.tell(tour)


@app.command()
def init(store: Store, as_json: Json = False) -> None:
    """Make an empty store."""
    with _open(store, create=True) as opened:
        stats = opened.stats()
    _answer(stats, as_json, f"{store} is a store, {stats['transactions']} transactions.")


@app.command()
def add(
    store: Store,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What sort of thing: fact, decision, file, …")],
    content: Content,
    id: Annotated[str | None, typer.Option("--id", help="Its id. [a new one]")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The slot it fills, such as deploy_day.")] = None,
    text: Annotated[str | None, typer.Option("--text", help="What to show and search.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag (may be repeated).")] = None,
    valid_from: From = None,
    valid_to: To = None,
    scope: Annotated[str | None, typer.Option("--scope", help="Where it applies. [everywhere]")] = None,
    supersedes: Annotated[
        list[str] | None,
        typer.Option("--supersedes", metavar="ID", help="What it replaces (may be repeated)."),
    ] = None,
    corrects: Annotated[
        list[str] | None, typer.Option("--corrects", metavar="ID", help="What it corrects (may be repeated).")
    ] = None,
    reason: Reason = None,
    source: Source = None,
    trigger: Trigger = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Say something new. (add_node)"""
    options = _given(
        id=id, key=key, text=text, tags=tag, valid_from=valid_from, valid_to=valid_to, scope=scope,
        supersedes=supersedes, corrects=corrects, reason=reason, source=source, trigger=trigger,
    )  # fmt: skip
    body = _content(content)
    with _open(store, author=author) as opened:
        _done("added", opened.add_node(kind, body, **options), as_json)


@app.command()
def revise(
    store: Store,
    id: Id,
    content: Content,
    valid_from: From = None,
    valid_to: To = None,
    reason: Reason = None,
    trigger: Trigger = None,
    source: Source = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Give a better description, over all or part of its valid time."""
    options = _given(valid_from=valid_from, valid_to=valid_to, reason=reason, trigger=trigger, source=source)
    body = _content(content)
    with _open(store, author=author) as opened:
        _done("revised", opened.revise(id, body, **options), as_json)


@app.command()
def supersede(
    store: Store,
    old: Annotated[list[str], typer.Argument(metavar="OLD...", help="What is replaced: one id or several.")],
    by: Annotated[str, typer.Option("--by", metavar="NEW", help="What replaces it.")],
    reason: Reason = None,
    valid_from: From = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """The world moved on: OLD was true until NEW began."""
    with _open(store, author=author) as opened:
        links = opened.supersede(*old, by=by, **_given(reason=reason, valid_from=valid_from))
    _answer(links, as_json)


@app.command()
def end(
    store: Store,
    id: Id,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Until when. [now]")] = None,
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """It was true until then."""
    with _open(store, author=author) as opened:
        opened.end(id, **_given(at=at, reason=reason))
        node = opened.inspect(id).node
    _answer(node, as_json, f"ended {node.id}; it {_stands(node)}.")


@app.command()
def retract(
    store: Store,
    id: Id,
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why it should not have been said.")],
    valid_from: From = None,
    valid_to: To = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """It should not have been said, over all or part of its valid time."""
    with _open(store, author=author) as opened:
        opened.retract(id, reason=reason, **_given(valid_from=valid_from, valid_to=valid_to))
        node = opened.inspect(id).node
    _answer(node, as_json, f"retracted {node.id}; it {_stands(node)}.")


@app.command()
def link(
    store: Store,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The id the sentence begins with.")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="supersedes, caused_by, contradicts, …")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The id it ends with.")],
    reason: Reason = None,
    strength: Annotated[int | None, typer.Option("--strength", help="1 (weak) to 5 (strong).")] = None,
    confidence: Annotated[str | None, typer.Option("--confidence", help="Or: inferred. [explicit]")] = None,
    created_by: Annotated[str | None, typer.Option("--created-by", help="Who makes it. [user]")] = None,
    valid_from: From = None,
    valid_to: To = None,
    metadata: Metadata = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Join two things, read as a sentence: SOURCE KIND TARGET."""
    options = _given(
        reason=reason, strength=strength, confidence=confidence, created_by=created_by, valid_from=valid_from,
        valid_to=valid_to, metadata=None if metadata is None else _content(metadata),
    )  # fmt: skip
    with _open(store, author=author) as opened:
        _answer(opened.link(source, kind, target, **options), as_json)


@app.command()
def unlink(
    store: Store,
    link_id: Annotated[str, typer.Argument(metavar="LINK_ID", help="The link's id, lnk_….")],
    valid_from: From = None,
    valid_to: To = None,
    reason: Reason = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Stop believing a link, over all or part of its valid time."""
    with _open(store, author=author) as opened:
        opened.unlink(link_id, **_given(valid_from=valid_from, valid_to=valid_to, reason=reason))
    _answer({"unlinked": link_id}, as_json, f"unlinked {link_id}.")


@app.command()
def event(
    store: Store,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="What sort of event: commit, error, deploy, …")],
    description: Annotated[str, typer.Argument(metavar="DESCRIPTION", help="What happened.")],
    id: Annotated[str | None, typer.Option("--id", help="Its id. [a new one]")] = None,
    occurred_at: Annotated[
        str | None, typer.Option("--occurred-at", metavar="TIME", help="When. [now]")
    ] = None,
    source: Source = None,
    origin: Annotated[str | None, typer.Option("--origin", help="What sort of source. [agent]")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Which agent.")] = None,
    related_to: Annotated[
        list[str] | None,
        typer.Option("--related-to", metavar="ID", help="What it touches (may be repeated)."),
    ] = None,
    metadata: Metadata = None,
    fingerprint: Annotated[str | None, typer.Option("--fingerprint", help="Same one, same event.")] = None,
    trace_id: Annotated[str | None, typer.Option("--trace-id", help="OpenTelemetry trace.")] = None,
    span_id: Annotated[str | None, typer.Option("--span-id", help="OpenTelemetry span.")] = None,
    parent_span_id: Annotated[
        str | None, typer.Option("--parent-span-id", help="The span around it.")
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Record that something happened. (record_event)"""
    options = _given(
        id=id, occurred_at=occurred_at, source=source, origin=origin, agent=agent, related_to=related_to,
        metadata=None if metadata is None else _content(metadata), fingerprint=fingerprint,
        trace_id=trace_id, span_id=span_id, parent_span_id=parent_span_id,
    )  # fmt: skip
    with _open(store, author=author) as opened:
        recorded = opened.record_event(type, description, **options)
    for warning in recorded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    what = "recorded" if recorded.is_new else f"seen {recorded.event.count} times:"
    _answer(recorded, as_json, f"{what} {recorded.event.id}: {recorded.event.description}")


# ---- commands that read -----------------------------------------------------------------------


@app.command()
def show(store: Store, id: Id, valid: Valid = None, tx: Tx = None, as_json: Json = False) -> None:
    """One thing with all that touches it. (inspect)"""
    with _reading(store, valid, tx) as view:
        _answer(view.inspect(id), as_json)


@app.command()
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
    with _reading(store, valid, tx) as view:
        found = [] if direction is Direction.back else list(view.links_from(id, kinds=kinds))
        if direction is not Direction.out:
            seen = {one.id for one in found}
            found += [one for one in view.backlinks_to(id, kinds=kinds) if one.id not in seen]
    _answer(found, as_json)


@app.command()
def history(
    store: Store,
    id: Id,
    every: Annotated[bool, typer.Option("--all", help="Also what was once believed. (versions)")] = False,
    valid: Valid = None,
    tx: Tx = None,
    as_json: Json = False,
) -> None:
    """Every version of a node over all valid time."""
    with _reading(store, valid, tx) as view:
        _answer(view.versions(id) if every else view.history(id), as_json)


@app.command()
def superseded(store: Store, id: Id, valid: Valid = None, tx: Tx = None, as_json: Json = False) -> None:
    """What took its place, who said so and why. Ask ID-v1 for one version. (what_superseded)"""
    with _reading(store, valid, tx) as view:
        _answer(view.what_superseded(id), as_json)


@app.command()
def causes(
    store: Store, id: Id, depth: Depth = 5, valid: Valid = None, tx: Tx = None, as_json: Json = False
) -> None:
    """What led to it."""
    with _reading(store, valid, tx) as view:
        _answer(view.causes(id, depth=depth), as_json)


@app.command()
def effects(
    store: Store, id: Id, depth: Depth = 5, valid: Valid = None, tx: Tx = None, as_json: Json = False
) -> None:
    """What it led to."""
    with _reading(store, valid, tx) as view:
        _answer(view.effects(id, depth=depth), as_json)


@app.command()
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
    with _reading(store, valid, tx) as view:
        _answer(view.diff(id, old, new), as_json)


@app.command()
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
    params = _params(param or ())
    with _open(store, read_only=True) as opened:
        found = (
            opened.query_tables(text, **params) if tables else _view(opened, valid, tx).query(text, **params)
        )
        columns, rows = found.columns, found.tuples()
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if as_json or form is Format.json:
        _answer([dict(zip(columns, row, strict=True)) for row in rows], as_json=True)
        return
    from graphstore import tell

    show = tell.as_csv if form is Format.csv else tell.table
    show(columns, rows)


@app.command()
def changes(
    store: Store,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what came after.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What each transaction did, oldest first."""

    with _open(store, read_only=True) as opened:
        _answer(opened.changes(since=since), as_json)


# ---- in and out -------------------------------------------------------------------------------


@imports.command("git")
def import_git(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The repository.")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """A repository's history: a node per file, a version per change, an event per commit."""
    _import("import_git", store, author, as_json, path)


@imports.command("jsonl")
def import_jsonl(
    store: Store,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="One JSON object a line.")],
    mapping: Mapping,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Records, one JSON object a line."""
    _import("import_jsonl", store, author, as_json, path, mapping)


@imports.command("csv")
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

    with _open(path, author=author, create=True) as opened, _progress(f"importing {sources[0]}") as progress:
        done = getattr(importers, name)(opened, *sources, progress=progress)
    for damage in getattr(done, "damaged", ()):
        typer.echo(f"left out: {damage}", err=True)
    _answer(done, as_json, str(done))


app.add_typer(imports, name="import")


@app.command()
def export(
    store: Store,
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="Where to write it.")],
    as_json: Json = False,
) -> None:
    """Write the whole store to a dump that `restore` reads."""
    with _open(store, read_only=True) as opened, _progress(f"exporting {store}"):
        lines = opened.export(dump)
    _answer({"exported": str(dump), "lines": lines}, as_json, f"exported {store} to {dump}, {lines} lines.")


@app.command()
def restore(
    store: Store,
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="What `export` wrote.", exists=True)],
    as_json: Json = False,
) -> None:
    """Make a new store from a dump."""
    import graphstore

    with _progress(f"restoring {store}"):
        graphstore.restore(dump, store).close()
    with _open(store, read_only=True) as opened:
        stats = opened.stats()
    _answer(stats, as_json, f"restored {store}, {stats['transactions']} transactions.")


@app.command()
def verify(store: Store, as_json: Json = False) -> None:
    """Check every line, digest and table of a store. Exit code 1 when something is wrong."""
    import graphstore

    with _progress(f"verifying {store}"):
        try:
            with _open(store, read_only=True) as opened:
                found = opened.verify()
        except graphstore.DamageError:
            found = graphstore.verify(store)
    _answer(found, as_json)
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def stats(store: Store, as_json: Json = False) -> None:
    """How much a store holds."""
    with _open(store, read_only=True) as opened:
        _answer(opened.stats(), as_json)


def main() -> None:
    """The `graphstore` command."""
    app(prog_name="graphstore")


if __name__ == "__main__":
    main()
