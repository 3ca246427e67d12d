"""Session files as entries, boundaries, segments and steps. It knows nothing of a store."""
