-- Which versions were forgotten? One row for each.
--
-- Columns: number, of the version.
SELECT v.number FROM forgotten f CROSS JOIN version v ON v.entity = f.entity;
