-- The history of a store as DuckDB asks it. The tables are those of an export to Parquet: nodes, versions, events, occurrences, links and operations, with
-- both periods as columns; an open end is NULL. An instant `at_valid` or `at_tx` may be a text, such as '2026-01-30'; NULL is none and finds nothing, now() is now.

-- What was true then, as believed then: one row a node.
CREATE MACRO node_as_of(at_valid, at_tx) AS TABLE
  SELECT n.id, n.kind, n.key, n.scope, v.* EXCLUDE (node_id)
  FROM versions v JOIN nodes n ON n.id = v.node_id
  WHERE v.valid_from <= at_valid::TIMESTAMPTZ AND (v.valid_to IS NULL OR at_valid::TIMESTAMPTZ < v.valid_to)
    AND v.tx_from <= at_tx::TIMESTAMPTZ AND (v.tx_to IS NULL OR at_tx::TIMESTAMPTZ < v.tx_to);

-- The links that held then, as believed then.
CREATE MACRO link_as_of(at_valid, at_tx) AS TABLE
  SELECT l.*
  FROM links l
  WHERE l.valid_from <= at_valid::TIMESTAMPTZ AND (l.valid_to IS NULL OR at_valid::TIMESTAMPTZ < l.valid_to)
    AND l.tx_from <= at_tx::TIMESTAMPTZ AND (l.tx_to IS NULL OR at_tx::TIMESTAMPTZ < l.tx_to);

-- What had happened by then, as believed then.
CREATE MACRO event_as_of(at_valid, at_tx) AS TABLE
  SELECT e.*
  FROM events e
  WHERE e.occurred_at <= at_valid::TIMESTAMPTZ
    AND e.tx_from <= at_tx::TIMESTAMPTZ AND (e.tx_to IS NULL OR at_tx::TIMESTAMPTZ < e.tx_to);

-- What took the place of a thing by then, step by step: the id, what superseded it, why, and after how many steps.
CREATE MACRO succession_as_of(of_id, at_valid, at_tx) AS TABLE
  WITH RECURSIVE steps AS (
    SELECT target AS old, source AS new, reason, author, valid_from, tx_from, 1 AS step
    FROM link_as_of(at_valid, at_tx) WHERE kind = 'supersedes' AND target = of_id
    UNION
    SELECT l.target, l.source, l.reason, l.author, l.valid_from, l.tx_from, s.step + 1
    FROM steps s JOIN link_as_of(at_valid, at_tx) l ON l.kind = 'supersedes' AND l.target = s.new
  )
  SELECT * FROM steps ORDER BY step, valid_from, new;

-- What two coordinates say otherwise: a row for each node that only one has, or that both describe differently.
CREATE MACRO node_diff(valid_a, tx_a, valid_b, tx_b) AS TABLE
  SELECT coalesce(a.id, b.id) AS id, coalesce(a.kind, b.kind) AS kind,
    CASE WHEN a.id IS NULL THEN 'added' WHEN b.id IS NULL THEN 'removed' ELSE 'changed' END AS change,
    a.content AS before, b.content AS after, a.text AS text_before, b.text AS text_after
  FROM node_as_of(valid_a, tx_a) a FULL JOIN node_as_of(valid_b, tx_b) b ON a.id = b.id
  WHERE a.id IS NULL OR b.id IS NULL OR a.ref <> b.ref;
