-- Which operations were recorded, and why? One row for each, in the order in which they were recorded.
--
-- Parameters: :after, a number of an operation (below 0: from the first on). At most 20,000 rows.
-- Columns: number; tx; verb; subject, the id of what it was done to; author; data, its reason and what else was given as JSON, and its CRC-32 (-1: there is none).
SELECT o.number, o.tx, o.verb, o.subject, o.author, b.data, coalesce(b.checksum, -1) AS checksum
FROM done o
LEFT JOIN body b ON b.number = o.body
WHERE o.number > :after
ORDER BY o.number
LIMIT 20000;
