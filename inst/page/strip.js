// The time strip: the stacks of the samples in the order of recording, and the brush that selects a
// part of them. The samples of several runs are shown one after the other.
'use strict';

const STRIP_HEIGHT = 60;
const AXIS_HEIGHT = 14;
const GC_LANE = 8;

const strip = {
	/** {order, start}: the runs that are shown, and the number of samples before each. */
	parts: [],
	samples: 0,
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
	byId('time').hidden = strip.samples === 0;
	if (state.brush && state.brush[0] >= strip.samples) state.brush = null;
	if (state.brush) state.brush = [state.brush[0], min(state.brush[1], strip.samples)];
}

/** The selected samples of each run, null for all. */
function brushedRanges() {
	const { brush } = app.state;
	if (!brush || strip.samples === 0) return null;
	return strip.parts.map(({ order, start }) => ({
		order,
		from: min(max(brush[0] - start, 0), order.samples),
		to: min(max(brush[1] - start, 0), order.samples),
	}));
}

/** The node of a sample of the strip; `hint` starts the search. */
function sampleNode(at, hint) {
	while (hint.part + 1 < strip.parts.length && strip.parts[hint.part + 1].start <= at) {
		hint.part++;
		hint.run = 0;
	}
	const { order, start } = strip.parts[hint.part];
	while (order.ends[hint.run] <= at - start) hint.run++;
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
	const context = sizeCanvas(canvas, width, STRIP_HEIGHT + AXIS_HEIGHT);
	const columns = canvas.width;
	const rows = round((canvas.height * STRIP_HEIGHT) / (STRIP_HEIGHT + AXIS_HEIGHT));
	const image = context.createImageData(columns, rows);
	const pixels = new Uint32Array(image.data.buffer);
	const theme = (name) => packed(themeColour(name));
	pixels.fill(theme('--strip'));
	const gcFrames = framesOfGc(model);
	const isGc = (node) => node > 0 && gcFrames[model.frame[node]] === 1;
	const gc = gcByColumn(columns, isGc);
	const lane = gcFrames.includes(1) ? round((GC_LANE * rows) / STRIP_HEIGHT) : 0;
	const height = rows - lane;
	const levels = max(model.deepest, 1);
	const each = min(height / levels, rows / 12);
	const groupColours = Uint32Array.from(colours.css, packed);
	const gcColour = theme('--gc');
	const hint = { part: 0, run: 0 };
	for (let x = 0; x < columns; x++) {
		let node = sampleNode(floor(((x + 0.5) / columns) * strip.samples), hint);
		const share = strip.samples > columns ? min(gc[x], 1) : Number(isGc(node));
		for (; node > 0; node = model.parent[node]) {
			const depth = model.depth[node] - 1;
			const group = tree.groups.ofFrame[model.frame[node]];
			const end = min(ceil((depth + 1) * each), height);
			for (let y = floor(depth * each); y < end; y++) pixels[y * columns + x] = groupColours[group];
		}
		for (let y = rows - ceil(share * lane); y < rows; y++) pixels[y * columns + x] = gcColour;
	}
	const gap = theme('--text');
	for (const { start } of strip.parts.slice(1)) {
		const x = min(round((start / strip.samples) * columns), columns - 1);
		for (let y = 0; y < rows; y++) pixels[y * columns + x] = gap;
	}
	context.fillStyle = themeColour('--panel');
	context.fillRect(0, 0, width, STRIP_HEIGHT + AXIS_HEIGHT);
	context.putImageData(image, 0, 0);
	drawStripAxis(context, width);
}

/** The times of the samples, if there is a single run with times. */
function stripLane() {
	const [part, another] = strip.parts;
	return part && !another && hasTimes(part) ? laneOf(part.order, true) : null;
}

/** The axis of the strip: the times of samples, which may be irregular, or their numbers. */
function drawStripAxis(context, width) {
	const lane = stripLane();
	const textOf = (at) => momentText(lane ? timeOf(lane, at) : at, { isTime: lane });
	drawTicks(context, 0, strip.samples, width, STRIP_HEIGHT + AXIS_HEIGHT / 2, 0, textOf);
}

/** Describes a sample: its innermost function, its time, and its run. */
function describeSample(number) {
	const part = strip.parts.findLast(({ start }) => start <= number);
	const { order, start } = part;
	const node = app.tree.nodeOf[order.node[firstAbove(order.ends, number - start)]];
	const isTime = hasTimes(part);
	const lane = laneOf(order, isTime);
	return [
		node > 0 ? app.labels[app.tree.group[node]] : node === 0 ? 'no stack' : 'another label',
		`at ${momentText(timeOf(lane, number - start), { isTime })}`,
		...(strip.parts.length > 1 ? [laneName(lane)] : []),
	];
}

/** Draws the selection, and describes it. */
function drawBrush() {
	const { brush } = app.state;
	const mark = byId('brush');
	mark.hidden = !brush;
	if (brush) {
		mark.style.left = `${(100 * brush[0]) / strip.samples}%`;
		mark.style.width = `${(100 * (brush[1] - brush[0])) / strip.samples}%`;
	}
	byId('range').textContent = rangeText(brush);
}

function rangeText(brush) {
	const [from, to] = brush ?? [0, strip.samples];
	const lane = stripLane();
	const time = (value) => amountText(value, 'nanoseconds');
	const parts = [plural(strip.samples, 'sample')];
	if (brush)
		parts[0] = `samples ${whole.format(from + 1)} to ${whole.format(to)} of ${whole.format(strip.samples)}`;
	const begin = brush && lane ? `${time(timeOf(lane, from))} to ` : '';
	if (lane) parts.push(begin + time(timeOf(lane, to - 1) + lane.step));
	if (strip.parts.length > 1) parts.push(`${strip.parts.length} runs, one after the other`);
	return `${parts.join(', ')}. ${brush ? 'Esc removes the selection.' : 'Drag to select a part.'}`;
}

function setBrush(brush) {
	app.state.brush = brush;
	update('weights');
}

/** Moves (or, with `resize`, resizes) the selection by a hundredth of the strip. */
function moveBrush(direction, resize) {
	const { samples } = strip;
	const step = max(1, round(samples / 100)) * direction;
	const [from, to] = app.state.brush ?? [0, max(1, round(samples / 10))];
	const by = min(max(step, -from), samples - to);
	setBrush(resize ? [from, min(max(to + step, from + 1), samples)] : [from + by, to + by]);
}

function startStrip() {
	const box = byId('strip');
	const numberAt = (event) => {
		const area = box.getBoundingClientRect();
		const share = (event.clientX - area.left) / area.width;
		return round(min(max(share, 0), 1) * strip.samples);
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
		app.state.brush = drag(event);
		drawBrush();
	});
	on(box, 'mousemove', (event) => {
		showTooltip(event, describeSample(min(numberAt(event), strip.samples - 1)));
	});
	on(box, 'mouseleave', hideTooltip);
	onDrag('pointerup', (event) => {
		setBrush(drag(event));
		strip.drag = null;
	});
}
