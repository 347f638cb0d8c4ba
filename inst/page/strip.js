// The time strip: the stacks of the samples in the order of recording, and the brush that selects a
// part of them. The samples of several runs are shown one after the other, samples of processes that worked together one
// below the other, on their clock.
'use strict';

const STRIP_HEIGHT = 60;
const AXIS_HEIGHT = 14;
const GC_LANE = 8;
const BAND_NAME = 12;

const strip = {
	/** {order, start}: the runs that are shown, and the number of samples before each. */
	parts: [],
	samples: 0,
	/** The lanes of these runs, and the same if the strip shows processes on one clock, otherwise null. */
	lanes: null,
	clock: null,
	drag: null,
};

/** Finds the samples that the strip shows for the current type and source. */
function arrangeStrip() {
	const { model, state, amount } = app;
	strip.parts = [];
	strip.samples = 0;
	for (const order of model.orders) {
		const shown = isWanted(order.source) && order.values.some((v) => v.type === amount?.type);
		if (!shown || order.samples === 0) continue;
		// Samples without the label have no node.
		const node = state.label !== -1 && order.node.map((at, run) => (hasLabel(order.set?.[run]) ? at : -1));
		strip.parts.push({ order: node ? { ...order, node } : order, start: strip.samples });
		strip.samples += order.samples;
	}
	strip.lanes = makeLanes(strip.parts, app.tree);
	const { lanes, isTime } = strip.lanes;
	for (const lane of lanes) if (lane.isProcess) lane.sum = sumOfSource(lane.order.source);
	strip.clock = isTime && lanes.length > 1 && lanes.every((lane) => lane.isProcess) ? strip.lanes : null;
	byId('time').hidden = strip.samples === 0;
	const length = stripLength();
	if (state.brush && state.brush[0] >= length) state.brush = null;
	if (state.brush) state.brush = wholeSlices([state.brush[0], min(state.brush[1], length)]);
}

/** The sum of the amount over the samples of a source. */
function sumOfSource(source) {
	const { model, amount } = app;
	const own = model.values.filter((v) => v.source === source && v.type === amount.type);
	const values = own.flatMap(({ value }) => value);
	return values.reduce((sum, value) => sum + value, 0) * (amount.factor?.[source] ?? 1);
}

/** The length of the axis, in the unit of the brush: samples, or nanoseconds of the clock. */
function stripLength() {
	return strip.clock ? strip.clock.end : strip.samples;
}

/** The selected samples of each run, null for all. */
function brushedRanges() {
	const { brush } = app.state;
	if (!brush || strip.samples === 0) return null;
	if (strip.clock) {
		return strip.clock.lanes.map((lane) => {
			const [from, to] = brush.map((time) => slicesBefore(lane, time));
			return { order: lane.order, from, to };
		});
	}
	return strip.parts.map(({ order, start }) => ({
		order,
		from: min(max(brush[0] - start, 0), order.samples),
		to: min(max(brush[1] - start, 0), order.samples),
	}));
}

/** The height of the samples: processes get more, so that they can be told apart. */
function stripHeight() {
	return strip.clock ? min(max(STRIP_HEIGHT, 26 * strip.clock.lanes.length), 182) : STRIP_HEIGHT;
}

/** The node that is shown at a sample of the strip; `hint` starts the search, a pixel has `each` samples. */
function sampleNode(at, hint, each) {
	while (hint.part + 1 < strip.parts.length && strip.parts[hint.part + 1].start <= at) {
		hint.part++;
		hint.run = 0;
	}
	const { order, start } = strip.parts[hint.part];
	const shown = shownSample(order, at - start, each);
	while (order.ends[hint.run] <= shown) hint.run++;
	return order.node[hint.run];
}

/** For each column, the share of garbage collection, if columns have several samples. */
function gcByColumn(columns, isGc) {
	const shares = new Float64Array(columns);
	const each = columns / strip.samples;
	for (const { order, start } of strip.parts) {
		for (let run = 0; run < order.ends.length; run++) {
			if (!isGc(order.node[run])) continue;
			const from = run > 0 ? order.ends[run - 1] : 0;
			shares[floor((start + from) * each)] += (order.ends[run] - from) * each;
		}
	}
	return shares;
}

function drawStrip() {
	if (strip.samples === 0) return;
	const { model, tree, colours } = app;
	const canvas = byId('strip-canvas');
	const width = byId('strip').clientWidth;
	const shown = stripHeight();
	const total = shown + memoryHeight() + AXIS_HEIGHT;
	byId('strip').style.height = `${total}px`;
	const context = sizeCanvas(canvas, width, total);
	const columns = canvas.width;
	const rows = round((canvas.height * shown) / total);
	const image = context.createImageData(columns, rows);
	const pixels = new Uint32Array(image.data.buffer);
	const theme = (name) => packed(themeColour(name));
	pixels.fill(theme('--strip'));
	const gcFrames = framesOfGc(model);
	const isGc = (node) => node > 0 && gcFrames[model.frame[node]] === 1;
	// Processes have no lane of garbage collections, which only R's own profiler records.
	const gc = strip.clock ? null : gcByColumn(columns, isGc);
	const lane = gc && gcFrames.includes(1) ? round((GC_LANE * rows) / shown) : 0;
	const bands = strip.clock ? strip.clock.lanes.length : 1;
	// Where each band begins. There is a line between bands, unless they are too thin.
	const topOf = (band) => round((band * rows) / bands);
	const between = rows / bands >= 3 ? 1 : 0;
	const height = rows - lane;
	const levels = max(model.deepest, 1);
	const each = min(height / levels, rows / 12);
	const groupColours = Uint32Array.from(colours.css, packed);
	const gcColour = theme('--gc');
	const draw = (x, top, leaf, each, height) => {
		for (let node = leaf; node > 0; node = model.parent[node]) {
			const depth = model.depth[node] - 1;
			const group = tree.groups.ofFrame[model.frame[node]];
			const end = min(ceil((depth + 1) * each), height);
			for (let y = floor(depth * each); y < end; y++) pixels[(top + y) * columns + x] = groupColours[group];
		}
	};
	// The name of a process is above its samples, unless there are too many.
	const title = strip.clock && hasBandNames(shown / bands) ? round((BAND_NAME * rows) / shown) : 0;
	// A sample of a process fills its band, so that its gaps are seen, however deep the stacks of others are.
	const noStack = theme('--root');
	const drawBand = (x, band, leaf) => {
		const top = topOf(band) + title;
		const height = max(topOf(band + 1) - top - between, 1);
		if (leaf > 0) draw(x, top, leaf, height / model.depth[leaf], height);
		else if (leaf === 0) for (let y = 0; y < height; y++) pixels[(top + y) * columns + x] = noStack;
	};
	const waits = waitsBySet(model);
	const waitColours = new Map(WAIT_CLASSES.map((name) => [name, packed(waitColour(app.scheme, name))]));
	const line = round((WAIT_LINE * rows) / shown);
	const drawWait = (x, end, { node, set }, run) => {
		const colour = node[run] >= 0 && waitColours.get(waits.get(set?.[run]));
		if (colour) for (let y = max(end - line, 0); y < end; y++) pixels[y * columns + x] = colour;
	};
	const hint = { part: 0, run: 0 };
	const length = stripLength();
	for (let x = 0; x < columns; x++) {
		const at = ((x + 0.5) / columns) * length;
		if (strip.clock) {
			for (const [band, of] of strip.clock.lanes.entries()) {
				const number = shownAt(of, at, length / columns);
				const run = firstAbove(of.order.ends, number);
				drawBand(x, band, number < 0 ? -1 : of.order.node[run]);
				if (number >= 0) drawWait(x, topOf(band + 1) - between, of.order, run);
			}
			continue;
		}
		const node = sampleNode(floor(at), hint, strip.samples / columns);
		draw(x, 0, node, each, height);
		drawWait(x, rows, strip.parts[hint.part].order, hint.run);
		const share = strip.samples > columns ? min(gc[x], 1) : Number(isGc(node));
		for (let y = rows - ceil(share * lane); y < rows; y++) pixels[y * columns + x] = gcColour;
	}
	const gap = theme('--text');
	for (const { start } of strip.clock ? [] : strip.parts.slice(1)) {
		const x = min(round((start / strip.samples) * columns), columns - 1);
		for (let y = 0; y < rows; y++) pixels[y * columns + x] = gap;
	}
	context.fillStyle = themeColour('--panel');
	context.fillRect(0, 0, width, total);
	context.putImageData(image, 0, 0);
	if (strip.clock) drawBandNames(context, shown / bands);
	drawMemory(context, width, shown);
	drawStripAxis(context, width, total - AXIS_HEIGHT);
}

/** The times of the samples, if there is a single run with times. */
function stripLane() {
	const [part, another] = strip.parts;
	return part && !another && hasTimes(part) ? laneOf(part.order, true) : null;
}

/** Whether bands are high enough for names; others are shown by the tooltip. */
function hasBandNames(height) {
	return height >= 2 * BAND_NAME;
}

/** The names of processes, above their samples; `height` in pixels of the page. */
function drawBandNames(context, height) {
	if (!hasBandNames(height)) return;
	context.font = '10px system-ui, sans-serif';
	context.textBaseline = 'middle';
	strip.clock.lanes.forEach((lane, band) => {
		const name = laneName(lane);
		context.fillStyle = themeColour('--text');
		context.fillText(name, 4, band * height + BAND_NAME / 2);
	});
}

/** The axis of the strip: the times of samples, or their numbers. */
function drawStripAxis(context, width, top) {
	const lane = stripLane();
	const y = top + AXIS_HEIGHT / 2;
	if (lane?.sample.length > 1) {
		styleTicks(context);
		for (const { x, time } of irregularTicks(lane, width))
			drawTick(context, x, y, momentText(time, { isTime: true }));
		return;
	}
	const textOf = (at) => momentText(lane ? timeOf(lane, at) : at, { isTime: lane || strip.clock });
	drawTicks(context, 0, stripLength(), width, y, 0, textOf);
}

/** Describes a place, `down` from 0 to 1: its innermost function, its time, and its run. */
function describePlace(at, down) {
	const width = stripLength() / byId('strip').clientWidth;
	if (strip.clock) {
		const { lanes } = strip.clock;
		const lane = lanes[min(floor(down * lanes.length), lanes.length - 1)];
		const moment = [`at ${momentText(at, strip.clock)}`, laneName(lane)];
		const number = shownAt(lane, at, width);
		if (number < 0) return ['no samples', ...moment];
		const run = firstAbove(lane.order.ends, number);
		return [leafName(lane.order.node[run]), ...waitTexts(app.model, lane.order, run), ...moment];
	}
	const number = min(at, strip.samples - 1);
	const part = strip.parts.findLast(({ start }) => start <= number);
	const { order, start } = part;
	const isTime = hasTimes(part);
	const lane = laneOf(order, isTime);
	const shown = shownSample(order, number - start, width);
	const run = firstAbove(order.ends, shown);
	return [
		leafName(order.node[run]),
		...waitTexts(app.model, order, run),
		momentOf(lane, shown, isTime),
		...[memoryText(number, number + 1)].filter(Boolean),
		...(strip.parts.length > 1 ? [laneName(lane)] : []),
	];
}

/** When a sample was recorded, or its slice. */
function momentOf(lane, number, isTime = timeline.shown?.isTime) {
	const slice = sliceOf(lane.order, number);
	if (!slice) return `at ${momentText(timeOf(lane, number), { isTime })}`;
	const moment = momentText(timeOf(lane, slice.from), { isTime });
	return `in the part of ${plural(slice.to - slice.from, 'sample')} at ${moment}`;
}

/** The innermost function of a node of the model. */
function leafName(of) {
	if (of < 0) return 'another label';
	return of > 0 ? app.labels[app.tree.group[app.tree.nodeOf[of]]] : 'no stack';
}

/** Draws the selection, and describes it. */
function drawBrush() {
	const { brush } = app.state;
	const mark = byId('brush');
	mark.hidden = !brush;
	if (brush) {
		const length = stripLength();
		mark.style.left = `${(100 * brush[0]) / length}%`;
		mark.style.width = `${(100 * (brush[1] - brush[0])) / length}%`;
	}
	byId('range').textContent = rangeText(brush);
}

function rangeText(brush) {
	const [from, to] = brush ?? [0, stripLength()];
	const lane = stripLane();
	const time = (value) => amountText(value, 'nanoseconds');
	const parts = [plural(strip.samples, 'sample')];
	if (strip.clock) {
		parts.push(
			brush
				? `${[from, to].map((at) => momentText(at, strip.clock)).join(' to ')} of ${time(stripLength())}`
				: time(to),
		);
		parts.push(plural(strip.parts.length, 'process', 'processes'));
	} else if (brush)
		parts[0] = `samples ${whole.format(from + 1)} to ${whole.format(to)} of ${whole.format(strip.samples)}`;
	const begin = brush && lane ? `${time(timeOf(lane, from))} to ` : '';
	if (lane) parts.push(begin + time(timeOf(lane, to - 1) + lane.step));
	if (strip.parts.length > 1 && !strip.clock) parts.push(`${strip.parts.length} runs, one after the other`);
	const memory = strip.clock ? '' : memoryText(from, to);
	if (memory) parts.push(`at most ${memory}`);
	return `${parts.join(', ')}. ${resolutionText()}${brush ? 'Esc removes the selection.' : isSliced() ? 'Drag to select parts.' : 'Drag to select a part.'}`;
}

function setBrush(brush) {
	app.state.brush = wholeSlices(brush);
	update('weights');
}

/** Moves (or, with `resize`, resizes) the selection by a hundredth of the strip, or to the next slice. */
function moveBrush(direction, resize) {
	const length = stripLength();
	const step = max(1, round(length / 100)) * direction;
	const [from, to] = app.state.brush ?? [0, max(1, round(length / 10))];
	const by = min(max(step, -from), length - to);
	const edge = (at) => sliceEdge(min(max(at, 0), length), direction > 0);
	setBrush(resize ? [from, max(edge(to + step), min(from + 1, length))] : [edge(from + by), edge(to + by)]);
}

function startStrip() {
	const box = byId('strip');
	const numberAt = (event) => {
		const area = box.getBoundingClientRect();
		const share = (event.clientX - area.left) / area.width;
		return round(min(max(share, 0), 1) * stripLength());
	};
	// Less than three pixels are a click, which removes the selection.
	const drag = (event) => {
		const ends = [strip.drag.from, numberAt(event)].sort((a, b) => a - b);
		return abs(event.clientX - strip.drag.x) < 3 || ends[0] === ends[1] ? null : ends;
	};
	const onDrag = (type, action) => on(box, type, (event) => strip.drag && action(event));
	on(box, 'pointerdown', (event) => {
		strip.drag = { from: numberAt(event), x: event.clientX };
		box.setPointerCapture(event.pointerId);
	});
	onDrag('pointermove', (event) => {
		app.state.brush = wholeSlices(drag(event));
		drawBrush();
	});
	on(box, 'mousemove', (event) => {
		const down = (event.clientY - box.getBoundingClientRect().top) / stripHeight();
		showTooltip(event, describePlace(numberAt(event), down));
	});
	on(box, 'mouseleave', hideTooltip);
	onDrag('pointerup', (event) => {
		setBrush(drag(event));
		strip.drag = null;
	});
}
