"""Warns of what took long, in the log of the program that has a store open."""

from __future__ import annotations

SLOW = 1.0  # seconds; what takes longer is named in the log


def warn(message: str, *values: object) -> None:
    """Log a warning."""
    import logging  # most processes never need it

    logger = logging.getLogger("graphstore")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # a library does not print what nobody wants to be logged
    logger.warning(message, *values)
