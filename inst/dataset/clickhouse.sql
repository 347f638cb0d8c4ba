-- The views of a data set in ClickHouse. Replace ROOT by its path, below the server's
-- folder `user_files`. For object storage, write s3('https://...') instead of file('...').
-- A day that was compacted is read from its last folder that is valid, and else from the files of its writers.

SET use_hive_partitioning = 1;

CREATE VIEW recent_samples AS SELECT * FROM file('ROOT/samples/*/*.parquet', Parquet);

CREATE VIEW compact_samples AS SELECT * FROM file('ROOT/compact/samples/*/*/*.parquet', Parquet);

CREATE VIEW valid_folders AS
SELECT day, max(valid_from) AS last_valid FROM compact_samples WHERE valid_from <= toUnixTimestamp(now()) GROUP BY day;

CREATE VIEW samples AS
SELECT
  service, version, host, run, run_start, minute, sample_type, unit, value, sample_count, stack_key, label_key, trace_id,
  sampling_period, sampling_type, sampling_unit, default_type, day
FROM recent_samples WHERE day NOT IN (SELECT day FROM valid_folders)
UNION ALL
SELECT
  c.service, c.version, c.host, c.run, c.run_start, c.minute, c.sample_type, c.unit, c.value, c.sample_count, c.stack_key,
  c.label_key, c.trace_id, c.sampling_period, c.sampling_type, c.sampling_unit, c.default_type, c.day
FROM compact_samples c JOIN valid_folders v ON v.day = c.day AND v.last_valid = c.valid_from;

-- Rows of these two may occur several times, also in different days.
CREATE VIEW frames AS
SELECT service, stack_key, depth, name, file, line, package, frame_type, day
FROM file('ROOT/frames/*/*.parquet', Parquet)
UNION ALL
SELECT service, stack_key, depth, name, file, line, package, frame_type, day
FROM file('ROOT/compact/frames/*/*.parquet', Parquet);

CREATE VIEW labels AS
SELECT service, label_key, label, value, number, unit, day
FROM file('ROOT/labels/*/*.parquet', Parquet)
UNION ALL
SELECT service, label_key, label, value, number, unit, day
FROM file('ROOT/compact/labels/*/*.parquet', Parquet);
