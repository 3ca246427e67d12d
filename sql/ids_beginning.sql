-- Which ids that the store may have made begin so? At most 100, in their order. Only what was known at :tx.
--
-- Parameters: :beginning, the beginning of a generated id, which has no character after f; :after, the id to go on after, '' at first; :tx, in microseconds since 1970-01-01 UTC.
-- Columns: id, of a link where the beginning is that of one (lnk_), else of a node or event.
SELECT e.id FROM entity e
WHERE substr(:beginning, 1, 4) <> 'lnk_' AND e.id > max(:beginning, :after) AND e.id < :beginning || 'g' AND e.tx_from <= :tx
UNION ALL
SELECT l.id FROM link l
WHERE substr(:beginning, 1, 4) = 'lnk_' AND l.id > max(:beginning, :after) AND l.id < :beginning || 'g'
  AND EXISTS (SELECT 1 FROM link_period p WHERE p.link = l.number AND p.tx_from <= :tx)
ORDER BY 1
LIMIT 100;
