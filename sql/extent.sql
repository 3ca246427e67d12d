-- What is there to be read of a thing? One row, or none where no thing has the id.
--
-- Parameters: :id; :most, so many rows are few.
-- Columns: has_many, 1 where more periods, links on one side, or times an event happened again are there; size, the bytes of its contents and of what is said of its links (0
-- where there are so many).
WITH counted (number, has_many) AS (
  SELECT
    e.number,
    (SELECT 1 FROM period p WHERE p.entity = e.number LIMIT 1 OFFSET :most) IS NOT NULL
    OR (SELECT 1 FROM link l WHERE l.source = e.number LIMIT 1 OFFSET :most) IS NOT NULL
    OR (SELECT 1 FROM link l WHERE l.target = e.number LIMIT 1 OFFSET :most) IS NOT NULL
    OR (SELECT 1 FROM occurrence h WHERE h.event = e.number LIMIT 1 OFFSET :most) IS NOT NULL
  FROM entity e
  WHERE e.id = :id
)
SELECT
  counted.has_many,
  CASE WHEN counted.has_many THEN 0 ELSE
    (SELECT coalesce(sum(length(b.data)), 0) FROM version v CROSS JOIN body b ON b.number = v.body WHERE v.entity = counted.number)
    + (SELECT coalesce(sum(length(b.data)), 0) FROM link l CROSS JOIN claim c ON c.link = l.number CROSS JOIN body b ON b.number = c.body WHERE l.source = counted.number)
    + (SELECT coalesce(sum(length(b.data)), 0) FROM link l CROSS JOIN claim c ON c.link = l.number CROSS JOIN body b ON b.number = c.body WHERE l.target = counted.number)
  END AS size
FROM counted;
