"""A store over HTTP. It knows nothing of the command line."""
