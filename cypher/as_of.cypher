// The temporal filter, written once. Other texts, and those that callers write, use these as if they were functions; they are
// written out when a text is loaded or asked (`graphstore queries --text` and graphstore.graph.texts.text show the result), because the engine's own macros
// cannot hold parameters. $valid and $tx are the coordinate.

// macro: BELIEVED(x)
// What the store believed at $tx.
x.tx_from <= $tx AND $tx < x.tx_to

// macro: AS_OF(x)
// What was true at $valid, as believed at $tx. For scans: plain comparisons are the fastest there.
HELD(x) AND BELIEVED(x)

// macro: HELD(x)
// What was true at $valid, whatever was believed.
x.valid_from <= $valid AND $valid < x.valid_to

// macro: HAPPENED(x)
// What had happened by $valid: an event at its first recorded instant, or an occurrence.
x.occurred_at <= $valid

// macro: HOP_AS_OF(x)
// The same for traversals. The planner guesses that each comparison keeps a tenth of the rows and would rather scan
// every link; inside one CASE it cannot guess (2 hops over 3 million links: 594 ms without, 2 ms with).
CASE WHEN AS_OF(x) THEN true ELSE false END

// macro: HOP_BELIEVED(x)
// BELIEVED for traversals.
CASE WHEN BELIEVED(x) THEN true ELSE false END

// macro: HOP_KNOWN(x)
// What was recorded by $tx, believed still or retracted. For traversals.
CASE WHEN x.tx_from <= $tx THEN true ELSE false END

// macro: TX_TO(x)
// The end of the belief as it was known at $tx: an end that came later was open then.
CASE WHEN x.tx_to <= $tx THEN x.tx_to ELSE timestamp('9999-12-31 23:59:59.999999') END

// macro: HOLDS(x, a, b)
// What was true at some instant of [a, b).
x.valid_from < b AND a < x.valid_to

// macro: OVERLAPS(x, y)
// Whether both were true at some instant.
x.valid_from < y.valid_to AND y.valid_from < x.valid_to

// macro: MEET(x, y)
// The periods that two rows share on both axes, as a map of valid_from, valid_to, tx_from and tx_to; NULL where they share none.
CASE WHEN OVERLAPS(x, y) AND x.tx_from < y.tx_to AND y.tx_from < x.tx_to THEN {valid_from: greatest(x.valid_from, y.valid_from),
  valid_to: least(x.valid_to, y.valid_to), tx_from: greatest(x.tx_from, y.tx_from), tx_to: least(x.tx_to, y.tx_to)} ELSE NULL END

// name: kinds_of_field
// Of which kinds the values of a field are: s text, e text with escapes, b truth, i whole number, d number, j anything else.
// __LABEL__ has the contents.
MATCH (x:__LABEL__)
WITH json_extract(x.content, $name) AS j
WHERE j <> '' AND j <> 'null'
RETURN DISTINCT CASE WHEN left(j, 1) = '"' THEN CASE WHEN j CONTAINS '\\' THEN 'e' ELSE 's' END WHEN j = 'true' OR j = 'false' THEN 'b' WHEN left(j, 1) = '{' OR left(j, 1) = '[' THEN 'j'
  WHEN j CONTAINS '.' OR j CONTAINS 'e' THEN 'd' ELSE 'i' END AS kind
