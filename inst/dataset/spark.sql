-- The views of a data set in Spark SQL. Replace ROOT by its path, such as /data/profiles or s3a://bucket/profiles.
-- Spark lists files when a view is created, so each job creates them.
-- A day that was compacted is read from its last folder that is valid, and else from the files of its writers.

CREATE TEMPORARY VIEW recent_samples USING parquet OPTIONS (path 'ROOT/samples');

CREATE TEMPORARY VIEW compact_samples USING parquet OPTIONS (path 'ROOT/compact/samples');

CREATE TEMPORARY VIEW recent_frames USING parquet OPTIONS (path 'ROOT/frames');

CREATE TEMPORARY VIEW compact_frames USING parquet OPTIONS (path 'ROOT/compact/frames');

CREATE TEMPORARY VIEW recent_labels USING parquet OPTIONS (path 'ROOT/labels');

CREATE TEMPORARY VIEW compact_labels USING parquet OPTIONS (path 'ROOT/compact/labels');

CREATE TEMPORARY VIEW valid_folders AS
SELECT day, max(valid_from) AS last_valid FROM compact_samples WHERE valid_from <= unix_timestamp() GROUP BY day;

CREATE TEMPORARY VIEW samples AS
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
CREATE TEMPORARY VIEW frames AS
SELECT service, stack_key, depth, name, file, line, package, frame_type, day
FROM recent_frames
UNION ALL
SELECT service, stack_key, depth, name, file, line, package, frame_type, day
FROM compact_frames;

CREATE TEMPORARY VIEW labels AS
SELECT service, label_key, label, value, number, unit, day
FROM recent_labels
UNION ALL
SELECT service, label_key, label, value, number, unit, day
FROM compact_labels;
