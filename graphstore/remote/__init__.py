"""The calls by name, their codec, and a store in another process. Nothing here imports the server."""
