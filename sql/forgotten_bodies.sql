-- Which bodies of a forgotten entity are still there? Those of its versions; what was said of its links before both ends were forgotten, or one was erased; and reasons
-- of operations on it and on those links, where no operation on something else has the same body. One row for each body.
--
-- Parameters: :number, of the entity.
-- Columns: number, of the body.
WITH
fate (number, id, source, target, until) AS NOT MATERIALIZED (  -- until: the operation before which what was said of a link is forgotten
  SELECT
    l.number, l.id, l.source, l.target,
    (
      SELECT CASE WHEN count(*) = 2 OR max(f.word) = 'erased' THEN max(f.operation) ELSE -1 END
      FROM forgotten f WHERE f.entity IN (l.source, l.target)
    )
  FROM link l
),
touched (number, id, until) AS MATERIALIZED (
  SELECT fate.number, fate.id, fate.until FROM fate WHERE fate.source = :number OR fate.target = :number
),
claimed (body, is_gone) AS MATERIALIZED (
  SELECT
    c.body,
    coalesce((SELECT p.opened_by FROM link_period p WHERE p.link = c.link AND p.claim = c.number ORDER BY p.number LIMIT 1), -1) < touched.until
  FROM touched
  CROSS JOIN claim c ON c.link = touched.number
  WHERE c.body IS NOT NULL
),
chosen (number) AS MATERIALIZED (
  SELECT o.number FROM entity e CROSS JOIN operation o ON o.subject = e.id WHERE e.number = :number
  UNION
  SELECT o.number FROM touched CROSS JOIN operation o ON o.subject = touched.id
  UNION
  SELECT p.opened_by FROM touched CROSS JOIN link_period p ON p.link = touched.number AND p.opened_by < touched.until
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
found (body) AS (
  SELECT v.body FROM version v WHERE v.entity = :number
  UNION
  SELECT claimed.body FROM claimed WHERE claimed.is_gone
  UNION
  SELECT o.body
  FROM chosen
  CROSS JOIN gone o ON o.number = chosen.number
  WHERE o.body NOT IN (SELECT claimed.body FROM claimed WHERE NOT claimed.is_gone)
    AND NOT EXISTS (
      SELECT 1 FROM operation k
      WHERE k.tx = o.tx AND k.body = o.body AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.number = k.number)
    )
)
SELECT b.number
FROM found
CROSS JOIN body b ON b.number = found.body
WHERE b.data IS NOT NULL
ORDER BY b.number;
