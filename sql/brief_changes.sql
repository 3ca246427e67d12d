-- Which nodes and events were written after one instant, as known at :tx? One row for each, with the last operation on it, the last first.
--
-- Parameters: :after and :tx, in microseconds since 1970-01-01 UTC; :without, a JSON array of kinds that are left out; :scope, a path: only what is in this
-- scope or below (NULL: everything); :window, how many of the last operations are looked at; :most, how many rows at most.
-- Columns: id; operation; tx; verb, superseded or corrected for what a link replaced, and undo for what an undone transaction wrote; found, how many rows there are without :most.
WITH
recent (operation, tx, verb, subject) AS (
  SELECT o.number, o.tx, o.verb, o.subject
  FROM operation o
  WHERE o.tx > :after AND o.tx <= :tx
  ORDER BY o.tx DESC, o.number DESC
  LIMIT coalesce(:window, -1)
),
written (entity, operation, tx, verb) AS (
  SELECT e.number, recent.operation, recent.tx, recent.verb FROM recent CROSS JOIN entity e ON e.id = recent.subject
  UNION ALL
  SELECT l.target, recent.operation, recent.tx, CASE l.kind WHEN 'corrects' THEN 'corrected' ELSE 'superseded' END
  FROM recent
  CROSS JOIN claim c ON c.operation = recent.operation
  CROSS JOIN link l ON l.number = c.link AND l.kind IN ('supersedes', 'corrects')
  UNION ALL
  SELECT e.number, recent.operation, recent.tx, recent.verb
  FROM recent
  CROSS JOIN undone u ON u.operation = recent.operation
  CROSS JOIN operation o ON o.tx = u.tx
  CROSS JOIN entity e ON e.id = o.subject
  WHERE recent.verb = 'undo'
),
last (entity, operation, tx, verb) AS (
  SELECT entity, max(operation), tx, verb FROM written GROUP BY entity
)
SELECT e.id, last.operation, last.tx, last.verb, count(*) OVER () AS found
FROM last
CROSS JOIN entity e ON e.number = last.entity
WHERE e.kind NOT IN (SELECT value FROM json_each(:without))
  AND (
    :scope IS NULL
    OR CASE WHEN e.is_event THEN (SELECT s.scope FROM all_event_scope s WHERE s.entity = e.number) ELSE e.scope END || '/' BETWEEN :scope || '/' AND :scope || '/' || char(1114111)
  )
ORDER BY last.operation DESC
LIMIT coalesce(:most, -1);
