-- Which links of some kinds hold at a coordinate? One row for each, in the order in which they were made. It reads all links.
--
-- Parameters: :kinds, a JSON array of the kinds; :valid and :tx, the coordinate.
-- Columns: number; id; kind; source and target, the numbers of its ends.
SELECT l.number, l.id, l.kind, l.source, l.target
FROM link l
WHERE l.kind IN (SELECT value FROM json_each(:kinds))
  AND EXISTS (
    SELECT 1 FROM link_period p
    WHERE p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  )
ORDER BY l.number;
