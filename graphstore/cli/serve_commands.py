"""Commands that open an interface and stay: a server, a server of agents, the shell."""

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from graphstore.cli import common, server_settings
from graphstore.cli.common import CHOSEN, AsOf, Embed, Store, Tx, Valid, function, open_store, takes

_LOOKING = 60.0  # seconds that a page is served after the last browser has gone


class Profile(StrEnum):
    """Names which tools agents get."""

    full = "full"
    memory = "memory"


class Level(StrEnum):
    """From which weight on lines are written."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class Form(StrEnum):
    """Names how lines are written."""

    text = "text"
    json = "json"


def _setting(flag: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option of a server. The environment may give it too: `--log-level` as GRAPHSTORE_LOG_LEVEL."""
    name = f"GRAPHSTORE_{flag[2:].upper().replace('-', '_')}"
    return typer.Option(flag, envvar=name, metavar=metavar, help=help, **more)


_READS = "Record which things each answer contained, so that readers_of tells whose answers no longer hold."
RecordReads = Annotated[bool, _setting("--record-reads", _READS)]
ReadsDays = Annotated[float | None, _setting("--reads-days", "How long it is kept. [90]", "DAYS", min=0.01)]
NAME = "A name this server goes by (may be repeated)."
WEB_PAGE = "A web page that may ask (may be repeated)."
SYNC = "Gives a service to synchronise with (may be repeated)."
SOUL = "Index the files an agent lives by (may be repeated)."
FOLLOW = "Ingest the session files there while they are written (may be repeated)."
COMPRESS = "Compresses the messages that wait for the observer. [they wait]"
URL = "The same by a service such as OpenAI's, with the key in GRAPHSTORE_LLM_KEY or OPENAI_API_KEY."
FILES = "Calls may name files below it. [none]"
HELD = "How long a transaction that a client holds open may wait for its next call. Others wait for it."
IDLE = "End once nobody has been connected for so long. [never]"
CACHE = "What graphs and tables for Cypher may keep in memory. The one used last stays, whatever its size."
ISSUER = "Admit access tokens of this OAuth 2.1 issuer too. Only then is anything asked of it: its keys."
RESOURCE = (
    "The address of this server for its clients, for which the tokens of the issuer are. [where it listens]"
)
SCOPE_CLAIM = "The claim with the scopes that such a token sees, a path or several. [it sees the whole store]"
CONFIG = "A file in TOML: its table [serve] has what is not given here nor in the environment."


@dataclass(frozen=True)
class ServeOptions:
    """Holds the arguments of `serve`, in the order of its help."""

    ctx: typer.Context
    store: Store
    host: Annotated[
        str, _setting("--host", "Where to listen. By default this machine alone is let in.", "ADDRESS")
    ] = "127.0.0.1"
    port: Annotated[int, _setting("--port", "0: any that is free.")] = 7464
    allow_host: Annotated[list[str] | None, _setting("--allow-host", NAME, "NAME")] = None
    allow_origin: Annotated[list[str] | None, _setting("--allow-origin", WEB_PAGE, "URL")] = None
    read_only: Annotated[
        bool, _setting("--read-only", "Only read the store; other processes may write it.")
    ] = False
    no_ticks: Annotated[
        bool, _setting("--no-ticks", "Without the daily lifecycle, the observer and what else is due.")
    ] = False
    sync: Annotated[list[str] | None, _setting("--sync", SYNC, "MODULE:FUNCTION")] = None
    soul: Annotated[list[Path] | None, _setting("--soul", SOUL, "FOLDER")] = None
    follow: Annotated[list[Path] | None, _setting("--follow", FOLLOW, "FOLDER")] = None
    compress: Annotated[str | None, _setting("--compress", COMPRESS, "MODULE:NAME")] = None
    compress_url: Annotated[str | None, _setting("--compress-url", URL, "URL")] = None
    compress_model: Annotated[
        str | None, _setting("--compress-model", "The model of that service.", "NAME")
    ] = None
    embed: Embed = None
    files: Annotated[Path | None, _setting("--files", FILES, "FOLDER", exists=True, file_okay=False)] = None
    transaction_seconds: Annotated[float, _setting("--transaction-seconds", HELD, min=0.1)] = 10.0
    idle: Annotated[float | None, typer.Option("--idle", metavar="SECONDS", min=0.1, help=IDLE)] = None
    cache: Annotated[int, _setting("--cache", CACHE, "MB", min=1)] = 1024
    record_reads: RecordReads = False
    reads_days: ReadsDays = None
    issuer: Annotated[str | None, _setting("--issuer", ISSUER, "URL")] = None
    resource: Annotated[str | None, _setting("--resource", RESOURCE, "URL")] = None
    scope_claim: Annotated[str | None, _setting("--scope-claim", SCOPE_CLAIM, "NAME")] = None
    log_level: Annotated[Level, _setting("--log-level", "info: a line for each request too.")] = Level.warning
    log_format: Annotated[Form, _setting("--log-format", "Of the lines on standard error.")] = Form.text
    config: Annotated[
        Path | None,
        _setting("--config", CONFIG, "FILE", is_eager=True, callback=server_settings.from_file),
    ] = None
    print_config: Annotated[
        bool,
        typer.Option("--print-config", help="Print every option with where it is from, and end."),
    ] = False
    show_token: Annotated[bool, typer.Option("--show-token", help="Print the tokens, and end.")] = False


@takes(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Serve a store over HTTP: many processes read and write it. Its tokens are made when it is served first, in its folder."""
    if options.print_config or options.show_token:
        _show(options.ctx, None if options.print_config else options.store)
        return
    run = _server()
    _warn_of_others(options.host, run)
    compressor = _compressor(options.compress, options.compress_url, options.compress_model)
    with common.exits_on_sigterm():
        run.serve(
            options.store,
            listening=run.Listening(
                options.host,
                options.port,
                tuple(options.allow_host or ()),
                tuple(options.allow_origin or ()),
                patience=run.Patience(idle=options.transaction_seconds),
                limits=run.ServerLimits(cache=options.cache << 20),
                files=options.files,
                record_reads=options.record_reads,
                reads_days=options.reads_days,
                issuer=options.issuer,
                resource=options.resource,
                scope_claim=options.scope_claim,
            ),
            read_only=options.read_only,
            prepared=partial(_prepared, options=options, compressor=compressor),
            report=common.say,
            lines=(options.log_level.value, options.log_format.value),
            driver=common.driver(),
            idle=options.idle,
        )


def page(
    store: Store,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Sign in with the token for reading: nothing can be decided there."),
    ] = False,
    show: Annotated[
        bool,
        typer.Option("--print", help="Print the address, which signs in who opens it, and open no browser."),
    ] = False,
) -> None:
    """Open the page of a store in the browser, signed in. Where no server has the store, serve it while somebody looks."""
    import webbrowser

    from graphstore.errors import InvalidError
    from graphstore.ledger import server_file

    place = common.folder_with_tokens(store)
    run = _server()

    def open_page(url: str) -> None:
        names = (server_file.READ_TOKEN,) if read_only else (server_file.TOKEN, server_file.READ_TOKEN)
        token = next(filter(None, (server_file.token_in(place, name) for name in names)), None)
        if token is None:
            raise InvalidError(f"{place} has no token for reading. Leave --read-only out.")
        address = f"{url}/#token={token}"
        if show:
            typer.echo(address)
        elif webbrowser.open(address):
            typer.echo(f"opened {url}/ in the browser")
        else:
            typer.echo(
                f"there is no browser here. Ask for the address with --print, and open it: graphstore page {store} --print"
            )

    served = server_file.serving(place)
    if served is not None:
        open_page(served[0])
    else:
        with common.exits_on_sigterm():
            run.serve(
                place,
                listening=run.Listening(port=0),
                report=partial(common.say, err=True),
                driver=common.driver(),
                idle=_LOOKING,
                ready=open_page,
            )


def _show(ctx: typer.Context, tokens_of: Path | None) -> None:
    """Print the tokens of a store; None: the options."""
    from graphstore.ledger.tokens import shown

    for line in server_settings.shown(ctx) if tokens_of is None else shown(tokens_of):
        typer.echo(line)


def _warn_of_others(host: str, run: Any) -> None:
    if not run.is_loopback(host):
        typer.echo(
            f"warning: on {host} others than this machine can reach the store, and nothing is encrypted. "
            "Keep the tokens secret, or put a proxy with TLS before it.",
            err=True,
        )


def _compressor(name: str | None, url: str | None, model: str | None) -> Any:
    """Return what compresses messages: the function or object of that name, or the model of a service; None: nothing."""
    if name is not None and (url or model):
        raise typer.BadParameter(
            "--compress is one, --compress-url and --compress-model another. Give one of them."
        )
    if name is not None:
        found = function(name)
        return found() if isinstance(found, type) else found
    client = common.chat_client(url, model, "--compress-url and --compress-model")
    if client is None:
        return None
    from graphstore.context.compressor import ChatCompressor

    return ChatCompressor(client)


def _prepared(opened: Any, options: ServeOptions, compressor: Any) -> Any:
    """Make a store ready to be served: set its embedder, and return what is done beside the answers; None: nothing."""
    if options.embed is not None:
        common.use_embedder(opened, options.embed)
    if options.no_ticks:
        return None
    from datetime import timedelta

    from graphstore.context import scheduler
    from graphstore.context.observer import Observer
    from graphstore.sessions.watch import Following

    often, most = timedelta(seconds=10), 1.0  # others write after each second of it
    followed = [
        (f"sessions {each}", partial(Following(opened, each).ingest_new, most), often)
        for each in options.follow or ()
    ]
    return scheduler.usual(
        opened,
        observer=Observer(opened, compressor, reflect=getattr(compressor, "reflect", None)),
        sources=[function(name)() for name in options.sync or ()],
        souls=options.soul or (),
        more=followed,
    )


def _server() -> Any:
    from graphstore.errors import InvalidError

    try:
        from graphstore.server import run as server_run
    except ImportError as error:
        raise InvalidError(
            f"a server needs {error.name}. Install it: pip install 'graphstore[server]'"
        ) from None
    return server_run


@dataclass(frozen=True)
class AgentOptions:
    """Holds the arguments of `mcp`, in the order of its help."""

    store: Store
    read_only: Annotated[bool, typer.Option("--read-only", help="No tool that writes.")] = False
    profile: Annotated[
        Profile, typer.Option("--profile", help="All tools, or the nine of the reference memory server.")
    ] = Profile.full
    tools: Annotated[
        str,
        typer.Option(
            "--tools", metavar="SETS", help="Only the sets named: memory,graph,events,sessions or all."
        ),
    ] = "usual"
    allow_erase: Annotated[
        bool, typer.Option("--allow-erase", help="Agents may erase for ever what must not be kept.")
    ] = False
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Read and write on this branch.")
    ] = None
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="HOST:PORT", help="Streamable HTTP instead of standard input and output."
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            exists=True,
            dir_okay=False,
            help="The bearer token clients must show. [GRAPHSTORE_TOKEN]",
        ),
    ] = None
    embed: Embed = None
    query_seconds: Annotated[
        float, typer.Option("--query-seconds", min=0.1, help="How long a Cypher text may run.")
    ] = 10.0
    author: Annotated[
        str | None,
        typer.Option(
            "--author", metavar="NAME", help="Who signs what agents write, with the rank of that name. [none]"
        ),
    ] = None
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="The scope of calls that name none; an argument goes before."),
    ] = None
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The user of calls that name none.")
    ] = None
    kind: Annotated[str | None, typer.Option("--kind", help="The kind of nodes of calls that name none.")] = (
        None
    )
    any_kind: Annotated[
        bool, typer.Option("--any-kind", help="A link of an unknown kind defines that kind.")
    ] = False
    record_reads: RecordReads = False
    reads_days: ReadsDays = None
    no_share: Annotated[
        bool,
        typer.Option("--no-share", hidden=True, help="Has no effect: configurations of agents may have it."),
    ] = False


@takes(AgentOptions)
def mcp(options: AgentOptions) -> None:
    """Serve agents by the Model Context Protocol, until standard input ends or Ctrl-C."""
    from graphstore.mcp import desk, returning, stdio, transport

    _need_sdk(stdio)
    if options.branch is not None:
        CHOSEN.set(options.branch)
    where = None if options.http is None else transport.address(options.http)
    token = _token_in(options.token_file)
    writes = not options.read_only
    with (
        common.exits_on_sigterm(),
        open_store(options.store, read_only=not writes, create=writes) as opened,
    ):
        if options.embed is not None:
            common.use_embedder(opened, options.embed)
        in_names = options.profile is Profile.memory
        how: dict[str, Any] = {
            "read_only": options.read_only,
            "profile": options.profile.value,
            "query_seconds": options.query_seconds,
            "tools": [each.strip() for each in options.tools.split(",")],
            "allow_erase": options.allow_erase,
            "author": options.author,
            "defaults": desk.Defaults(options.scope, options.user, options.kind, options.any_kind),
            "record_reads": options.record_reads
            and returning.Reads(opened, days=options.reads_days, in_names=in_names, author=options.author),
        }
        if where is None:
            stdio.over_stdio(opened, **how)
        else:
            transport.over_http(opened, *where, token=token or None, **how)


def _token_in(file: Path | None) -> str | None:
    """Return the bearer token of a file, else that of the environment."""
    return file.read_text(encoding="utf-8").strip() if file else os.environ.get("GRAPHSTORE_TOKEN")


def _need_sdk(module: ModuleType) -> None:
    """Raise InvalidError if what serves agents is not installed."""
    try:
        vars(module)  # runs it: what it needs may be missing
    except ModuleNotFoundError as error:
        from graphstore.errors import InvalidError

        if (error.name or "").startswith("graphstore"):
            raise
        raise InvalidError("agents need mcp. Install it: pip install 'graphstore[mcp]'") from None


@dataclass(frozen=True)
class ShellOptions:
    """Holds the arguments of `shell`, in the order of its help."""

    store: Store
    command: Annotated[
        list[str] | None,
        typer.Option(
            "-c", "--command", metavar="CYPHER", help="Answer this and end (may be repeated); :commands too."
        ),
    ] = None
    mode: Annotated[
        str, typer.Option("--mode", help="How answers are shown: table, json, csv or markdown.")
    ] = "table"
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Go on after what is refused; the exit code is 1 all the same."),
    ] = False
    valid: Valid = None
    tx: Tx = None
    as_of: AsOf = None


@takes(ShellOptions)
def shell(options: ShellOptions) -> None:
    """Ask in Cypher and short commands, line by line, beside any writer. Reads standard input when that is no terminal."""
    from graphstore.cli.shell.output import Mode, Output
    from graphstore.cli.shell.shell import Shell

    try:
        shown = Mode(options.mode)
    except ValueError:
        raise typer.BadParameter(f"unknown mode {options.mode!r}. Valid: {', '.join(Mode)}.") from None
    at = common.coordinate(options.valid, options.tx, options.as_of)
    terminal = not options.command and sys.stdin.isatty() and sys.stdout.isatty()
    branch = CHOSEN.get()
    CHOSEN.set(None)  # the shell turns to it, and back
    with common.exits_on_sigterm(), open_store(options.store, read_only=True) as opened:
        asked = Shell(opened, options.store.name, Output(terminal, shown, timing=terminal))
        asked.turn_to(branch)
        asked.valid, asked.tx = at["valid"], at["tx"]
        asked.view()
        if terminal:
            from graphstore.cli.shell.terminal import converse

            converse(asked)
            return
        lines = (line for one in options.command or () for line in f"{one}\n;\n".splitlines(keepends=True))
        if not asked.run_all(lines if options.command else sys.stdin, keep_going=options.keep_going):
            raise typer.Exit(1)
