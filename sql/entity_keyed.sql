-- Which nodes have a key, or that key followed by _v and something that begins with a digit? One row for each, in the order in which they were first known.
--
-- Parameters: :key.
-- Columns: number; key.
SELECT number, key FROM entity WHERE key = :key
UNION ALL
SELECT number, key FROM entity WHERE key >= :key || '_v0' AND key < :key || '_v:'
ORDER BY number;
