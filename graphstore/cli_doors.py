"""Commands that open a store to others: a server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphstore.cli_common import Store, function
from graphstore.cli_memory import Embed, embedder

Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="Where to listen. By default this machine alone is let in."
    ),
]
Port = Annotated[int, typer.Option("--port", help="0: any that is free.")]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A name this server goes by (may be repeated)."),
]
Origins = Annotated[
    list[str] | None,
    typer.Option("--allow-origin", metavar="URL", help="A web page that may ask (may be repeated)."),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Only follow the store; another process may be writing it.")
]
NoTicks = Annotated[
    bool, typer.Option("--no-ticks", help="Without the daily lifecycle, the observer and what else is due.")
]
Syncs = Annotated[
    list[str] | None,
    typer.Option(
        "--sync", metavar="MODULE:FUNCTION", help="Gives a service to keep in step with (may be repeated)."
    ),
]
Souls = Annotated[
    list[Path] | None,
    typer.Option("--soul", metavar="FOLDER", help="Index the files an agent lives by (may be repeated)."),
]
ShowToken = Annotated[bool, typer.Option("--show-token", help="Print the tokens, and end.")]


def serve(
    store: Store,
    host: Host = "127.0.0.1",
    port: Port = 7464,
    allow_host: Hosts = None,
    allow_origin: Origins = None,
    read_only: ReadOnly = False,
    no_ticks: NoTicks = False,
    sync: Syncs = None,
    soul: Souls = None,
    embed: Embed = None,
    show_token: ShowToken = False,
) -> None:
    """Serve a store over HTTP: many processes read and write it. Its tokens are made when it is served first, in its folder."""
    import os

    if show_token:
        from graphstore.tokens import shown

        for line in shown(store):
            typer.echo(line)
        return
    run = _server()
    if not run.is_loopback(host):
        typer.echo(
            f"warning: on {host} others than this machine can reach the store, and nothing is encrypted. "
            "Keep the tokens secret, or put a proxy with TLS before it.",
            err=True,
        )

    def prepared(opened: Any) -> Any:
        from graphstore import memory, ticking

        if embed is not None:
            memory.lend(opened, embedder(embed))
        if no_ticks:
            return None
        return ticking.usual(opened, sources=[function(name)() for name in sync or ()], souls=soul or ())

    run.serve(
        store,
        listening=run.Listening(host, port, tuple(allow_host or ()), tuple(allow_origin or ())),
        read_only=read_only,
        prepared=prepared,
        told=typer.echo,
        driver=os.environ.get("GRAPHSTORE_DRIVER", "kuzu"),
    )


def _server() -> Any:
    from graphstore.errors import InvalidError

    try:
        from graphstore import server_run
    except ImportError as error:
        raise InvalidError(
            f"a server needs {error.name}. Install it: pip install 'graphstore[server]'"
        ) from None
    return server_run
