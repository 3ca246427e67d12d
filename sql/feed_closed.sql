-- Which periods of nodes and events, or with :links of links, did some transactions close? One row for each, in the order in which they were closed.
--
-- Parameters: :links, 1 or 0; :since and :until, the instants of the first and of the last transaction.
-- Columns: number, of the period; is_event, whether it is of an event; tx_to; closed_by, an operation.
WITH
found (line, place, number, is_event, tx_to, closed_by) AS (
  SELECT c.number, j.key, p.number, e.is_event, p.tx_to, p.closed_by
  FROM chain c
  CROSS JOIN json_each(CAST(c.head AS TEXT), '$.closed') j
  CROSS JOIN period p ON p.number = json_extract(j.value, '$[0]')
  CROSS JOIN entity e ON e.number = p.entity
  WHERE NOT :links AND c.tx >= :since AND c.tx <= :until AND json_extract(CAST(c.head AS TEXT), '$.branch') IS NULL
  UNION ALL
  SELECT c.number, j.key, p.number, 0, p.tx_to, p.closed_by
  FROM chain c
  CROSS JOIN json_each(CAST(c.head AS TEXT), '$.link_closed') j
  CROSS JOIN link_period p ON p.number = json_extract(j.value, '$[0]')
  WHERE :links AND c.tx >= :since AND c.tx <= :until AND json_extract(CAST(c.head AS TEXT), '$.branch') IS NULL
)
SELECT number, is_event, tx_to, closed_by FROM found ORDER BY line, place;
