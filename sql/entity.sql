-- Which node or event has exactly this id, as known at :tx? One row, or none.
--
-- Parameters: :id; :tx, in microseconds since 1970-01-01 UTC; :number, a number of a version.
-- Columns: id; is_event; has_version, whether version :number of it was recorded by then; thing, its own number.
SELECT
  e.id, e.is_event,
  EXISTS (
    SELECT 1 FROM version v CROSS JOIN period p ON p.entity = e.number AND p.version = v.number AND p.tx_from <= :tx
    WHERE v.entity = e.number AND v.ordinal = :number
  ) AS has_version,
  e.number AS thing
FROM entity e
WHERE e.id = :id AND e.tx_from <= :tx;
