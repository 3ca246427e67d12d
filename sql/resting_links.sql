-- Which links that hold at a coordinate may make some things rest on others? One row for each link, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of the entities; :leaning and :upholding, JSON arrays of the kinds of link by which the source rests on the
-- target, and the target on the source; :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: number, of the link; kind; source and target, numbers of entities; base, the one of them on which the other rests.
SELECT l.number, l.kind, l.source, l.target, l.target AS base
FROM json_each(:numbers) j
CROSS JOIN link l ON l.source = j.value AND l.kind IN (SELECT value FROM json_each(:leaning))
WHERE EXISTS (
  SELECT 1 FROM link_period p
  WHERE p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
)
UNION ALL
SELECT l.number, l.kind, l.source, l.target, l.source AS base
FROM json_each(:numbers) j
CROSS JOIN link l ON l.target = j.value AND l.kind IN (SELECT value FROM json_each(:upholding))
WHERE EXISTS (
  SELECT 1 FROM link_period p
  WHERE p.link = l.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
);
