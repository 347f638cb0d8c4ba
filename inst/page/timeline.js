// The time layout: the stacks of the samples in their order, on an axis of time, with a lane for each run. Neighbouring
// samples with the same path of calls are one box.
'use strict';

const timeline = {
	/** The lanes, see lanes.js. */
	shown: null,
	/** [x, width, row] of garbage collections, and [x, width, row, rows] of gaps on the screen. */
	gc: [],
	gaps: [],
	/** Parts of the axis that were shown before. */
	back: [],
	drag: null,
};

function isTimeline() {
	return app.state.layout === 'time' && strip.parts.length > 0 && !isSandwich();
}

function arrangeTimeline() {
	timeline.shown = makeLanes(strip.parts, app.tree);
	timeline.gcFrames = framesNamed(app.model, (name) => name === GC);
	picture.layers = [{ tree: app.tree, focus: 0, origin: 0, down: 1 }];
	picture.rows = timeline.shown.rows;
}

/** The part of the axis that is shown. */
function viewOf() {
	const { end } = timeline.shown;
	const [from, to] = app.state.view ?? [0, end];
	return from < end ? [from, Math.min(to, end)] : [0, end];
}

/** Shows a part of the axis; `length` is at least two samples. */
function setView(from, length) {
	const { end, lanes } = timeline.shown;
	const size = Math.min(Math.max(length, 2 * Math.min(...lanes.map(({ step }) => step))), end);
	const start = Math.min(Math.max(from, 0), end - size);
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

/** Zooms to the box at a point. */
function zoomToBox(event) {
	const box = boxAtEvent(event);
	if (box < 0) return;
	const [from, to] = viewOf();
	const scale = (to - from) / byId('stage').clientWidth;
	timeline.back.push(app.state.view);
	setView(from + picture.boxes.x[box] * scale, picture.boxes.w[box] * scale);
}

/** Adds the visible boxes, garbage collections and gaps. */
function collectTimeline(boxes, width, firstRow, lastRow) {
	const { tree, model } = app;
	const { lanes, depth } = timeline.shown;
	const [from, to] = viewOf();
	const scale = width / (to - from);
	timeline.gc = [];
	timeline.gaps = [];
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
			if (reached - start[d] >= LEAST && row >= firstRow && row <= lastRow)
				addBox(boxes, start[d], reached - start[d], row, node[d], 0);
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
				for (let n = Math.max(leaf, 0); n > 0; n = tree.parent[n]) path[depth[n]] = n;
				let same = 0;
				while (x - reached <= 0.01 && same < deepest && path[same + 1] === node[same + 1]) same++;
				for (let d = same + 1; d <= deepest; d++) close(d);
				deepest = Math.max(path.length - 1, 0);
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
}

/** The text of a place on the axis, such as `1.5 s`, `2:05` (minutes) or `sample 7`. */
function momentText(value, { isTime } = timeline.shown) {
	if (!isTime) return `sample ${whole.format(Math.floor(value) + 1)}`;
	const minutes = Math.floor(value / 60e9);
	const seconds = value / 1e9 - 60 * minutes;
	if (minutes > 0) return `${minutes}:${seconds < 9.9995 ? '0' : ''}${Number(seconds.toFixed(3))}`;
	return value === 0 ? '0 s' : amountText(value, 'nanoseconds');
}

function laneName({ order, base }) {
	const name = app.model.sources[order.source].name || `run ${order.source + 1}`;
	return visible(name, 60) + (base ? ' (base)' : '');
}

/** Draws what is around the boxes: gaps, what is not selected, the names of lanes, and the axis. */
function drawTimeline(context, style, top, width, height) {
	const { lanes, isTime } = timeline.shown;
	const [from, to] = viewOf();
	const scale = width / (to - from);
	const ranges = brushedRanges();
	for (const [x, w, row, rows] of timeline.gaps) {
		context.fillStyle = style.hatch;
		context.fillRect(x, row * ROW - top, w, rows * ROW);
	}
	context.textBaseline = 'middle';
	context.font = FONTS[0];
	lanes.forEach((lane, i) => {
		const y = lane.row * ROW - top;
		if (ranges) {
			const [left, right] = [ranges[i].from, ranges[i].to].map((n) => (timeOf(lane, n) - from) * scale);
			const none = ranges[i].from === ranges[i].to;
			context.globalAlpha = 0.7;
			context.fillStyle = style.background;
			for (const [a, b] of none
				? [[0, width]]
				: [
						[0, left],
						[right, width],
					])
				context.fillRect(a, y + ROW, Math.max(0, b - a), lane.deepest * ROW);
			context.globalAlpha = 1;
		}
		context.fillStyle = style.muted;
		const length = isTime ? amountText(lane.end, 'nanoseconds') : plural(lane.samples, 'sample');
		context.fillText(style.fit[0](`${laneName(lane)} · ${length}`, width - 8), 4, y + ROW / 2);
	});
	context.fillStyle = themeColour('--gc');
	for (const [x, w, row] of timeline.gc) context.fillRect(x, row * ROW - top + ROW - 5, Math.max(w, 1), 4);
	context.fillStyle = style.background;
	context.fillRect(0, 0, width, ROW);
	drawTicks(context, from, to, width, ROW / 2, height, timeline.shown);
}

/** Draws ticks with their texts, and, with a height, lines below them. */
function drawTicks(context, from, to, width, y, height, axis) {
	const step = tickStep(to - from, width / 90);
	const scale = width / (to - from);
	context.font = '11px system-ui, sans-serif';
	context.textBaseline = 'middle';
	context.fillStyle = themeColour('--muted');
	for (let tick = Math.ceil(from / step); tick * step < to; tick++) {
		const x = Math.round((tick * step - from) * scale);
		context.fillText(momentText(tick * step, axis), x + 4, y);
		context.fillRect(x, y - 6, 1, 12);
		context.globalAlpha = 0.12;
		if (height > 0) context.fillRect(x, ROW, 1, height - ROW);
		context.globalAlpha = 1;
	}
}

/** What is at a point: the lines of a tooltip, beginning with the name of the function; null for nothing. */
function timelineTooltip(event) {
	const stage = byId('stage');
	const area = stage.getBoundingClientRect();
	const [from, to] = viewOf();
	const time = from + ((event.clientX - area.left) / area.width) * (to - from);
	const row = Math.floor((event.clientY - area.top + stage.scrollTop) / ROW);
	const lane = timeline.shown.lanes.findLast((one) => one.row <= row);
	if (!lane || row > lane.row + lane.deepest) return null;
	const gap = gapAt(lane, time);
	if (gap) return [`No samples for ${momentText(gap[1] - gap[0])}`, `at ${momentText(time)}`];
	const at = nodeAt(event);
	if (!at) return null;
	const number = sampleAt(lane, time);
	const [name, ...rest] = describeNode(app.tree, at.node);
	const moment = number < 0 ? momentText(time) : momentText(timeOf(lane, number));
	const sample = timeline.shown.isTime ? `, sample ${whole.format(number + 1)}` : '';
	return [name, `at ${moment}${number < 0 ? '' : sample}`, ...rest];
}

function startTimeline() {
	const stage = byId('stage');
	stage.addEventListener(
		'wheel',
		(event) => {
			if (!isTimeline()) return;
			const { left, width } = stage.getBoundingClientRect();
			const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
			// At full size, the wheel scrolls the document around the page.
			if (!app.state.view && (sideways || event.deltaY > 0)) return;
			if (sideways) panView((event.deltaX || event.deltaY) / width);
			else zoomView(1.0015 ** event.deltaY, (event.clientX - left) / width);
			event.preventDefault();
		},
		{ passive: false },
	);
	stage.addEventListener('pointerdown', ({ clientX, clientY, button }) => {
		timeline.moved = false;
		if (isTimeline() && button === 0)
			timeline.drag = { x: clientX, y: clientY, view: viewOf(), top: stage.scrollTop };
	});
	stage.addEventListener('pointermove', ({ clientX, clientY, pointerId }) => {
		const { drag } = timeline;
		if (!drag) return;
		const by = [clientX - drag.x, clientY - drag.y];
		if (!timeline.moved && Math.max(...by.map(Math.abs)) < 4) return;
		if (!timeline.moved) stage.setPointerCapture(pointerId);
		timeline.moved = true;
		const length = drag.view[1] - drag.view[0];
		stage.scrollTop = drag.top - by[1];
		setView(drag.view[0] - (by[0] / stage.clientWidth) * length, length);
	});
	for (const type of ['pointerup', 'pointercancel'])
		stage.addEventListener(type, () => {
			timeline.drag = null;
		});
}
