-- Questions about a data set of profiles. The views `samples`, `frames` and `labels` differ between engines (see
-- duckdb.sql, clickhouse.sql, spark.sql and trino.sql in this folder), the questions do not. Replace the values in them.
-- A condition on the day is useful for `frames` and `labels`, too: each day contains what its samples refer to. In a
-- database these have only the last day on which a stack was written, so the condition must be `day >=`.

-- question: functions of a service
SELECT f.name, sum(CASE WHEN f.innermost = 1 THEN s.size ELSE 0 END) AS self, sum(s.size) AS total
FROM (
  SELECT stack_key, sum(value) AS size FROM samples
  WHERE service = 'shop' AND sample_type = 'cpu' AND day >= '2026-01-01' GROUP BY stack_key
) s
JOIN (
  SELECT stack_key, name, min(depth) AS innermost FROM frames
  WHERE service = 'shop' AND day >= '2026-01-01' GROUP BY stack_key, name
) f ON f.stack_key = s.stack_key
GROUP BY f.name
ORDER BY 3 DESC, 1;

-- question: functions of the fleet
SELECT f.name, sum(CASE WHEN f.innermost = 1 THEN s.size ELSE 0 END) AS self, sum(s.size) AS total
FROM (
  SELECT service, stack_key, sum(value) AS size FROM samples WHERE sample_type = 'cpu' GROUP BY service, stack_key
) s
JOIN (
  SELECT service, stack_key, name, min(depth) AS innermost FROM frames GROUP BY service, stack_key, name
) f ON f.service = s.service AND f.stack_key = s.stack_key
GROUP BY f.name
ORDER BY 3 DESC, 1;

-- question: callers of a function
-- A recursive function counts once, where it was called first. Samples without a caller are not in the result.
SELECT c.name, sum(s.size) AS total
FROM (
  SELECT service, stack_key, sum(value) AS size FROM samples WHERE sample_type = 'cpu' GROUP BY service, stack_key
) s
JOIN (
  SELECT service, stack_key, max(depth) AS outermost FROM frames WHERE name = 'paste' GROUP BY service, stack_key
) f ON f.service = s.service AND f.stack_key = s.stack_key
JOIN (
  SELECT DISTINCT service, stack_key, depth, name FROM frames
) c ON c.service = f.service AND c.stack_key = f.stack_key AND c.depth = f.outermost + 1
GROUP BY c.name
ORDER BY 2 DESC, 1;

-- question: what changed between two versions
SELECT
  f.name,
  sum(CASE WHEN s.version = '2.2' THEN s.size ELSE 0 END) AS earlier,
  sum(CASE WHEN s.version = '2.3' THEN s.size ELSE 0 END) AS later
FROM (
  SELECT service, version, stack_key, sum(value) AS size FROM samples
  WHERE sample_type = 'cpu' AND version IN ('2.2', '2.3') GROUP BY service, version, stack_key
) s
JOIN (
  SELECT DISTINCT service, stack_key, name FROM frames
) f ON f.service = s.service AND f.stack_key = s.stack_key
GROUP BY f.name
ORDER BY 3 DESC, 1;

-- question: runs of a service
SELECT run, run_start, host, sum(value) AS total
FROM samples
WHERE service = 'shop' AND sample_type = 'cpu'
GROUP BY run, run_start, host
ORDER BY 2, 1;

-- question: the flame graph of a trace
-- A row for each frame, the outermost first.
SELECT s.service, s.stack_key, f.depth, f.name, s.size
FROM (
  SELECT service, stack_key, sum(value) AS size FROM samples
  WHERE trace_id = '0af7651916cd43dd8448eb211c80319c' AND sample_type = 'cpu' GROUP BY service, stack_key
) s
JOIN (
  SELECT DISTINCT service, stack_key, depth, name FROM frames
) f ON f.service = s.service AND f.stack_key = s.stack_key
ORDER BY 1, 2, 3 DESC;

-- question: sums by a label
SELECT l.value AS route, sum(s.size) AS total
FROM (
  SELECT service, label_key, sum(value) AS size FROM samples WHERE sample_type = 'cpu' GROUP BY service, label_key
) s
JOIN (
  SELECT DISTINCT service, label_key, value FROM labels WHERE label = 'route'
) l ON l.service = s.service AND l.label_key = s.label_key
GROUP BY l.value
ORDER BY 2 DESC, 1;

-- question: lines of a service
-- The value of a sample belongs to its innermost frame with a line.
SELECT f.file, f.line, sum(s.size) AS self
FROM (
  SELECT stack_key, sum(value) AS size FROM samples WHERE service = 'shop' AND sample_type = 'cpu' GROUP BY stack_key
) s
JOIN (
  SELECT stack_key, min(depth) AS innermost FROM frames WHERE service = 'shop' AND line IS NOT NULL GROUP BY stack_key
) i ON i.stack_key = s.stack_key
JOIN (
  SELECT DISTINCT stack_key, depth, file, line FROM frames WHERE service = 'shop'
) f ON f.stack_key = i.stack_key AND f.depth = i.innermost
GROUP BY f.file, f.line
ORDER BY 3 DESC, 1, 2;

-- question: hosts and minutes
SELECT host, minute, sum(value) AS total, sum(sample_count) AS number
FROM samples
WHERE service = 'shop' AND sample_type = 'cpu'
GROUP BY host, minute
ORDER BY 1, 2;
