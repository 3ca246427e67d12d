"""Adapters for frameworks of agents: each module is what one framework calls its memory, kept in a store, and needs the extra of its name.

They use only what every store offers, one that a server holds included.
"""
