-- What was done by an operation? One row, or none.
--
-- Parameters: :number.
-- Columns: number; tx; verb; subject; author; body and length, the number of its reason and its bytes (0: none was given, or it was removed); told, when it was recorded first.
SELECT
  o.number, o.tx, o.verb, o.subject, o.author, coalesce(o.body, 0) AS body,
  CASE WHEN o.body IS NULL THEN 0 ELSE coalesce((SELECT coalesce(length(b.data), 0) FROM body b WHERE b.number = o.body), 1) END AS length,
  coalesce(o.recorded, o.tx) AS told
FROM done o
WHERE o.number = :number;
