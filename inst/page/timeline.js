// The time layout: the stacks of the samples in their order, on an axis of time, with a lane for each run. Neighbouring
// samples with the same path of calls are one box.
'use strict';

const timeline = {
	/** The lanes, see lanes.js. */
	shown: null,
	/** [x, width, row] of garbage collections, and [x, width, row, rows] of gaps on the screen. */
	gc: [],
	gaps: [],
	/** Boxes of less than 2 pixels, as an image with a pixel for each column and row, which is drawn higher. */
	narrow: null,
	/** Parts of the axis that were shown before. */
	back: [],
	drag: null,
};

function isTimeline() {
	return app.state.layout === 'time' && strip.parts.length > 0 && !isSandwich();
}

function arrangeTimeline() {
	timeline.shown = strip.lanes;
	timeline.gcFrames = framesOfGc(app.model);
	picture.layers = [{ tree: app.tree, focus: 0, origin: 0, down: 1 }];
	picture.rows = timeline.shown.rows;
}

/** The part of the axis that is shown. */
function viewOf() {
	const { end } = timeline.shown;
	const [from, to] = app.state.view ?? [0, end];
	return from < end ? [from, min(to, end)] : [0, end];
}

/** Shows a part of the axis; `length` is at least two samples. */
function setView(from, length) {
	const { end, lanes } = timeline.shown;
	const size = min(max(length, 2 * min(...lanes.map(({ step }) => step))), end);
	const start = min(max(from, 0), end - size);
	app.state.view = size < end ? [start, start + size] : null;
	hideTooltip();
	redraw();
	saveState(app.state, app.defaults);
}

/** Zooms by a factor; `at` (0 to 1) is the place of the window that does not move. */
function zoomView(factor, at = 0.5) {
	const [from, to] = viewOf();
	const length = (to - from) * factor;
	setView(from + at * (to - from - length), length);
}

/** Moves by a part of the window. */
function panView(by) {
	const [from, to] = viewOf();
	setView(from + by * (to - from), to - from);
}

function viewBack() {
	if (!app.state.view) return false;
	app.state.view = timeline.back.pop() ?? null;
	refresh();
	return true;
}

/** Zooms to the box at a point, or around a box that is too narrow. */
function zoomToBox(event) {
	const { node, time } = placeAt(event);
	if (node <= 0) return;
	const [from, to] = viewOf();
	const scale = (to - from) / byId('stage').clientWidth;
	const box = boxAtEvent(event);
	timeline.back.push(app.state.view);
	if (box < 0) setView(time - 20 * scale, 40 * scale);
	else setView(from + picture.boxes.x[box] * scale, picture.boxes.w[box] * scale);
}

/** Adds the visible boxes, garbage collections and gaps. */
function collectTimeline(boxes, width, firstRow, lastRow) {
	const { tree, model } = app;
	const { lanes, depth } = timeline.shown;
	const [from, to] = viewOf();
	const scale = width / (to - from);
	timeline.gc = [];
	timeline.gaps = [];
	const narrow = element('canvas', { width, height: lastRow - firstRow + 1 });
	const image = narrow.getContext('2d').createImageData(narrow.width, narrow.height);
	const pixels = new Uint32Array(image.data.buffer);
	for (const lane of lanes) {
		if (lane.row > lastRow || lane.row + lane.deepest < firstRow) continue;
		// The open box at each depth: its node and its start.
		const node = new Int32Array(lane.deepest + 1);
		const start = new Float64Array(lane.deepest + 1);
		let deepest = 0;
		let reached = 0;
		let last = -1;
		const close = (d) => {
			const row = lane.row + d;
			if (row < firstRow || row > lastRow) return;
			if (reached - start[d] >= 2) addBox(boxes, start[d], reached - start[d], row, node[d], 0);
			else {
				const at = (row - firstRow) * narrow.width;
				const colour = packed(boxColour(picture.style, tree, node[d]));
				pixels.fill(colour, at + round(start[d]), at + round(reached));
			}
		};
		eachPiece(lane, from, to, width, (begin, end, of) => {
			const x = (begin - from) * scale;
			const leaf = of < 0 ? -1 : tree.nodeOf[of];
			if (of < 0 && gapAt(lane, (begin + end) / 2)) {
				timeline.gaps.push([x, (end - begin) * scale, lane.row + 1, lane.deepest]);
			}
			if (of > 0 && timeline.gcFrames[model.frame[of]])
				timeline.gc.push([x, (end - begin) * scale, lane.row]);
			if (leaf !== last || x - reached > 0.01) {
				const path = [];
				for (let n = max(leaf, 0); n > 0; n = tree.parent[n]) path[depth[n]] = n;
				let same = 0;
				while (x - reached <= 0.01 && same < deepest && path[same + 1] === node[same + 1]) same++;
				for (let d = same + 1; d <= deepest; d++) close(d);
				deepest = max(path.length - 1, 0);
				for (let d = same + 1; d <= deepest; d++) {
					node[d] = path[d];
					start[d] = x;
				}
				last = leaf;
			}
			reached = (end - from) * scale;
		});
		for (let d = 1; d <= deepest; d++) close(d);
	}
	narrow.getContext('2d').putImageData(image, 0, 0);
	timeline.narrow = narrow;
}

/** The text of a place on the axis, such as `1.5 s`, `2:05` (minutes) or `sample 7`. */
function momentText(value, { isTime } = timeline.shown) {
	if (!isTime) return `sample ${whole.format(floor(value) + 1)}`;
	const minutes = floor(value / 60e9);
	const seconds = value / 1e9 - 60 * minutes;
	if (minutes > 0) return `${minutes}:${seconds < 9.9995 ? '0' : ''}${Number(seconds.toFixed(3))}`;
	return value === 0 ? '0 s' : amountText(value, 'nanoseconds');
}

function laneName({ order, base }) {
	const name = app.model.sources[order.source].name || `run ${order.source + 1}`;
	return visible(name, 60) + (base ? ' (base)' : '');
}

/** Draws what is not a box: narrow boxes, gaps, what is not selected, the names of lanes, and the axis. */
function drawTimeline(context, style, top, width, height) {
	const { lanes, isTime } = timeline.shown;
	const [from, to] = viewOf();
	const scale = width / (to - from);
	const ranges = brushedRanges();
	const first = floor(top / ROW) * ROW - top;
	context.imageSmoothingEnabled = false;
	context.drawImage(timeline.narrow, 0, first, width, timeline.narrow.height * ROW);
	context.fillStyle = style.background;
	for (let y = first + ROW - 1; y < height; y += ROW) context.fillRect(0, y, width, 1);
	for (const [x, w, row, rows] of timeline.gaps) {
		context.fillStyle = style.hatch;
		context.fillRect(x, row * ROW - top, w, rows * ROW);
	}
	context.textBaseline = 'middle';
	context.font = FONTS[0];
	lanes.forEach((lane, i) => {
		const y = lane.row * ROW - top;
		if (ranges) {
			const ends = strip.clock ? app.state.brush : [ranges[i].from, ranges[i].to].map((n) => timeOf(lane, n));
			const [left, right] = ends.map((time) => (time - from) * scale);
			const none = ranges[i].from === ranges[i].to;
			context.globalAlpha = 0.7;
			context.fillStyle = style.background;
			for (const [a, b] of none
				? [[0, width]]
				: [
						[0, left],
						[right, width],
					])
				context.fillRect(a, y + ROW, max(0, b - a), lane.deepest * ROW);
			context.globalAlpha = 1;
		}
		context.fillStyle = style.muted;
		const length = isTime ? amountText(lane.end, 'nanoseconds') : plural(lane.samples, 'sample');
		const text = lane.isProcess ? amountText(lane.sum, app.amount.unit) : length;
		context.fillText(style.fit[0](`${laneName(lane)} · ${text}`, width - 8), 4, y + ROW / 2);
	});
	context.fillStyle = themeColour('--gc');
	for (const [x, w, row] of timeline.gc) context.fillRect(x, row * ROW - top + ROW - 5, max(w, 1), 4);
	context.fillStyle = style.background;
	context.fillRect(0, 0, width, ROW);
	drawTicks(context, from, to, width, ROW / 2, height, momentText);
}

function styleTicks(context) {
	context.font = '11px system-ui, sans-serif';
	context.textBaseline = 'middle';
	context.fillStyle = themeColour('--muted');
}

function drawTick(context, x, y, text) {
	context.fillText(text, x + 4, y);
	context.fillRect(x, y - 6, 1, 12);
}

/** Draws ticks with their texts, and, with a height, lines below them. */
function drawTicks(context, from, to, width, y, height, textOf) {
	const step = tickStep(to - from, width / 90);
	const scale = width / (to - from);
	styleTicks(context);
	for (let tick = ceil(from / step); tick * step < to; tick++) {
		const x = round((tick * step - from) * scale);
		drawTick(context, x, y, textOf(tick * step));
		context.globalAlpha = 0.12;
		if (height > 0) context.fillRect(x, ROW, 1, height - ROW);
		context.globalAlpha = 1;
	}
}

/** The lane and the time at a point, the sample there (-1 for none), and its node in this row (-1 for none). */
function placeAt({ clientX, clientY }) {
	const stage = byId('stage');
	const { left, top } = stage.getBoundingClientRect();
	const { tree } = app;
	const { lanes, depth } = timeline.shown;
	const [from, to] = viewOf();
	// In the middle of the pixel, see eachPiece().
	const time = from + ((floor(clientX - left) + 0.5) / stage.clientWidth) * (to - from);
	const row = floor((clientY - top + stage.scrollTop) / ROW);
	const lane = lanes.findLast((one) => one.row <= row);
	const number = lane ? shownAt(lane, time, (to - from) / stage.clientWidth) : -1;
	if (number < 0) return { lane, row, time, number, node: -1 };
	const { node: nodes, ends } = lane.order;
	let node = tree.nodeOf[nodes[firstAbove(ends, number)]];
	while (depth[node] > row - lane.row) node = tree.parent[node];
	return { lane, row, time, number, node: node > 0 && depth[node] === row - lane.row ? node : -1 };
}

/** What is at a point: the lines of a tooltip, beginning with the name of the function; null for nothing. */
function timelineTooltip(event) {
	const { lane, row, time, number, node } = placeAt(event);
	const gap = lane && row <= lane.row + lane.deepest && gapAt(lane, time);
	if (gap) return [`No samples for ${momentText(gap[1] - gap[0])}`, `at ${momentText(time)}`];
	if (node < 0) return null;
	const [name, ...rest] = describeNode(app.tree, node);
	const { isTime } = timeline.shown;
	const { slices } = lane.order;
	let at = momentOf(lane, number);
	const box = boxAtEvent(event);
	const { x, w } = picture.boxes;
	const width = byId('stage').clientWidth;
	const [from, to] = viewOf();
	if (isTime && !slices) {
		at += `, sample ${whole.format(number + 1)}`;
		// The length of a box that is visible as a whole.
		if (box >= 0 && x[box] > 0 && x[box] + w[box] < width)
			at += `, ${momentText((w[box] * (to - from)) / width)} long`;
	}
	return [name, at, ...rest];
}

function startTimeline() {
	const stage = byId('stage');
	on(
		stage,
		'wheel',
		(event) => {
			if (!isTimeline()) return;
			const { left, width } = stage.getBoundingClientRect();
			const sideways = event.shiftKey || abs(event.deltaX) > abs(event.deltaY);
			// At full size, the wheel scrolls the picture, and the document around the page.
			if (!app.state.view && (sideways || event.deltaY > 0 || stage.scrollTop > 0)) return;
			if (sideways) panView((event.deltaX || event.deltaY) / width);
			else zoomView(1.0015 ** event.deltaY, (event.clientX - left) / width);
			event.preventDefault();
		},
		{ passive: false },
	);
	on(stage, 'pointerdown', ({ clientX, clientY, button }) => {
		timeline.moved = false;
		if (isTimeline() && button === 0)
			timeline.drag = { x: clientX, y: clientY, view: viewOf(), top: stage.scrollTop };
	});
	on(stage, 'pointermove', ({ clientX, clientY, pointerId }) => {
		const { drag } = timeline;
		if (!drag) return;
		const by = [clientX - drag.x, clientY - drag.y];
		if (!timeline.moved && max(...by.map(abs)) < 4) return;
		if (!timeline.moved) stage.setPointerCapture(pointerId);
		timeline.moved = true;
		const length = drag.view[1] - drag.view[0];
		stage.scrollTop = drag.top - by[1];
		setView(drag.view[0] - (by[0] / stage.clientWidth) * length, length);
	});
	for (const type of ['pointerup', 'pointercancel'])
		on(stage, type, () => {
			timeline.drag = null;
		});
}
