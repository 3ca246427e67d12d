-- Which terms have some versions that are not sealed? One row for each, in order.
--
-- Parameters: :first and :stop, numbers of versions (:stop is none of them).
-- Columns: version, terms.
SELECT version, terms FROM fresh WHERE version >= :first AND version < :stop ORDER BY version;
