-- Which links hold at some instant of a span, as believed at some tx of another, and what do they join? One row with JSON arrays, which have one item for each period of
-- a link, in the order in which it was recorded.
--
-- Parameters: :valid_from, :valid_to, :tx_from and :tx_to, as of held.sql.
-- Columns: periods, their numbers; kinds; sources and targets, the numbers of the entities; valid_from, valid_to, tx_from and tx_to.
WITH
held (period, kind, source, target, valid_from, valid_to, tx_from, tx_to) AS (
  SELECT p.number, l.kind, l.source, l.target, p.valid_from, p.valid_to, p.tx_from, p.tx_to
  FROM link_period p
  CROSS JOIN link l ON l.number = p.link
  WHERE p.valid_from < :valid_to AND p.valid_to > :valid_from AND p.tx_from < :tx_to AND p.tx_to > :tx_from
  ORDER BY p.number
)
SELECT
  json_group_array(held.period) AS periods, json_group_array(held.kind) AS kinds, json_group_array(held.source) AS sources, json_group_array(held.target) AS targets,
  json_group_array(held.valid_from) AS valid_from, json_group_array(held.valid_to) AS valid_to, json_group_array(held.tx_from) AS tx_from,
  json_group_array(held.tx_to) AS tx_to
FROM held;
