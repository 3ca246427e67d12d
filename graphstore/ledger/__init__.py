"""Keeps the ledger of a store in one SQLite file that several processes read and write."""
