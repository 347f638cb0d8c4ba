// The time strip: the stacks of the samples in the order of recording, and the brush that selects a
// part of them. The samples of several runs are shown one after the other.
'use strict';

const STRIP_HEIGHT = 64;
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
		strip.parts.push({ order, start: strip.samples });
		strip.samples += order.samples;
	}
	byId('time').hidden = strip.samples === 0;
	if (state.brush && state.brush[0] >= strip.samples) state.brush = null;
	if (state.brush) state.brush = [state.brush[0], Math.min(state.brush[1], strip.samples)];
}

/** The selected samples of each run, null for all. */
function brushedRanges() {
	const { brush } = app.state;
	if (!brush || strip.samples === 0) return null;
	return strip.parts.map(({ order, start }) => ({
		order,
		from: Math.min(Math.max(brush[0] - start, 0), order.samples),
		to: Math.min(Math.max(brush[1] - start, 0), order.samples),
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

/** For each column, the share of its samples that are garbage collection. */
function gcByColumn(columns) {
	const { model } = app;
	const isGc = framesNamed(model, (name) => name === GC);
	const out = new Float64Array(columns);
	const each = columns / strip.samples;
	let any = false;
	for (const { order, start } of strip.parts) {
		let from = 0;
		for (let run = 0; run < order.ends.length; run++) {
			const to = order.ends[run];
			const node = order.node[run];
			if (node > 0 && isGc[model.frame[node]]) {
				any = true;
				let x = (start + from) * each;
				const end = (start + to) * each;
				while (x < end) {
					const column = Math.floor(x);
					const next = Math.min(column + 1, end);
					if (column < columns) out[column] += next - x;
					if (next <= x) break;
					x = next;
				}
			}
			from = to;
		}
	}
	return any ? out : null;
}

function drawStrip() {
	if (strip.samples === 0) return;
	const { model, tree, colours } = app;
	const canvas = byId('strip-canvas');
	const width = byId('strip').clientWidth;
	sizeCanvas(canvas, width, STRIP_HEIGHT);
	const context = canvas.getContext('2d', { alpha: false });
	const columns = canvas.width;
	const rows = canvas.height;
	const pack = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
	const image = context.createImageData(columns, rows);
	const pixels = new Uint32Array(image.data.buffer);
	const theme = (name) => pack(themeColour(name).match(/\d+/g).map(Number));
	pixels.fill(theme('--strip'));
	const gc = gcByColumn(columns);
	const lane = gc ? Math.round((GC_LANE * rows) / STRIP_HEIGHT) : 0;
	const height = rows - lane;
	const levels = Math.max(model.deepest, 1);
	const each = Math.min(height / levels, rows / 12);
	const groupColours = Uint32Array.from(colours.rgb, pack);
	const gcColour = theme('--gc');
	const hint = { part: 0, run: 0 };
	for (let x = 0; x < columns; x++) {
		let node = sampleNode(Math.floor(((x + 0.5) / columns) * strip.samples), hint);
		for (; node > 0; node = model.parent[node]) {
			const depth = model.depth[node] - 1;
			const group = tree.groups.ofFrame[model.frame[node]];
			const end = Math.min(Math.ceil((depth + 1) * each), height);
			for (let y = Math.floor(depth * each); y < end; y++) pixels[y * columns + x] = groupColours[group];
		}
		const filled = gc ? Math.min(lane, Math.ceil(gc[x] * lane)) : 0;
		for (let y = rows - filled; y < rows; y++) pixels[y * columns + x] = gcColour;
	}
	const gap = theme('--text');
	for (const { start } of strip.parts.slice(1)) {
		const x = Math.min(Math.round((start / strip.samples) * columns), columns - 1);
		for (let y = 0; y < rows; y++) pixels[y * columns + x] = gap;
	}
	context.putImageData(image, 0, 0);
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
	const sources = strip.parts.map((part) => app.model.sources[part.order.source]);
	const [from, to] = brush ?? [0, strip.samples];
	const period = sources.length === 1 ? sources[0].period : null;
	const time = (samples) => amountText(samples * period, 'nanoseconds');
	const count = brush
		? `samples ${whole.format(from + 1)} to ${whole.format(to)} of ${whole.format(strip.samples)}`
		: plural(strip.samples, 'sample');
	const ran = period ? (brush ? `, ${time(from)} to ${time(to)}` : `, ${time(to)}`) : '';
	const runs = sources.length > 1 ? ` of ${sources.length} runs, one after the other` : '';
	const usage = brush ? ' Esc removes the selection.' : ' Drag to select a part.';
	return `${brush ? 'Selected: ' : ''}${count}${ran}${runs}.${usage}`;
}

function setBrush(brush) {
	app.state.brush = brush;
	update('weights');
}

/** Moves (or, with `resize`, resizes) the selection by a hundredth of the strip. */
function moveBrush(direction, resize) {
	const step = Math.max(1, Math.round(strip.samples / 100)) * direction;
	const { brush } = app.state;
	if (!brush) {
		setBrush([0, Math.max(1, Math.round(strip.samples / 10))]);
		return;
	}
	const [from, to] = brush;
	if (resize) {
		setBrush([from, Math.min(Math.max(to + step, from + 1), strip.samples)]);
		return;
	}
	const by = Math.min(Math.max(step, -from), strip.samples - to);
	setBrush([from + by, to + by]);
}

function startStrip() {
	const box = byId('strip');
	const sampleAt = (event) => {
		const area = box.getBoundingClientRect();
		const share = (event.clientX - area.left) / area.width;
		return Math.round(Math.min(Math.max(share, 0), 1) * strip.samples);
	};
	const selection = (event) => {
		const to = sampleAt(event);
		const ends = [Math.min(strip.drag.from, to), Math.max(strip.drag.from, to)];
		return Math.abs(event.clientX - strip.drag.x) < 3 || ends[0] === ends[1] ? null : ends;
	};
	box.addEventListener('pointerdown', (event) => {
		strip.drag = { from: sampleAt(event), x: event.clientX };
		box.setPointerCapture(event.pointerId);
	});
	box.addEventListener('pointermove', (event) => {
		if (!strip.drag) return;
		app.state.brush = selection(event);
		drawBrush();
	});
	box.addEventListener('pointerup', (event) => {
		if (!strip.drag) return;
		const brush = selection(event);
		strip.drag = null;
		setBrush(brush);
	});
	box.addEventListener('pointercancel', () => {
		strip.drag = null;
	});
}
