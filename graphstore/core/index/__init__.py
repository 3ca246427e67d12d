"""Every period in memory, with rollback, occurrences and what rests on what. It knows nothing of files and of the graph tables."""
