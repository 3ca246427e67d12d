"""Serves a store over HTTP. It does not import the command line."""
