-- What do all heads and bodies of a ledger take? One row. Pages, indexes and free space are not counted.
--
-- Columns: bytes.
SELECT (SELECT coalesce(sum(length(head)), 0) FROM chain) + (SELECT coalesce(sum(length(data)), 0) FROM body) AS bytes;
