-- The views of `../as_of.sql` in the words of Spark 4.1 or newer, over the views of `../lake.sql`: the same names, columns and answers.

CREATE OR REPLACE TEMPORARY FUNCTION node_as_of(at_valid TIMESTAMP, at_tx TIMESTAMP) RETURNS TABLE RETURN
  SELECT n.id, n.kind, n.key, n.scope, v.ref, v.number, v.content, v.text, v.tags, v.trigger, v.source, v.author, v.told, v.told_by,
    v.remainder, v.valid_from, v.valid_to, v.tx_from, v.tx_to, v.opened_by, v.closed_by
  FROM versions v JOIN nodes n ON n.id = v.node_id
  WHERE v.valid_from <= at_valid AND (v.valid_to IS NULL OR at_valid < v.valid_to)
    AND v.tx_from <= at_tx AND (v.tx_to IS NULL OR at_tx < v.tx_to);

CREATE OR REPLACE TEMPORARY FUNCTION link_as_of(at_valid TIMESTAMP, at_tx TIMESTAMP) RETURNS TABLE RETURN
  SELECT l.*
  FROM links l
  WHERE l.valid_from <= at_valid AND (l.valid_to IS NULL OR at_valid < l.valid_to)
    AND l.tx_from <= at_tx AND (l.tx_to IS NULL OR at_tx < l.tx_to);

CREATE OR REPLACE TEMPORARY FUNCTION event_as_of(at_valid TIMESTAMP, at_tx TIMESTAMP) RETURNS TABLE RETURN
  SELECT e.*
  FROM events e
  WHERE e.occurred_at <= at_valid
    AND e.tx_from <= at_tx AND (e.tx_to IS NULL OR at_tx < e.tx_to);

-- No recursion over a function's rows in a function: the chain is followed for the one id that is asked for.
CREATE OR REPLACE TEMPORARY FUNCTION succession_as_of(of_id STRING, at_valid TIMESTAMP, at_tx TIMESTAMP) RETURNS TABLE RETURN
  WITH RECURSIVE steps (old, new, reason, author, valid_from, tx_from, step) AS (
    SELECT target, source, reason, author, valid_from, tx_from, 1
    FROM links
    WHERE kind = 'supersedes' AND target = of_id
      AND valid_from <= at_valid AND (valid_to IS NULL OR at_valid < valid_to) AND tx_from <= at_tx AND (tx_to IS NULL OR at_tx < tx_to)
    UNION ALL
    SELECT l.target, l.source, l.reason, l.author, l.valid_from, l.tx_from, s.step + 1
    FROM steps s JOIN links l ON l.kind = 'supersedes' AND l.target = s.new
    WHERE l.valid_from <= at_valid AND (l.valid_to IS NULL OR at_valid < l.valid_to) AND l.tx_from <= at_tx AND (l.tx_to IS NULL OR at_tx < l.tx_to)
  )
  SELECT DISTINCT * FROM steps ORDER BY step, valid_from, new;

CREATE OR REPLACE TEMPORARY FUNCTION node_diff(valid_a TIMESTAMP, tx_a TIMESTAMP, valid_b TIMESTAMP, tx_b TIMESTAMP) RETURNS TABLE RETURN
  SELECT coalesce(a.id, b.id) AS id, coalesce(a.kind, b.kind) AS kind,
    CASE WHEN a.id IS NULL THEN 'added' WHEN b.id IS NULL THEN 'removed' ELSE 'changed' END AS change,
    a.content AS before, b.content AS after, a.text AS text_before, b.text AS text_after
  FROM node_as_of(valid_a, tx_a) a FULL JOIN node_as_of(valid_b, tx_b) b ON a.id = b.id
  WHERE a.id IS NULL OR b.id IS NULL OR a.ref <> b.ref;
