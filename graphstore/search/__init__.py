"""Words, names, messages and lookups, found as of any coordinate. It knows nothing of views and of the graph tables."""
