-- Which periods of some versions hold at a coordinate? One row for each, in the order in which they were recorded.
--
-- Parameters: :numbers, a JSON array of the numbers of versions; :valid and :tx, the coordinate.
-- Columns: number, of the period; entity.
SELECT p.number, p.entity
FROM json_each(:numbers) j
CROSS JOIN version v ON v.number = j.value
CROSS JOIN period p
  ON p.entity = v.entity AND p.version = v.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
WHERE NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity)
ORDER BY p.number;
