-- Which links of some kinds were ever made? One row for each, in the order in which they were made. It reads all links.
--
-- Parameters: :kinds, a JSON array of the kinds.
-- Columns: number; id; kind; source and target, the numbers of its ends.
SELECT l.number, l.id, l.kind, l.source, l.target
FROM link l
WHERE l.kind IN (SELECT value FROM json_each(:kinds))
ORDER BY l.number;
