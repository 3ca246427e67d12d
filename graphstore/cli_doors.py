"""Commands that open a door and stay: a store served to others until it is stopped."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from graphstore.cli_common import CHOSEN, Store, open_store


class Profile(StrEnum):
    """Which tools agents get."""

    full = "full"
    memory = "memory"


def mcp(
    store: Store,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="No tool that writes; another process may hold the store.")
    ] = False,
    profile: Annotated[
        Profile, typer.Option("--profile", help="All 16 tools, or the nine of the reference memory server.")
    ] = Profile.full,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Read and write on this branch.")
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(
            "--http", metavar="HOST:PORT", help="Streamable HTTP instead of standard input and output."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            exists=True,
            dir_okay=False,
            help="The bearer token clients must show. [GRAPHSTORE_TOKEN]",
        ),
    ] = None,
    query_seconds: Annotated[
        float, typer.Option("--query-seconds", min=0.1, help="How long a Cypher text may run.")
    ] = 10.0,
) -> None:
    """Serve agents by the Model Context Protocol, until standard input ends or Ctrl-C."""
    try:
        from graphstore.mcp_serving import address, over_http, over_stdio
    except ModuleNotFoundError as error:
        from graphstore.errors import InvalidError

        if (error.name or "").startswith("graphstore"):
            raise
        raise InvalidError("agents need mcp. Install it: pip install 'graphstore[mcp]'") from None
    if branch is not None:
        CHOSEN.set(branch)
    where = None if http is None else address(http)
    token = (
        token_file.read_text(encoding="utf-8").strip() if token_file else os.environ.get("GRAPHSTORE_TOKEN")
    )
    with open_store(store, read_only=read_only, create=not read_only) as opened:
        how: dict[str, Any] = {
            "read_only": read_only,
            "profile": profile.value,
            "query_seconds": query_seconds,
        }
        if where is None:
            over_stdio(opened, **how)
        else:
            over_http(opened, *where, token=token or None, **how)
