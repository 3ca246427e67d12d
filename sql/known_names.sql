-- Which keys, and then which tags, do the nodes have that are known? One row for each, in the order in which they were first known. It reads all of them.
--
-- Parameters: :tx, in microseconds since 1970-01-01 UTC.
-- Columns: is_tag; first, the number of the first node or version that has it; name.
SELECT 0 AS is_tag, min(e.number) AS first, e.key AS name
FROM entity e
WHERE e.key IS NOT NULL AND e.tx_from <= :tx
GROUP BY e.key
UNION ALL
SELECT 1, min(t.version), t.tag
FROM tag t
CROSS JOIN version v ON v.number = t.version
WHERE EXISTS (SELECT 1 FROM period p WHERE p.entity = v.entity AND p.version = t.version AND p.tx_from <= :tx)
GROUP BY t.tag
ORDER BY is_tag, first;
