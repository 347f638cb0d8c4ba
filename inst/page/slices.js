// Large profiles: their samples are divided into slices, and those of a slice are sorted by stack instead of time. So a
// selection consists of whole slices.
'use strict';

/** The slice of a sample: its number, and its samples from `from` to `to` (exclusive); null if the order is exact. */
function sliceOf({ slices, samples }, sample) {
	if (!slices) return null;
	const number = firstAbove(slices.first, sample) - 1;
	return { number, from: slices.first[number], to: slices.first[number + 1] ?? samples };
}

/**
 * The sample to show instead of another one, if a pixel has `each` samples: of a slice that is narrower than a pixel, one
 * at another place in each slice, so that all of their stacks are seen.
 */
function shownSample(order, sample, each) {
	const slice = sliceOf(order, sample);
	if (!slice || slice.to - slice.from >= each) return sample;
	const golden = 0.6180339887498949;
	return slice.from + floor((((slice.number + 1) * golden) % 1) * (slice.to - slice.from));
}

/** The number of samples in the slices of a lane that begin before a time, or half a step later. */
function slicesBefore(lane, time) {
	const begun = samplesBefore(lane, time - lane.step / 2);
	const { slices, samples } = lane.order;
	return slices ? (slices.first[firstAbove(slices.first, begun - 1)] ?? samples) : samplesBefore(lane, time);
}

function isSliced() {
	return strip.parts.some(({ order }) => order.slices);
}

/** Where slices begin or end on the axis of the strip: at this place, or the next one before, or, with `up`, after. */
function sliceEdge(at, up) {
	if (!isSliced()) return at;
	if (strip.clock) {
		const { lanes, end } = strip.clock;
		const edges = lanes.map((lane) => {
			if (up) {
				const sample = slicesBefore(lane, at);
				return sample < lane.samples ? timeOf(lane, sample) : end;
			}
			const begun = samplesBefore(lane, at + lane.step / 2);
			return begun > 0 ? timeOf(lane, sliceOf(lane.order, begun - 1).from) : 0;
		});
		return up ? max(at, min(...edges)) : min(at, max(...edges));
	}
	const number = up ? max(at - 1, 0) : min(at, strip.samples - 1);
	const { order, start } = strip.parts.findLast((part) => part.start <= number);
	if (!up && at >= strip.samples) return strip.samples;
	if (up && at <= 0) return 0;
	const { from, to } = sliceOf(order, number - start);
	return start + (up ? to : from);
}

/** A selection, extended to whole slices. */
function wholeSlices(brush) {
	return brush && [sliceEdge(brush[0], false), sliceEdge(brush[1], true)];
}

/** The size of slices as text, such as `500 samples (5 s)`. */
function sliceText() {
	const { slices, source } = strip.parts[0].order;
	if (slices.nanoseconds) return amountText(slices.nanoseconds, 'nanoseconds');
	const { period } = app.model.sources[source];
	const time = period > 0 ? ` (${amountText(slices.samples * period, 'nanoseconds')})` : '';
	return plural(slices.samples, 'sample') + time;
}

/** What the page says about the resolution of the order of samples; empty if it is exact. */
function resolutionText() {
	return isSliced() ? `Resolution: parts of ${sliceText()}, in which samples are sorted by stack. ` : '';
}
