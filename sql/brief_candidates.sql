-- Which nodes were described last, confirmed most often, or are those on which most rests? One row for each, the last described first, then the others.
--
-- Parameters: :without, a JSON array of kinds that are left out; :resting, a JSON array of the kinds of link whose source rests on their target; :scope, a
-- path: only what is in this scope or below (NULL: everything); :tx, in microseconds since 1970-01-01 UTC; :window, how many of the last descriptions and
-- links are looked at; :most, how many rows at most of each sort.
-- Columns: number; id.
WITH
described (number) AS (
  SELECT DISTINCT v.entity
  FROM version v
  CROSS JOIN entity e ON e.number = v.entity
  WHERE v.number >= (SELECT version FROM next_number) - :window AND NOT e.is_event AND e.kind NOT IN (SELECT value FROM json_each(:without))
    AND (:scope IS NULL OR e.scope || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111))
  ORDER BY v.number DESC
  LIMIT coalesce(:most, -1)
),
confirmed (id) AS (
  SELECT o.subject FROM operation o WHERE o.verb = 'confirm' AND o.tx <= :tx GROUP BY o.subject ORDER BY count(*) DESC LIMIT coalesce(:most, -1)
),
ground (number) AS (
  SELECT CASE l.kind WHEN 'supports' THEN l.source ELSE l.target END
  FROM link l
  WHERE l.number >= (SELECT link FROM next_number) - :window AND (l.kind = 'supports' OR l.kind IN (SELECT value FROM json_each(:resting)))
),
grounds (number) AS (
  SELECT number FROM ground GROUP BY number ORDER BY count(*) DESC LIMIT coalesce(:most, -1)
),
found (number) AS (
  SELECT number FROM described
  UNION
  SELECT e.number FROM confirmed CROSS JOIN entity e ON e.id = confirmed.id
  UNION
  SELECT number FROM grounds
)
SELECT e.number, e.id
FROM found
CROSS JOIN entity e ON e.number = found.number
WHERE NOT e.is_event AND e.tx_from <= :tx AND e.kind NOT IN (SELECT value FROM json_each(:without))
  AND (:scope IS NULL OR e.scope || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111))
ORDER BY e.number DESC;
