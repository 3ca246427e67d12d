-- Which terms have the versions from one on that are not sealed? One row for each, in order.
--
-- Parameters: :first, the number of a version.
-- Columns: version, terms.
SELECT version, terms FROM fresh WHERE version >= :first ORDER BY version;
