"""Serves agents by the Model Context Protocol. It knows nothing of HTTP routes and of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.mcp.protocol import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.mcp.protocol")
