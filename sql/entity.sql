-- Which node or event has exactly this id, as known at :tx? One row, or none.
--
-- Parameters: :id; :tx, in microseconds since 1970-01-01 UTC; :number, a number of a version.
-- Columns: id; is_event; has_version, whether version :number of it was recorded by then; thing, its own number; ordinal, 0; was_joined, whether it was ever
-- joined into another: joined.sql says into which.
SELECT
  e.id, e.is_event,
  EXISTS (
    SELECT 1 FROM version v CROSS JOIN period p ON p.entity = e.number AND p.version = v.number AND p.tx_from <= :tx
    WHERE v.entity = e.number AND v.ordinal = :number
  ) AS has_version,
  e.number AS thing, 0 AS ordinal,
  EXISTS (SELECT 1 FROM link l WHERE l.target = e.number AND l.kind = 'joined_from') AS was_joined
FROM entity e
WHERE e.id = :id AND e.tx_from <= :tx;
