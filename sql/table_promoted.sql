-- Which kinds of link have tables of their own because the store promoted them? One row for each, in the order in which they were promoted.
--
-- Columns: promoted.
SELECT json_extract(d.kind, '$.promoted') AS promoted FROM defined d WHERE json_extract(d.kind, '$.promoted') IS NOT NULL ORDER BY d.number;
