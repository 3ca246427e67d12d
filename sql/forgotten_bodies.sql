-- Which bodies of forgotten entities are still there? Those of their versions; what was said of their links before both ends were forgotten, or one was erased; and
-- reasons of operations on them and on those links, where no operation on something else has the same body. One row for each body.
--
-- Parameters: :numbers, of the entities, a JSON array.
-- Columns: number, of the body.
WITH
wanted (entity) AS MATERIALIZED (SELECT value FROM json_each(:numbers)),
fate (number, id, source, target, until) AS NOT MATERIALIZED (  -- until: the operation before which what was said of a link is forgotten
  SELECT
    l.number, l.id, l.source, l.target,
    (
      SELECT CASE WHEN count(*) = 2 OR max(f.word) = 'erased' THEN max(f.operation) ELSE -1 END
      FROM forgotten f WHERE f.entity IN (l.source, l.target)
    )
  FROM link l
),
touched (entity, number, id, until) AS MATERIALIZED (
  SELECT wanted.entity, fate.number, fate.id, fate.until
  FROM wanted
  CROSS JOIN fate ON fate.source = wanted.entity OR fate.target = wanted.entity
),
claimed (entity, body, is_gone) AS MATERIALIZED (
  SELECT
    touched.entity,
    c.body,
    coalesce((SELECT p.opened_by FROM link_period p WHERE p.link = c.link AND p.claim = c.number ORDER BY p.number LIMIT 1), -1) < touched.until
  FROM touched
  CROSS JOIN claim c ON c.link = touched.number
  WHERE c.body IS NOT NULL
),
chosen (entity, number) AS MATERIALIZED (
  SELECT wanted.entity, o.number FROM wanted CROSS JOIN entity e ON e.number = wanted.entity CROSS JOIN operation o ON o.subject = e.id
  UNION
  SELECT touched.entity, o.number FROM touched CROSS JOIN operation o ON o.subject = touched.id
  UNION
  SELECT touched.entity, p.opened_by FROM touched CROSS JOIN link_period p ON p.link = touched.number AND p.opened_by < touched.until
),
gone (number, tx, body) AS NOT MATERIALIZED (  -- operations whose reason goes, unless something else has it
  SELECT o.number, o.tx, o.body
  FROM operation o
  WHERE o.verb NOT IN ('erase', 'branch', 'merge', 'pull', 'delete_branch', 'define_kind', 'define_point', 'promote_kind', 'set_retention', 'snapshot')
    AND (
      EXISTS (
        SELECT 1 FROM entity e CROSS JOIN forgotten f ON f.entity = e.number
        WHERE o.verb NOT IN ('link', 'unlink', 'resolve', 'decide_link') AND e.id = o.subject AND f.operation > o.number
      )
      OR EXISTS (
        SELECT 1 FROM fate
        WHERE o.verb IN ('link', 'unlink', 'resolve', 'decide_link') AND fate.id = o.subject AND o.number < fate.until
      )
      OR EXISTS (  -- it has the reason of the link that it made, in a large transaction in a copy of its own
        SELECT 1 FROM link_period p CROSS JOIN claim c CROSS JOIN body b CROSS JOIN body d CROSS JOIN fate
        WHERE o.verb IN ('link', 'supersede')
          AND p.link IN (
            SELECT n.number FROM link n WHERE o.verb = 'link' AND n.id = o.subject
            UNION ALL
            SELECT n.number FROM entity e CROSS JOIN link n ON n.target = e.number AND n.kind = 'supersedes'
            WHERE o.verb = 'supersede' AND e.id = o.subject
          )
          AND p.opened_by = o.number AND c.number = p.claim AND b.number = o.body AND d.number = c.body AND length(b.data) = length(d.data)
          AND fate.number = p.link AND o.number < fate.until
      )
    )
),
reason (tx, body) AS MATERIALIZED (
  SELECT DISTINCT o.tx, o.body
  FROM chosen
  CROSS JOIN gone o ON o.number = chosen.number
  WHERE o.body IS NOT NULL
    AND (chosen.entity, o.body) NOT IN (SELECT claimed.entity, claimed.body FROM claimed WHERE NOT claimed.is_gone)
),
instant (tx) AS MATERIALIZED (SELECT DISTINCT reason.tx FROM reason),
kept (tx, body) AS MATERIALIZED (  -- reasons that something else has
  SELECT k.tx, k.body
  FROM instant
  CROSS JOIN operation k ON k.tx = instant.tx
  WHERE (k.tx, k.body) IN (SELECT reason.tx, reason.body FROM reason)
    AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.number = k.number)
),
found (body) AS (
  SELECT v.body FROM wanted CROSS JOIN version v ON v.entity = wanted.entity
  UNION
  SELECT claimed.body FROM claimed WHERE claimed.is_gone
  UNION
  SELECT reason.body FROM reason WHERE (reason.tx, reason.body) NOT IN (SELECT kept.tx, kept.body FROM kept)
)
SELECT b.number
FROM found
CROSS JOIN body b ON b.number = found.body
WHERE b.data IS NOT NULL
ORDER BY b.number;
