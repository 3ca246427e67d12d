-- What was ever believed of a thing, and which operation took it away? One row for each period recorded by :tx, in the order in which they were recorded; then
-- one for each period that an operation removed of what was recorded in the same transaction.
--
-- Parameters: :id, the id of the thing; :tx, in microseconds since 1970-01-01 UTC; :undone, a JSON array of the transactions that are taken back as known
-- at :tx ('[]' where table undone is empty).
-- Columns: is_gap, 1 in the rows of the second kind; number, the version; valid_from and valid_to; tx_from and tx_to (NULL: believed at :tx); counts, 1 where the
-- period was recorded and the transaction that opened it is not taken back; said_by, the operation that recorded the version first; said_counts, 0 where its transaction is taken back;
-- removed_by, the operation that removed the period (NULL: none, or it only described the time otherwise); retracts, 1 where that operation says that it never was so;
-- known_since, when the id became known; undone_by, the operation that took that transaction back. Operations are numbers: see operation.sql.
WITH
subject (number, tx_from, undone_by) AS MATERIALIZED (
  SELECT
    e.number, e.tx_from,
    (
      SELECT max(u.operation) FROM undone u CROSS JOIN operation o ON o.number = u.operation
      WHERE u.tx = e.tx_from AND o.tx <= :tx AND o.tx NOT IN (SELECT value FROM json_each(:undone))
    )
  FROM entity e
  WHERE e.id = :id AND e.tx_from <= :tx
),
part (place, version, valid_from, valid_to, tx_from, tx_to, closed_by) AS (
  SELECT p.number, p.version, p.valid_from, p.valid_to, p.tx_from, p.tx_to, p.closed_by
  FROM subject
  CROSS JOIN period p ON p.entity = subject.number AND p.tx_from <= :tx
  UNION ALL
  SELECT NULL, NULL, r.valid_from, r.valid_to, NULL, NULL, r.operation
  FROM subject
  CROSS JOIN removed r ON r.entity = subject.number
)
SELECT
  part.place IS NULL AS is_gap, v.ordinal AS number, part.valid_from, part.valid_to, part.tx_from, CASE WHEN part.tx_to <= :tx THEN part.tx_to END AS tx_to,
  part.place IS NOT NULL AND part.tx_from NOT IN (SELECT value FROM json_each(:undone)) AS counts,
  v.operation AS said_by, s.tx NOT IN (SELECT value FROM json_each(:undone)) AS said_counts,
  o.number AS removed_by, o.verb IN ('retract', 'correct', 'undo') AS retracts, subject.tx_from AS known_since, subject.undone_by
FROM part
CROSS JOIN subject
LEFT JOIN version v ON v.number = part.version
LEFT JOIN operation s ON s.number = v.operation
LEFT JOIN operation o
  ON o.number = part.closed_by AND o.tx <= :tx AND o.tx NOT IN (SELECT value FROM json_each(:undone))
  AND (
    part.place IS NULL
    OR (
      o.verb NOT IN ('revise', 'amend')
      AND (o.verb <> 'undo' OR EXISTS (SELECT 1 FROM undone u WHERE u.tx = subject.tx_from AND u.operation = o.number))
    )
  )
ORDER BY part.place IS NULL, part.place;
