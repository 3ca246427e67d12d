"""Writing: the transaction, the writer, links, slots, merges, retention. It knows nothing of GraphStore and of the doors."""
