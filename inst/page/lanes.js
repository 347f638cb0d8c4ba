// The lanes of the time layout: the samples of each run on an axis of time, or of samples if their period is unknown.
// Processes that worked together are on one clock.
//
// A lane consists of segments in which samples follow each other at equal distances. Recorded times begin a new segment
// where they are irregular; between two segments there may be a gap.
'use strict';

/** Whether the times of samples are known. */
function hasTimes({ order }) {
	return Boolean(order.times) || app.model.sources[order.source].period > 0;
}

/** The samples of a run; without times, each sample is 1 long. */
function laneOf(order, isTime) {
	const { times, samples } = order;
	const source = app.model.sources[order.source];
	const { period, base } = source;
	const step = isTime ? (times?.step ?? period) : 1;
	const [sample, at] = isTime && times ? [times.sample, times.at] : [[0], [0]];
	const lane = { order, step, sample, at, samples, offset: 0, base, isProcess: isProcess(source) };
	lane.each = isTime ? times?.each : undefined;
	lane.end = at.at(-1) + (samples - sample.at(-1)) * stepAt(lane, at.length - 1);
	return lane;
}

/** The distance of the samples of a segment. */
function stepAt({ each, step }, segment) {
	return each?.[segment] ?? step;
}

/** When the samples of a lane begin, and from when until when it was recorded; without a start, they begin at 0. */
function spanOf({ order, end, isProcess }) {
	const { start, seconds } = app.model.sources[order.source];
	const begin = (order.times?.start ?? (isProcess ? start : null) ?? -Infinity) * 1e9;
	if (!isProcess || start === null) return { begin, from: begin, until: begin + end };
	return { begin, from: min(begin, start * 1e9), until: max(begin + end, (start + seconds) * 1e9) };
}

/** The lanes of runs, with their rows in the picture, and the depth of each node. */
function makeLanes(parts, tree) {
	const isTime = parts.every(hasTimes);
	const lanes = parts.map(({ order }) => laneOf(order, isTime));
	// Runs that were recorded at the same time share the axis; others begin at 0, also those without a start.
	const spans = lanes.map(spanOf);
	const groups = [];
	for (const span of [...spans].sort((a, b) => a.from - b.from)) {
		const last = groups.at(-1);
		if (last && span.from < last.until) {
			last.first = min(last.first, span.begin);
			last.until = max(last.until, span.until);
		} else groups.push({ first: span.begin, until: span.until });
		span.group = groups.at(-1);
	}
	lanes.forEach((lane, i) => {
		lane.offset = spans[i].begin - spans[i].group.first || 0;
	});
	const end = max(0, ...lanes.map((lane) => lane.offset + lane.end));
	lanes.forEach((lane, i) => {
		const { from, until, group } = spans[i];
		lane.from = max(from - group.first || 0, 0);
		lane.until = lane.isProcess ? min(until - group.first || 0, end) : lane.offset + lane.end;
	});
	const depth = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++) depth[i] = depth[tree.parent[i]] + 1;
	let row = 1;
	for (const lane of lanes) {
		lane.row = row;
		lane.deepest = lane.order.node.reduce((most, node) => max(most, depth[tree.nodeOf[max(node, 0)]]), 0);
		row += lane.deepest + 2;
	}
	return { lanes, depth, isTime, end, rows: row };
}

/** The time at which a sample begins. */
function timeOf(lane, number) {
	const { sample, at, offset } = lane;
	const segment = firstAbove(sample, number) - 1;
	return offset + at[segment] + (number - sample[segment]) * stepAt(lane, segment);
}

/** The segment in which a time is, and where its last sample ends. A sample ends when the next segment begins. */
function segmentAt(lane, time) {
	const { sample, at, samples, offset } = lane;
	const segment = firstAbove(at, time - offset) - 1;
	if (segment < 0) return null;
	const until = sample[segment + 1] ?? samples;
	const end = at[segment] + (until - sample[segment]) * stepAt(lane, segment);
	return { segment, until, end: offset + min(end, at[segment + 1] ?? end) };
}

/** The sample at a time, -1 in gaps. */
function sampleAt(lane, time) {
	const found = segmentAt(lane, time);
	if (!found || time >= found.end) return -1;
	const { sample, at, offset } = lane;
	const number =
		sample[found.segment] + floor((time - offset - at[found.segment]) / stepAt(lane, found.segment));
	return min(number, found.until - 1);
}

/** The sample that is shown at a time, -1 in gaps; `width` is the time of a pixel. */
function shownAt(lane, time, width) {
	const number = sampleAt(lane, time);
	if (number < 0 || !lane.order.slices) return number;
	return shownSample(lane.order, number, width / stepAt(lane, segmentAt(lane, time).segment));
}

/** The gap at a time, as [from, to]; null if there is a sample, or if the recording began later or has ended. */
function gapAt(lane, time) {
	const found = segmentAt(lane, time);
	const from = found?.end ?? lane.from;
	const next = lane.at[(found?.segment ?? -1) + 1];
	const to = next === undefined ? lane.until : lane.offset + next;
	return time >= from && time < to ? [from, to] : null;
}

/** The number of samples that begin before a time. */
function samplesBefore(lane, time) {
	const found = segmentAt(lane, time);
	if (!found) return 0;
	const { sample, at, offset } = lane;
	const begun = ceil((time - offset - at[found.segment]) / stepAt(lane, found.segment));
	return min(sample[found.segment] + begun, found.until);
}

/**
 * Calls `add(from, to, node)` for pieces of the axis in ascending order, with the node of the model there, -1 for gaps. With few samples, a piece is a run of equal samples; with many, a column of pixels with the sample in its
 * middle.
 */
function eachPiece(lane, from, to, columns, add) {
	const { order, sample } = lane;
	const width = (to - from) / columns;
	// In a gap, the next sample.
	const found = segmentAt(lane, from);
	const first = sampleAt(lane, from) < 0 ? (found?.until ?? 0) : sampleAt(lane, from);
	let run = firstAbove(order.ends, sliceOf(order, first)?.from ?? first);
	if (width > lane.step / 2) {
		for (let column = 0; column < columns; column++) {
			const number = shownAt(lane, from + (column + 0.5) * width, width);
			if (number >= 0) while (order.ends[run] <= number) run++;
			add(from + column * width, from + (column + 1) * width, number < 0 ? -1 : order.node[run]);
		}
		return;
	}
	let segment = max(0, firstAbove(sample, first) - 1);
	let start = first;
	let reached = from;
	while (start < lane.samples) {
		while (sample[segment + 1] <= start) segment++;
		while (order.ends[run] <= start) run++;
		const end = min(order.ends[run], sample[segment + 1] ?? Infinity);
		const begin = timeOf(lane, start);
		if (begin >= to) break;
		const next = end === sample[segment + 1] ? timeOf(lane, end) : Infinity;
		const stop = min(begin + (end - start) * stepAt(lane, segment), next);
		if (begin > reached) add(reached, min(begin, to), -1);
		add(max(begin, from), min(stop, to), order.node[run]);
		reached = stop;
		start = end;
	}
	if (reached < to) add(reached, to, -1);
}

/** The distance of ticks: 1, 2 or 5 times a power of ten, so that there are at most `most`. */
function tickStep(length, most) {
	const least = length / max(most, 1);
	const power = 10 ** floor(Math.log10(least));
	return power * [1, 2, 5, 10].find((factor) => factor * power >= least);
}

/**
 * Ticks of a run with irregular times: round times, each where the first sample after it is. Of several at one sample, the
 * last one is kept; others need 90 pixels.
 */
function irregularTicks(lane, width) {
	const step = tickStep(lane.end, width / 90);
	const ticks = [];
	for (let time = 0; time < lane.end; time += step) {
		const x = round((samplesBefore(lane, time) / lane.samples) * width);
		const last = ticks.at(-1);
		if (last?.x === x) last.time = time;
		else if (x < width && !(x < last?.x + 90)) ticks.push({ x, time });
	}
	return ticks;
}
