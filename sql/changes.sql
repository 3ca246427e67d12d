-- What was done after one instant and up to another, by whom and why? One row for each operation, oldest first.
--
-- Parameters: :after and :until, in microseconds since 1970-01-01 UTC; :most, after how many rows to stop at the end of a transaction (NULL: never).
-- Columns: those of operations.sql.
SELECT o.author, o.tx, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum, o.verb, o.subject
FROM done o
LEFT JOIN body b ON b.number = o.body
WHERE o.tx > :after
  AND o.tx <= (
    SELECT max(tx) FROM (SELECT tx FROM done WHERE tx > :after AND tx <= :until ORDER BY tx LIMIT coalesce(:most, -1))
  )
ORDER BY o.tx, o.number;
