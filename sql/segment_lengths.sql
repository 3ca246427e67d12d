-- What lengths, in terms, have the sealed versions from one on? One row for each segment that has any of them, in order.
--
-- Parameters: :first, the number of a version.
-- Columns: first, the first version of the segment; lengths.
SELECT first, lengths FROM segment WHERE first > :first - 16384 AND last >= :first ORDER BY first;
