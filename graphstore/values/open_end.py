"""The open end of a period, said by a caller: at the doors for people and over HTTP it is the word itself."""

from typing import Final

OPEN: Final = "open"
"""As a `valid_to`: an open end, also for what has ended. Left out, the end is what the verb makes of it."""
