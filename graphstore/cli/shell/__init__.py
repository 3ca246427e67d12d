"""The shell: Cypher and short commands over one store. It writes nothing."""
