"""The command line of the store, with the small segments of the lab: for the servers of a round."""

from __future__ import annotations

from graphstore.cli import main
from lab import small_segments

if __name__ == "__main__":
    small_segments()
    main()
