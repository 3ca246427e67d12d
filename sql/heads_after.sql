-- What did the transactions between two rows of the chain change? One row for each line.
--
-- Parameters: :line, the number of the row before the first line; :last, that of the last line.
-- Columns: number; head and its digest.
SELECT number, head, digest FROM chain WHERE number > :line AND number <= :last ORDER BY number;
