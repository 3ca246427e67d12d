-- Which messages hold at a coordinate and had happened by it? At most so many, the latest first, then by id from the last one on. All filters that are not NULL must
-- hold.
--
-- Parameters: :valid and :tx, the coordinate; :since, the instant before which none happened; :last and :id, the place in this order that all are after; :by, the filter
-- to search by: sender, thread, trace, among, or at (none of these); :sender, :thread, :trace, :type and :classification, each a text or NULL; :authorized, 1, 0 or NULL;
-- :among, a JSON array of numbers of entities or NULL; :most, how many (NULL: all).
-- Columns: number, of the period; entity; at; id; type; sender; thread.
WITH said AS NOT MATERIALIZED (
  SELECT p.number, m.entity, m.at, e.id, e.kind AS type, m.sender, m.thread, m.trace, m.authorized
  FROM message m
  CROSS JOIN period p ON p.number = m.period AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  CROSS JOIN entity e ON e.number = m.entity
  WHERE m.authorized IS NOT NULL AND m.at >= :since AND m.at <= :last AND (m.at < :last OR e.id < :id)
    AND (:sender IS NULL OR m.sender = :sender)
    AND (:thread IS NULL OR m.thread = :thread)
    AND (:trace IS NULL OR m.trace = :trace)
    AND (:type IS NULL OR e.kind = :type)
    AND (:classification IS NULL OR m.classification = :classification)
    AND (:authorized IS NULL OR m.authorized = :authorized)
)
SELECT number, entity, at, id, type, sender, thread FROM said WHERE :by = 'sender' AND sender = :sender
UNION ALL
SELECT number, entity, at, id, type, sender, thread FROM said WHERE :by = 'thread' AND thread = :thread
UNION ALL
SELECT number, entity, at, id, type, sender, thread FROM said WHERE :by = 'trace' AND trace = :trace
UNION ALL
SELECT number, entity, at, id, type, sender, thread FROM said WHERE :by = 'at' AND authorized IS NOT NULL
UNION ALL
SELECT s.number, s.entity, s.at, s.id, s.type, s.sender, s.thread
FROM json_each(:among) j
CROSS JOIN period q ON q.entity = j.value
CROSS JOIN said s ON s.number = q.number
WHERE :by = 'among'
ORDER BY at DESC, id DESC
LIMIT coalesce(:most, -1);
