-- Which operation closed a period of a thing, or of a link, last? One row.
--
-- Parameters: :id.
-- Columns: number, of the operation; -1 where none did.
WITH ended (operation) AS (
  SELECT p.closed_by FROM link l CROSS JOIN link_period p ON p.link = l.number WHERE l.id = :id
  UNION ALL
  SELECT p.closed_by FROM entity e CROSS JOIN period p ON p.entity = e.number WHERE e.id = :id
)
SELECT coalesce(max(ended.operation), -1) AS number FROM ended;
