-- Which links hold at one of two coordinates and not at the other? One row for each, in the order in which they were made.
--
-- Parameters: :valid and :tx, the one coordinate, :other_valid and :other_tx, the other, in microseconds since 1970-01-01 UTC.
-- Columns: before and after, the number of the period that holds at the one and at the other; one of them is NULL.
WITH
held (link, period, is_before, is_after) AS (
  SELECT
    p.link, p.number,
    p.valid_from <= :valid AND p.valid_to > :valid AND p.tx_from <= :tx AND p.tx_to > :tx,
    p.valid_from <= :other_valid AND p.valid_to > :other_valid AND p.tx_from <= :other_tx AND p.tx_to > :other_tx
  FROM link_period p
),
moved (link, period, is_before) AS MATERIALIZED (
  SELECT held.link, held.period, held.is_before FROM held WHERE held.is_before <> held.is_after
),
differing (link, before, after) AS (
  SELECT moved.link, max(CASE WHEN moved.is_before THEN moved.period END), max(CASE WHEN NOT moved.is_before THEN moved.period END)
  FROM moved
  GROUP BY moved.link
)
SELECT d.before, d.after
FROM differing d
WHERE d.before IS NULL OR d.after IS NULL
ORDER BY d.link;
