-- Which things may have another version that holds, since some rows were written? One row for each.
--
-- Parameters: :periods and :link_periods, numbers of the first rows written since; :closed and :link_closed, JSON arrays of the numbers of the rows closed since.
-- Columns: number, of the entity.
SELECT p.entity AS number FROM period p WHERE p.number >= :periods AND p.number < (SELECT period FROM next_number)
UNION
SELECT p.entity FROM json_each(:closed) j CROSS JOIN period p ON p.number = j.value
UNION
SELECT l.target
FROM link_period p
CROSS JOIN link l ON l.number = p.link AND l.kind = 'supersedes'
WHERE p.number >= :link_periods AND p.number < (SELECT link_period FROM next_number)
UNION
SELECT l.target
FROM json_each(:link_closed) j
CROSS JOIN link_period p ON p.number = j.value
CROSS JOIN link l ON l.number = p.link AND l.kind = 'supersedes';
