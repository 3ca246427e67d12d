-- Which branches are there, deleted ones too? One row for each, in the order in which they were made.
--
-- Columns: number; parent, the number of the branch that it began from (0: the trunk); fork, it began with what its parent knew at that instant; marks, as JSON: of each
-- table the n of its own first row.
SELECT number, parent, fork, marks FROM line ORDER BY number;
