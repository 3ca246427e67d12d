-- Which kinds of link has the store defined? One row for each, in the order in which they were defined.
--
-- Columns: name.
SELECT json_extract(kind, '$.name') AS name FROM defined WHERE json_extract(kind, '$.name') IS NOT NULL ORDER BY number;
