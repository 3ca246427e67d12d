-- What may be evicted? Events, and nodes of some kinds that have ended; one row for each, what happened or changed longest ago first.
--
-- Parameters: :kinds, a JSON array of kinds and types, or NULL: all events and no nodes; :ended, the instant by which a node has ended; :before, an instant before which an event
-- happened last and a node changed last, or NULL; :words, a JSON array of how they were forgotten before ('' where they were not); :undone, a JSON array of the
-- transactions that are taken back ('[]' where table undone is empty).
-- Columns: number, of the entity; id; kind; last, when it happened or changed last; forgotten_by, the operation that forgot it.
WITH
chosen (number) AS (
  SELECT e.number FROM entity e WHERE :kinds IS NULL AND e.is_event
  UNION ALL
  SELECT e.number
  FROM (SELECT DISTINCT value FROM json_each(:kinds)) k
  CROSS JOIN entity e ON e.kind = k.value
  WHERE e.is_event OR NOT EXISTS (SELECT 1 FROM period p WHERE p.entity = e.number AND p.closed_by IS NULL AND p.valid_to > :ended)
),
found (number, id, kind, last, forgotten_by) AS MATERIALIZED (
  SELECT
    e.number, e.id, e.kind,
    CASE WHEN e.is_event THEN (
      SELECT max(first, coalesce((
        SELECT max(h.occurred_at) FROM occurrence h WHERE h.event = e.number AND h.tx NOT IN (SELECT value FROM json_each(:undone))
      ), first))
      FROM (SELECT coalesce((SELECT p.valid_from FROM period p WHERE p.entity = e.number ORDER BY p.number LIMIT 1), e.tx_from) AS first)
    ) ELSE coalesce((
      SELECT max(CASE WHEN p.closed_by IS NULL THEN p.tx_from ELSE p.tx_to END) FROM period p WHERE p.entity = e.number
    ), e.tx_from) END,
    f.operation
  FROM chosen
  CROSS JOIN entity e ON e.number = chosen.number
  LEFT JOIN forgotten f ON f.entity = e.number
  WHERE coalesce(f.word, '') IN (SELECT value FROM json_each(:words))
)
SELECT number, id, kind, last, forgotten_by
FROM found
WHERE :before IS NULL OR last < :before
ORDER BY last, number;
