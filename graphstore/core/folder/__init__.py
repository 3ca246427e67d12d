"""The folder of a store: its lock, the saved index, forgetting, rewriting, restoring, tokens. It knows nothing of queries."""
