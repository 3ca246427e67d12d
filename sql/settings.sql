-- What are the settings of the store whose names begin with a text? One row for each time that one was set, in the order in which they were recorded.
--
-- Parameters: :first, the text; :last, the first text after all names that begin so.
-- Columns: name; value, as JSON.
SELECT name, value FROM setting WHERE name >= :first AND name < :last ORDER BY number;
