"""GraphStore and Branch, bulk loading, upsert, and the registry of calls. It knows no room and no door."""
