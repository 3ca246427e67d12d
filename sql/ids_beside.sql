-- Which ids lie beside a text in their order? Those that a misspelt id may mean: of at most 200 ids all, else the 100 before it and the 100 from it on.
--
-- Parameters: :id, the text; :tx, in microseconds since 1970-01-01 UTC: only what was known by then.
-- Columns: id.
WITH
some (number) AS (SELECT number FROM entity WHERE number >= 0 LIMIT 201),
count (entities) AS (SELECT count(*) FROM some),
few (number) AS (SELECT number FROM entity WHERE number < (SELECT entity FROM next_number) AND (SELECT entities FROM count) <= 200),
before (number) AS (
  SELECT number FROM entity WHERE id < :id AND (SELECT entities FROM count) > 200 ORDER BY id DESC LIMIT 100
),
after (number) AS (
  SELECT number FROM entity WHERE id >= :id AND (SELECT entities FROM count) > 200 ORDER BY id LIMIT 100
),
beside (place, number) AS (
  SELECT 0, number FROM few UNION ALL SELECT 1, number FROM before UNION ALL SELECT 1, number FROM after
)
SELECT e.id
FROM beside
CROSS JOIN entity e ON e.number = beside.number
WHERE e.tx_from <= :tx
ORDER BY CASE WHEN place = 0 THEN e.number END, CASE WHEN place = 1 THEN e.id END;
