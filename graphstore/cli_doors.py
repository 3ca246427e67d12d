"""Commands that open a store to others: a server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphstore.cli_common import Store, function

Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="Where to listen; by default this machine alone is let in."
    ),
]
Port = Annotated[int, typer.Option("--port", help="0: any that is free.")]


def serve(
    store: Store,
    host: Host = "127.0.0.1",
    port: Port = 7464,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name this server goes by (may be repeated)."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="URL", help="A web page that may ask (may be repeated)."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Follow the store; another process may be writing it.")
    ] = False,
    ticks: Annotated[
        bool,
        typer.Option(
            "--ticks/--no-ticks", help="Do the daily lifecycle, the observer's queues and the rest."
        ),
    ] = True,
    sync: Annotated[
        list[str] | None,
        typer.Option(
            "--sync",
            metavar="MODULE:FUNCTION",
            help="Gives a service to keep in step with (may be repeated).",
        ),
    ] = None,
    soul: Annotated[
        list[Path] | None,
        typer.Option("--soul", metavar="FOLDER", help="The files an agent lives by (may be repeated)."),
    ] = None,
    show_token: Annotated[bool, typer.Option("--show-token", help="Print the tokens, and end.")] = False,
) -> None:
    """Serve a store over HTTP, so that many processes read and write it. Tokens are made when it is served first, in its folder."""
    import os

    from graphstore.errors import InvalidError

    if show_token:
        from graphstore.tokens import shown

        for line in shown(store):
            typer.echo(line)
        return
    try:
        from graphstore import server_run
    except ImportError as error:
        raise InvalidError(
            f"a server needs {error.name}. Install it: pip install 'graphstore[server]'"
        ) from None
    if not server_run.is_loopback(host):
        typer.echo(
            f"warning: on {host} others than this machine can reach the store, unencrypted. Keep the tokens, or put a proxy with TLS before it.",
            err=True,
        )

    def usual(opened: Any) -> Any:
        from graphstore import ticking

        return ticking.usual(opened, sources=[function(name)() for name in sync or ()], souls=soul or ())

    server_run.serve(
        store,
        listening=server_run.Listening(host, port, tuple(allow_host or ()), tuple(allow_origin or ())),
        read_only=read_only,
        ticks=usual if ticks else None,
        told=lambda line: typer.echo(line),
        driver=os.environ.get("GRAPHSTORE_DRIVER", "kuzu"),
    )
