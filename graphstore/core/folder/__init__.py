"""The folder of a store: its lock, forgetting, rewriting, restoring, tokens. It knows nothing of queries."""
