-- When did some events happen, what resolved them, and when did that happen? As known at :tx. For each event one row for each of its occurrences after the
-- first recorded one (or one row without an occurrence), then the same for each resolved_by link that holds at (:valid, :tx) and begins with it, of the link's target, unless that is an event that was retracted.
--
-- Parameters: :ids, a JSON array of the ids of events; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC; :undone, a JSON array of
-- the transactions that are taken back as known at :tx ('[]' where table undone is empty).
-- Columns: id; link, NULL in the rows of the event itself, else the id of the link; since, when that begins; is_event, whether the thing that the row is of is an event;
-- first_reported, when it happened by its first report; is_believed, whether anything is believed of it; is_superseded, whether a link that supersedes it holds;
-- occurred_at; data, the JSON of the operation that recorded that occurrence (what it says otherwise than the first report is in "own"), and its CRC-32 (-1: it is missing); place and
-- place_checksum: likewise of the operation that evicted the event.
WITH
asked (place, event, id, thing, link, since) AS MATERIALIZED (
  SELECT j.key, e.number, e.id, e.number, NULL, NULL
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value
  UNION ALL
  SELECT j.key, e.number, e.id, l.target, l.number, p.valid_from
  FROM json_each(:ids) j
  CROSS JOIN entity e ON e.id = j.value
  CROSS JOIN link l ON l.source = e.number AND l.kind = 'resolved_by'
  CROSS JOIN link_period p
    ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  CROSS JOIN entity t ON t.number = l.target
  WHERE t.is_event = 0 OR EXISTS (SELECT 1 FROM period p WHERE p.entity = t.number AND p.tx_from <= :tx AND p.tx_to > :tx)
  OR EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = t.number)
)
SELECT
  asked.id, (SELECT l.id FROM link l WHERE l.number = asked.link) AS link, asked.since, t.is_event,
  coalesce((SELECT p.valid_from FROM period p WHERE p.entity = t.number AND p.tx_to > p.tx_from ORDER BY p.number LIMIT 1), t.tx_from) AS first_reported,
  EXISTS (SELECT 1 FROM period p WHERE p.entity = t.number AND p.tx_from <= :tx AND p.tx_to > :tx) AS is_believed,
  EXISTS (
    SELECT 1
    FROM link l
    CROSS JOIN link_period p
      ON p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
    WHERE l.target = t.number AND l.kind = 'supersedes'
  ) AS is_superseded,
  h.occurred_at, b.data, CASE WHEN o.body IS NOT NULL THEN coalesce(b.checksum, -1) END AS checksum, g.data AS place, CASE WHEN r.body IS NOT NULL THEN coalesce(g.checksum, -1) END AS place_checksum
FROM asked
CROSS JOIN entity t ON t.number = asked.thing
LEFT JOIN occurrence h ON h.event = t.number AND h.tx <= :tx AND h.tx NOT IN (SELECT value FROM json_each(:undone))
LEFT JOIN operation o ON o.number = h.operation
LEFT JOIN body b ON b.number = o.body
LEFT JOIN forgotten f ON f.entity = t.number
LEFT JOIN operation r ON r.number = f.operation
LEFT JOIN body g ON g.number = r.body
ORDER BY asked.place, asked.link, h.number;
