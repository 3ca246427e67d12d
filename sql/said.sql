-- What was described by some versions, without those of what was forgotten? One row for each whose content is kept, in order.
--
-- Parameters: :first and :stop, numbers of versions (:stop is none of them); :kind, NULL or the kind of the nodes that are asked for.
-- Columns: number; entity; id; is_event; kind; scope; data, the content, and its CRC-32.
SELECT v.number, v.entity, e.id, e.is_event, e.kind, e.scope, b.data, b.checksum
FROM version v
CROSS JOIN entity e ON e.number = v.entity
CROSS JOIN body b ON b.number = v.body AND b.data IS NOT NULL
WHERE v.number >= :first AND v.number < :stop
  AND (:kind IS NULL OR (e.kind = :kind AND NOT e.is_event))
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity)
ORDER BY v.number;
