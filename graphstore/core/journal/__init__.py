"""The truth on disk: lines, segments, positions, digests. It knows nothing of the index."""
