-- What was written? One row.
--
-- Parameters: :number, the number of the body.
-- Columns: data, the JSON, NULL where it was erased or evicted, and its CRC-32.
SELECT b.data, b.checksum FROM body b WHERE b.number = :number;
