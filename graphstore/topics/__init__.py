"""Topics: statements in messages about a subject, which of them wins, and which can be summarised in one. It imports neither memory nor interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphstore.faces import face

if TYPE_CHECKING:
    from graphstore.topics.topics import *  # noqa: F403

__getattr__ = face(__name__, "graphstore.topics.topics")
