-- Who confirmed a thing, as known at :tx, and when? One row for each time, oldest first.
--
-- Parameters: :id, the id of the thing; :tx, in microseconds since 1970-01-01 UTC; :undone, a JSON array of the transactions that are taken back as known
-- at :tx ('[]' where table undone is empty).
-- Columns: author; tx, in microseconds since 1970-01-01 UTC.
SELECT o.author, o.tx
FROM entity e
CROSS JOIN operation o ON o.subject = e.id AND o.verb = 'confirm' AND o.tx >= e.tx_from AND o.tx <= :tx
WHERE e.number = (SELECT number FROM entity WHERE id = :id) AND o.tx NOT IN (SELECT value FROM json_each(:undone))
ORDER BY o.number;
