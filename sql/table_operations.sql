-- What was done? One row for each operation, in the order in which it was recorded.
--
-- Parameters: :first, the number of the first operation; :stop, that of the first one after them.
-- Columns: number; tx; verb; subject; author; data, what has its reason, with the number of that body (NULL: none was given) and its checksum (-1: it is missing).
SELECT o.number, o.tx, o.verb, o.subject, o.author, b.data, o.body, coalesce(b.checksum, -1) AS checksum
FROM operation o
LEFT JOIN body b ON b.number = o.body
WHERE o.number >= :first AND o.number < :stop
ORDER BY o.number;
