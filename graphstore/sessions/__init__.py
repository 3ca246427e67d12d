"""Sessions of coding agents: files read, segments written, questions answered. It knows nothing of the doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.sessions.sessions import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.sessions.sessions")
