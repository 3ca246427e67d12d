"""Memory: chunks of text in layers, recalled by words, by meaning and by links. It knows nothing of sessions and of the interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.memory.memory import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.memory.memory")
