"""Topics: what messages state about a subject, which statement wins, and which can be summed up in one. It knows nothing of memory or the doors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.topics.topics import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.topics.topics")
