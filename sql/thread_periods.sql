-- When did some messages happen that are believed and had happened by a coordinate? One row for each, in no order.
--
-- Parameters: :numbers, a JSON array of the numbers of versions; :valid and :tx, the coordinate.
-- Columns: number, of the period; entity; version; valid_from.
SELECT p.number, p.entity, p.version, p.valid_from
FROM json_each(:numbers) j
CROSS JOIN version v ON v.number = j.value
CROSS JOIN period p
  ON p.entity = v.entity AND p.version = v.number AND p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
WHERE NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = v.entity);
