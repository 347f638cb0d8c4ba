-- The tables and views of a data set in Trino, in a catalog of its connector for Hive. Replace ROOT by its URL, such as
-- s3://bucket/profiles or file:///data/profiles.
-- Trino has a list of the days. Call the procedures again when there are new ones: once a day, and after compaction.
-- A day that was compacted is read from its last folder that is valid, and else from the files of its writers.

CREATE TABLE recent_samples (
  service varchar, version varchar, host varchar, run varchar, run_start timestamp, minute timestamp, sample_type varchar,
  unit varchar, value double, sample_count bigint, stack_key varchar, label_key varchar, trace_id varchar,
  sampling_period double, sampling_type varchar, sampling_unit varchar, default_type varchar, day varchar
) WITH (format = 'PARQUET', external_location = 'ROOT/samples', partitioned_by = ARRAY['day']);

CREATE TABLE compact_samples (
  service varchar, version varchar, host varchar, run varchar, run_start timestamp, minute timestamp, sample_type varchar,
  unit varchar, value double, sample_count bigint, stack_key varchar, label_key varchar, trace_id varchar,
  sampling_period double, sampling_type varchar, sampling_unit varchar, default_type varchar, day varchar,
  valid_from bigint
) WITH (format = 'PARQUET', external_location = 'ROOT/compact/samples', partitioned_by = ARRAY['day', 'valid_from']);

CREATE TABLE recent_frames (
  service varchar, stack_key varchar, depth integer, name varchar, file varchar, line integer, package varchar,
  frame_type varchar, day varchar
) WITH (format = 'PARQUET', external_location = 'ROOT/frames', partitioned_by = ARRAY['day']);

CREATE TABLE compact_frames (
  service varchar, stack_key varchar, depth integer, name varchar, file varchar, line integer, package varchar,
  frame_type varchar, day varchar
) WITH (format = 'PARQUET', external_location = 'ROOT/compact/frames', partitioned_by = ARRAY['day']);

CREATE TABLE recent_labels (
  service varchar, label_key varchar, label varchar, value varchar, number double, unit varchar, day varchar
) WITH (format = 'PARQUET', external_location = 'ROOT/labels', partitioned_by = ARRAY['day']);

CREATE TABLE compact_labels (
  service varchar, label_key varchar, label varchar, value varchar, number double, unit varchar, day varchar
) WITH (format = 'PARQUET', external_location = 'ROOT/compact/labels', partitioned_by = ARRAY['day']);

CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'recent_samples', 'FULL');

CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'compact_samples', 'FULL');

CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'recent_frames', 'FULL');

CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'compact_frames', 'FULL');

CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'recent_labels', 'FULL');

CALL system.sync_partition_metadata(CURRENT_SCHEMA, 'compact_labels', 'FULL');

CREATE VIEW valid_folders AS
SELECT day, max(valid_from) AS last_valid FROM compact_samples WHERE valid_from <= to_unixtime(now()) GROUP BY day;

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
SELECT service, stack_key, depth, name, file, line, package, frame_type, day FROM recent_frames
UNION ALL
SELECT service, stack_key, depth, name, file, line, package, frame_type, day FROM compact_frames;

CREATE VIEW labels AS
SELECT service, label_key, label, value, number, unit, day FROM recent_labels
UNION ALL
SELECT service, label_key, label, value, number, unit, day FROM compact_labels;
