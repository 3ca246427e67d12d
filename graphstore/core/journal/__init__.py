"""Lines of the chain, their digests and places; files; and the journal of release 0.1."""
