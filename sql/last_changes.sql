-- What was done last, as known at :tx, by whom and why? One row for each operation, newest first.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC; :most, how many rows at most (NULL: all).
-- Columns: those of operations.sql.
SELECT o.author, o.tx, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum, o.verb, o.subject
FROM done o
LEFT JOIN body b ON b.number = o.body
WHERE o.tx <= :tx
ORDER BY o.tx DESC, o.number DESC
LIMIT coalesce(:most, -1);
