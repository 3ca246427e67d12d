"""The calls by name, their codec, and a store in another process. It knows nothing of the server that answers."""
