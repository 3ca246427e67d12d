"""Writes: the transaction, the writer, links, slots, merges, retention. This package does not depend on GraphStore or on the doors."""
