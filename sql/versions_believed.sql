-- Which versions do the periods name, from one on? One row.
--
-- Parameters: :first, the number of the first period.
-- Columns: numbers, a JSON array in the order of the periods.
WITH found (version) AS (SELECT version FROM period WHERE number >= :first AND number < (SELECT period FROM next_number) ORDER BY number)
SELECT json_group_array(version) AS numbers FROM found;
