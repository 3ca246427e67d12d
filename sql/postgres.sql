-- What a ledger in PostgreSQL has beside sql/schema.sql: functions of SQLite that PostgreSQL lacks, and the last transaction that is on its disk.
-- In texts U+0000, which PostgreSQL refuses, is written as two U+0001, and U+0001 as U+0001 U+0002.

-- The same in JSON, where they are escaped.
CREATE FUNCTION json_safe(given TEXT) RETURNS JSON LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN strpos(given, '\u000') = 0 THEN given ELSE
    regexp_replace(regexp_replace(given, '(?<!\\)((?:\\\\)*)\\u0001', '\1\\u0001\\u0002', 'g'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u0001\\u0001', 'g')
  END::json
$$;

-- The elements of a JSON list of numbers, of texts, or of lists, and the pairs of a JSON object of texts.
CREATE FUNCTION json_numbers(given TEXT) RETURNS TABLE (key BIGINT, value BIGINT) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT n - 1, v::bigint FROM json_array_elements_text(given::json) WITH ORDINALITY AS e (v, n)
$$;

CREATE FUNCTION json_texts(given TEXT) RETURNS TABLE (key BIGINT, value TEXT) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT n - 1, v FROM json_array_elements_text(json_safe(given)) WITH ORDINALITY AS e (v, n)
$$;

CREATE FUNCTION json_lists(given TEXT) RETURNS TABLE (key BIGINT, value JSON) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT n - 1, v FROM json_array_elements(json_safe(given)) WITH ORDINALITY AS e (v, n)
$$;

CREATE FUNCTION json_pairs(given TEXT) RETURNS TABLE (key TEXT, value TEXT) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT k, v FROM json_each_text(json_safe(given)) AS e (k, v)
$$;

-- A part of a JSON object by a path such as $.name or $."name".
CREATE FUNCTION json_part(given TEXT, path TEXT) RETURNS JSON LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT json_safe(given) #> string_to_array(replace(substr(path, 3), '"', ''), '.')
$$;

CREATE FUNCTION json_extract_of(given TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT json_part(given, path) #>> '{}'
$$;

CREATE FUNCTION json_list_of(given TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN json_typeof(json_part(given, path)) = 'array' THEN json_part(given, path)::text END
$$;

CREATE FUNCTION json_type_of(given TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE json_typeof(json_part(given, path)) WHEN 'string' THEN 'text' ELSE json_typeof(json_part(given, path)) END
$$;

-- What a snapshot shows: it changes whenever somebody commits. And the clock of the server, in microseconds since 1970.
CREATE FUNCTION seen_snapshot() RETURNS TEXT LANGUAGE sql STABLE AS $$ SELECT pg_current_snapshot()::text $$;

CREATE FUNCTION now_microseconds() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The last of these transactions, and all before it, are on the disk of the server: a reader sees none that is later. A writer adds its own after its commit.
CREATE TABLE flushed (tx BIGINT NOT NULL);
CREATE UNIQUE INDEX flushed_tx ON flushed (tx NULLS FIRST);

-- The same to be read by people.
CREATE VIEW transactions AS
SELECT number, to_timestamp(tx / 1000000.0) AS recorded_at, part, convert_from(head, 'UTF8') AS head FROM chain;

CREATE VIEW contents AS
SELECT number, convert_from(data, 'UTF8') AS data FROM body;
