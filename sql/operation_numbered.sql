-- What was done by an operation? One row, or none.
--
-- Parameters: :number.
-- Columns: number; tx; verb; subject; author; body, of its reason, and the length of that in bytes (0: there is none).
SELECT o.number, o.tx, o.verb, o.subject, o.author, coalesce(o.body, 0) AS body, coalesce(length(b.data), 0) AS length
FROM operation o
LEFT JOIN body b ON b.number = o.body
WHERE o.number = :number;
