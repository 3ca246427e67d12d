"""The command line. Nothing imports it but `python -m graphstore`."""

from __future__ import annotations

from graphstore.faces import face

__getattr__ = face(__name__, "graphstore.cli.command_line")
