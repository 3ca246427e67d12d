-- Which periods of nodes and events, or with :links of links, were closed? One row for each, in the order of the transactions that closed them, then by number.
--
-- Parameters: :links, 1 or 0; :passed and :most, how many of the first ones are left out (NULL: none), and how many are wanted (NULL: all).
-- Columns: number, of the period; is_event, whether it is of an event (NULL: of a link); tx_to; closed_by, an operation.
WITH found (number, entity, tx_to, closed_by) AS (
  SELECT p.number, p.entity, p.tx_to, p.closed_by FROM period p WHERE NOT :links AND p.closed_by IS NOT NULL
  UNION ALL
  SELECT p.number, NULL, p.tx_to, p.closed_by FROM link_period p WHERE :links AND p.closed_by IS NOT NULL
  ORDER BY 3, 1 LIMIT coalesce(:most, -1) OFFSET coalesce(:passed, 0)
)
SELECT f.number, e.is_event, f.tx_to, f.closed_by FROM found f LEFT JOIN entity e ON e.number = f.entity ORDER BY f.tx_to, f.number;
