-- Which periods of nodes hold at a coordinate, and what are they of? One row for each, in the order in which the nodes were first known.
--
-- Parameters: :valid and :tx, the coordinate, in microseconds since 1970-01-01 UTC.
-- Columns: entity, the number of the node; id; kind; key; scope; born, since when it is known; period, its number; version, its number; ordinal, of the version; body, and its
-- length in bytes (0: it was removed); operation, that recorded the version first (-1: it is not known); opened_by; valid_from and valid_to; tx_from and tx_to.
SELECT
  e.number AS entity, e.id, e.kind, e.key, e.scope, e.tx_from AS born, p.number AS period, v.number AS version, v.ordinal, v.body, coalesce(length(b.data), 0) AS length,
  coalesce(v.operation, -1) AS operation, p.opened_by, p.valid_from, p.valid_to, p.tx_from, p.tx_to
FROM period p
CROSS JOIN entity e ON e.number = p.entity AND NOT e.is_event
CROSS JOIN version v ON v.number = p.version
LEFT JOIN body b ON b.number = v.body
WHERE p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx
  AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.entity = p.entity)
ORDER BY p.entity;
