"""Reads session files of coding agents, writes their segments into the graph, and answers questions about them. It never imports a command or server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.sessions.sessions import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.sessions.sessions")
