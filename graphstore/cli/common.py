"""What the commands share: their arguments and options, a store opened and closed, an answer in words or as JSON.

As in every module of the command line, nothing heavy is imported before a command runs, and annotations are plain objects.
"""

import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphstore.cli.pager import PAGED, echo

if TYPE_CHECKING:
    from graphstore.store.store import Branch, GraphStore
    from graphstore.view.view import View


EXPORT_FORMATS = (
    "graphstore", "gasoline", "otlp", "pi-brain", "parquet", "delta", "graphml", "gexf", "gexf-timeline", "node-link",
    "prov-json", "prov-xml", "prov-n", "prov-o", "neo4j-csv", "neo4j-cypher",
)  # fmt: skip
"""What an export is."""
Store = Annotated[Path, typer.Argument(metavar="STORE", help="The store's folder, such as memory.gs.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Valid = Annotated[
    str | None, typer.Option("--valid", metavar="TIME", help="As it was in the world then. [now]")
]
Tx = Annotated[str | None, typer.Option("--tx", metavar="TIME", help="As the store knew it then. [now]")]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME|NAME", help="Both at once: a time, or a snapshot by its name."),
]
Author = Annotated[
    str | None, typer.Option("--author", envvar="GRAPHSTORE_AUTHOR", help="Who says so. [the user's name]")
]
Embed = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="EMBEDDER",
        help="wordllama, fastembed, openai (with a model), or module:function.",
    ),
]


def use_embedder(store: Any, name: str) -> None:
    """Set a store to an embedder by its name; a function of a module is used as long as the store is open."""
    from graphstore.memory import embedders

    embedders.use(store, name if name.partition(":")[0] in embedders.NAMES else embedder(name))


# ---- opening and answering --------------------------------------------------------------------


# The branch that `graphstore --branch NAME` names for the command, None for the trunk.
CHOSEN: ContextVar[str | None] = ContextVar("branch", default=None)


def choose_branch(words: list[str]) -> list[str]:
    """The words of a command line without the `--no-pager` and `--branch NAME` they may begin with, which are noted."""
    PAGED.set("--no-pager" not in words[:1])
    words = words if PAGED.get() else words[1:]
    name = os.environ.get("GRAPHSTORE_BRANCH")
    if words[:1] == ["--branch"]:
        if len(words) < 2:
            raise typer.BadParameter("--branch wants a name: graphstore --branch NAME COMMAND …")
        name, words = words[1], words[2:]
    elif words and words[0].startswith("--branch="):
        name, words = words[0].partition("=")[2], words[1:]
    CHOSEN.set(name or None)
    return words


_SCHEMES = ("http:/", "https:/", "postgresql:/", "postgres:/")  # of addresses


@contextmanager
def open_store(
    path: Path, *, author: str | None = None, read_only: bool = False, create: bool = False
) -> Iterator["GraphStore | Branch"]:
    """Open the store, or the branch of it that was chosen, and close it afterwards. What opening it repaired is printed on standard error."""
    name = CHOSEN.get()
    store = _opened(path, author or os.environ.get("USER") or os.environ.get("USERNAME"), read_only, create)
    try:
        with store:
            yield store if name is None else store.on(name)
    finally:
        for notice in store.notices:
            note(notice)


def note(text: str) -> None:
    """Print what somebody may have to know, on standard error."""
    say(f"note: {text}", err=True)


def _opened(path: Path, author: str | None, read_only: bool, create: bool) -> "GraphStore":
    """Open the store at a path or an address."""
    import graphstore

    place = place_of(path)
    if place.startswith(("http://", "https://")):
        return graphstore.open(place, read_only=read_only, author=author)
    if place.lower().startswith(_SCHEMES):
        return graphstore.open(place, read_only=read_only, create=create, author=author)
    return graphstore.open(path, read_only=read_only, create=create, author=author, driver=driver())


def driver() -> Any:
    """Return the name of the engine for Cypher."""
    return os.environ.get("GRAPHSTORE_DRIVER", "kuzu")


@contextmanager
def exits_on_sigterm() -> Iterator[None]:
    """A request to end (SIGTERM) ends the block as a command that is done: what was opened in it is closed, and the exit code is 0."""

    def end(*_: object) -> None:
        raise SystemExit(0)

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not the main thread: somebody else hears signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def place_of(store: Path) -> str:
    """Return where a store is, as it was typed: a Path has one slash of an address less."""
    place = str(store)
    if not place.lower().startswith(_SCHEMES):
        return place
    scheme, _, host = place.partition(":")
    return f"{scheme}://{host.lstrip('/')}"


def folder_with_tokens(store: Path) -> Path:
    """Return the folder that has the tokens of a store's server."""
    from graphstore.ledger.locating import locate

    locate(store, read_only=True, create=False, old=True)
    return store


def shown(store: Path) -> str:
    """Return where a store is, without a name or password."""
    from graphstore.ledger.postgres_lines import address, is_postgres

    place = place_of(store)
    if is_postgres(place):
        return address(place).shown
    scheme, found, rest = place.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{found}{host.rpartition('@')[2]}{slash}{path}" if found else place


def takes(options: type[Any]) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Make a command of a function of a dataclass: each field is an argument or an option."""

    def command_of(command: Callable[[Any], None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            command(options(**given))

        run.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {}
        return run

    return command_of


def coordinate(valid: str | None, tx: str | None, as_of: str | None) -> dict[str, str | None]:
    """Return the coordinate that --valid, --tx and --as-of give; --as-of says both axes."""
    if as_of is None:
        return {"valid": valid, "tx": tx}
    if valid or tx:
        raise typer.BadParameter("--as-of says both axes; it takes no --valid and no --tx.")
    return {"valid": as_of, "tx": as_of}


def view_at(store: "GraphStore | Branch", valid: str | None, tx: str | None) -> "View":
    """The view asked for, of a command that reads once and ends."""
    return store.as_of(valid=valid, tx=tx)


def say(text: str, err: bool = False) -> None:
    """Print a line for a person, who may be at a terminal that would obey what is in it."""
    from graphstore.values.text import clean

    echo(clean(text), err=err)


def answer(value: object, as_json: bool, words: str | None = None) -> None:
    """Print `value` as JSON, or as text: `words`, where the value alone does not show what was done."""
    from graphstore.cli import printing

    if as_json:
        printing.as_json(value)
    else:
        printing.show(value if words is None else words)


def text_or_input(text: str) -> str:
    """Return the text; for `-` what standard input has."""
    return sys.stdin.read() if text == "-" else text


_OBJECT = 'Give an object, such as \'{"text": "…"}\'.'


def json_content(text: str) -> dict[str, Any]:
    from graphstore.errors import InvalidError
    from graphstore.values.inputs import brief, json_read

    text = Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text_or_input(text)
    try:
        content = json_read(brief(text), text)
    except InvalidError as error:
        raise typer.BadParameter(f"{error} {_OBJECT}") from None
    if not isinstance(content, dict):
        raise typer.BadParameter(f"{text!r} is no JSON object. {_OBJECT}")
    return content


def parameters(given: Iterable[str] | None) -> dict[str, Any]:
    """Return Cypher parameters from `name=value`; a value is JSON where it parses, text otherwise."""
    from graphstore.errors import InvalidError
    from graphstore.values.inputs import json_or_text

    params: dict[str, Any] = {}
    for name, value in pairs(given, "parameter", "name=value"):
        try:
            params[name] = json_or_text(name, value)
        except InvalidError as error:
            raise typer.BadParameter(str(error), param_hint="--param") from None
    return params


def storage_settings(given: Iterable[str] | None) -> dict[str, str]:
    """Return the settings of an object store, from the values of `--storage`."""
    return dict(pairs(given, "setting", "KEY=VALUE, such as AWS_REGION=eu-west-1"))


def pairs(given: Iterable[str] | None, what: str, form: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each `name=value`. Raises typer's error for one that is not in this form."""
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{pair!r} is no {what}. Give {form}.")
        yield name, value


def chat_client(url: str | None, model: str | None, options: str) -> Any:
    """Return a client of a language model's service; None where neither its address nor its model is given. `options`: those that give both."""
    if url is None and model is None:
        return None
    if url is None or model is None:
        raise typer.BadParameter(f"a service needs both its address and a model. Give {options}.")
    from graphstore.chat_client import ChatClient, key_in

    return ChatClient(url, model, key=key_in())


def function(name: str) -> Callable[..., Any]:
    """The function that `module:function` names; modules of the working folder are found too."""
    from importlib import import_module

    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise typer.BadParameter(f"{name!r} names no function ({error}). Give module:function.") from None
    finally:
        sys.path.remove("")
    if not callable(found):
        raise typer.BadParameter(f"{name!r} cannot be called. Give module:function.")
    return found  # type: ignore[no-any-return]


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[..., None]]:
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


def embedder(name: str) -> Any:
    """The embedder of that name; of a name with another module, its function."""
    from graphstore.memory import embedders

    kind, colon, _ = name.partition(":")
    return function(name) if colon and kind not in embedders.NAMES else embedders.named(name)
