-- Which nodes and events hold at one of two coordinates and not at the other, or at both by different versions of a node? And who did so, and why? One row for
-- each, in the order in which they were first known.
--
-- Parameters: :valid and :tx, the one coordinate, :other_valid and :other_tx, the other, in microseconds since 1970-01-01 UTC.
-- Columns: id; is_event; is_before and is_after, whether it holds at the one and at the other; author, of the operation that first recorded the version that holds
-- at the other; where none holds there, of the one that took away last what was believed of :other_valid, else of the one that recorded the version that holds
-- at the one; data, the JSON that has its reason, NULL where none was given, and its CRC-32 (-1: it is missing).
WITH
held (entity, version, is_before, is_after) AS (
  SELECT
    p.entity, p.version,
    p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx,
    p.valid_from <= :other_valid AND p.valid_to > :other_valid AND p.tx_from <= :other_tx AND p.tx_to > :other_tx
  FROM period p
),
moved (entity, version, is_before) AS MATERIALIZED (  -- a period that holds at both leaves no room for another
  SELECT held.entity, held.version, held.is_before FROM held WHERE held.is_before <> held.is_after
),
differing (entity, before, after) AS (
  SELECT moved.entity, max(CASE WHEN moved.is_before THEN moved.version END), max(CASE WHEN NOT moved.is_before THEN moved.version END)
  FROM moved
  GROUP BY moved.entity
)
SELECT
  e.id, e.is_event, d.before IS NOT NULL AS is_before, d.after IS NOT NULL AS is_after,
  o.author, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum
FROM differing d
CROSS JOIN entity e ON e.number = d.entity
CROSS JOIN version v ON v.number = coalesce(d.after, d.before)
LEFT JOIN operation o ON o.number = coalesce(
  CASE WHEN d.after IS NULL THEN (
    SELECT c.closed_by FROM period c
    WHERE c.entity = d.entity AND c.valid_from <= :other_valid AND c.valid_to > :other_valid AND c.tx_to <= :other_tx
    ORDER BY c.tx_to DESC, c.number DESC LIMIT 1
  ) END,
  v.operation
)
LEFT JOIN body b ON b.number = o.body
WHERE (d.before IS NULL OR d.after IS NULL OR (d.before <> d.after AND NOT e.is_event))
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = d.entity)
ORDER BY d.entity;
