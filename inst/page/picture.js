// The picture: the flame graph, or, beside the list of callers and callees, the chosen function with
// the tree of its callers above and the tree of its callees below. The canvas is only as large as its
// window. To scroll, the window contains an empty element as tall as the picture: browsers do not allow
// a canvas that is large enough for a recursion of thousands of calls.
'use strict';

const picture = {
	layers: [],
	rows: 1,
	/** Visible boxes, by column; they are kept, so that arrays are not made for each frame. */
	boxes: { n: 0, x: [], w: [], row: [], node: [], layer: [] },
	style: null,
	cursor: null,
	hovered: null,
	/** Nodes that were zoomed to before. */
	back: [],
};

/** Whether callers and callees are drawn. */
function isSandwich() {
	return app.state.tab === 'calls' && app.sandwich !== null;
}

/** Arranges the layers after a change of trees, zoom or layout. */
function arrangePicture() {
	const { state, tree, sandwich } = app;
	if (isSandwich()) {
		const { callers, callees } = sandwich;
		const origin = callers.deepest;
		picture.layers = [
			{ tree: callers, focus: 0, origin, down: -1, shared: true },
			{ tree: callees, focus: 0, origin, down: 1 },
		];
		picture.rows = origin + callees.deepest + 1;
	} else if (isTimeline()) {
		arrangeTimeline();
	} else {
		const down = state.layout === 'flame' ? -1 : 1;
		if (state.zoom >= tree.n || tree.width[state.zoom] === 0) state.zoom = 0;
		picture.layers = [{ tree, focus: state.zoom, origin: down > 0 ? 0 : tree.deepest, down }];
		picture.rows = tree.deepest + 1;
	}
	picture.cursor = null;
	picture.hovered = null;
	byId('spacer').style.height = `${picture.rows * ROW}px`;
	const title = isTimeline() ? 'Samples over time' : 'Flame graph';
	byId('picture-title').textContent = isSandwich()
		? word('Callers (above) and callees (below)', 'Held by (above), holds (below)')
		: title;
}

/** Scrolls to the node that fills the width. */
function scrollToFocus() {
	if (isTimeline()) return;
	const stage = byId('stage');
	const { tree, focus, origin, down } = picture.layers[0];
	const row = origin + down * tree.depth[focus];
	if (isSandwich()) stage.scrollTop = (row + 0.5) * ROW - stage.clientHeight / 2;
	else if (down > 0) stage.scrollTop = max(0, row - 3) * ROW;
	else stage.scrollTop = (row + 4) * ROW - stage.clientHeight;
}

/** Scrolls to the widest box of what was chosen or found, unless one is visible. */
function scrollToChoice(isSearch) {
	const { tree, chosen, onLine, matches } = app;
	const groups = (isSearch && matches) || chosen || (onLine ? null : matches);
	if (isTimeline() || isSandwich() || !(groups || onLine)) return;
	const isMarked = (node) => (groups ? groups[tree.group[node]] : onLine[node]) === 1;
	drawPicture();
	if (picture.boxes.node.slice(0, picture.boxes.n).some(isMarked)) return;
	const { focus, origin, down } = picture.layers[0];
	const { x, width } = tree;
	let widest = -1;
	for (let node = 1; node < tree.n; node++) {
		const isInside = x[node] >= x[focus] && x[node] < x[focus] + width[focus];
		if (isInside && isMarked(node) && !(width[node] <= width[widest])) widest = node;
	}
	const stage = byId('stage');
	if (widest > 0) stage.scrollTop = (origin + down * tree.depth[widest]) * ROW - stage.clientHeight / 2;
}

/** The style of boxes. It depends on the scheme, the colours, the search and the chosen function. */
function stylePicture() {
	const { model, tree, colours, state, matches, chosen, labels, scheme } = app;
	const { groups } = tree;
	const context = byId('canvas').getContext('2d', { alpha: false });
	const scale = app.wholes.map((whole) => (state.unit === 'shares' ? 1 / (whole || 1) : 1));
	const sides = (at, node) => [at.total[node] * scale[0], at.baseTotal[node] * scale[1]];
	// Grey if the runs show no difference.
	const seen = (group) => !model.functions.found || groups.found[group];
	const native = Uint8Array.from(groups.kind, (row) => (model.strings[row] === 'native' ? 1 : 0));
	const [root, text, match, matchText] = ['--root', '--text', '--match', '--match-text'].map(themeColour);
	const boxText = css(SCHEMES[scheme].text);
	const isMatch = (group) => group >= 0 && matches !== null && matches[group] === 1;
	picture.style = {
		background: themeColour('--panel'),
		foreground: text,
		muted: themeColour('--muted'),
		rest: root,
		faded: themeColour('--faded'),
		accent: themeColour('--accent'),
		hatch: hatching(context, boxText),
		fit: textFitters(context),
		fill: (at, node, group) => {
			if (model.hasBase) return css(changeColour(scheme, ...(seen(group) ? sides(at, node) : [1, 1])));
			if (isMatch(group)) return match;
			if (app.isDifference) return css(changeColour(scheme, at.total[node], 0));
			return group < 0 ? root : colours.css[group];
		},
		text: (group) => {
			if (model.hasBase) return boxText;
			if (isMatch(group)) return matchText;
			return group < 0 && !app.isDifference ? text : boxText;
		},
		label: (at, node, group) => {
			const label = group < 0 ? rootName() : labels[group];
			return model.hasBase ? `${label} ${changeText(...sides(at, node))}` : label;
		},
		isNative: (group) => group >= 0 && native[group] === 1,
		isFaded: (group) => matches !== null && !isMatch(group),
		isChosen: (group, node) => {
			if (group < 0) return isSandwich();
			return chosen?.[group] === 1 || (app.onLine?.[node] === 1 && !isSandwich());
		},
		cursor: null,
	};
}

/** The name of the root of the trees. */
function rootName() {
	return isSandwich() ? visible(app.items.names[app.state.select]) : 'all';
}

function drawPicture() {
	const stage = byId('stage');
	const width = stage.clientWidth;
	const height = stage.clientHeight;
	const { boxes, layers, style } = picture;
	const top = stage.scrollTop;
	boxes.n = 0;
	const first = floor(top / ROW);
	const last = min(picture.rows - 1, ceil((top + height) / ROW));
	if (isTimeline()) collectTimeline(boxes, width, first, last);
	else for (let l = 0; l < layers.length; l++) collectBoxes(boxes, layers[l], l, width, first, last);
	style.cursor = picture.hovered ?? picture.cursor;
	const context = sizeCanvas(byId('canvas'), width, height);
	// A flame graph that is lower than its window is aligned to the bottom.
	const offset = layers[0].down < 0 && layers.length === 1 ? max(0, height - picture.rows * ROW) : 0;
	picture.offset = offset;
	drawBoxes(context, boxes, layers, style, top - offset, width, height);
	if (isTimeline()) drawTimeline(context, style, top, width, height);
}

const redraw = beforeFrame(drawPicture);

/** The box under the pointer, -1 if there is none. */
function boxAtEvent(event) {
	const stage = byId('stage');
	const area = stage.getBoundingClientRect();
	const y = event.clientY - area.top + stage.scrollTop - picture.offset;
	return boxAt(picture.boxes, event.clientX - area.left, floor(y / ROW));
}

/** The layer and node under the pointer, null if there is none. */
function nodeAt(event) {
	if (isTimeline()) {
		const { node } = placeAt(event);
		return node < 0 ? null : { layer: 0, node };
	}
	const i = boxAtEvent(event);
	const node = i < 0 ? -1 : picture.boxes.node[i];
	return node < 0 ? null : { layer: picture.boxes.layer[i], node };
}

function showZoom(node) {
	app.state.zoom = node;
	picture.layers[0].focus = node;
	picture.cursor = { layer: 0, node };
	scrollToFocus();
}

/** Zooms the flame graph to a node. */
function zoomTo(node) {
	if (node !== app.state.zoom) picture.back.push(app.state.zoom);
	hideTooltip();
	showZoom(node);
	refresh();
}

function zoomBack() {
	if (isTimeline()) return viewBack();
	if (isSandwich() || app.state.zoom === 0) return false;
	showZoom(picture.back.pop() ?? 0);
	refresh();
	return true;
}

/** A double click or Enter: zooms the flame graph, or chooses a caller or callee. */
function activate({ layer, node }) {
	const group = picture.layers[layer].tree.group[node];
	if (!isSandwich()) zoomTo(node);
	else if (group >= 0 && app.itemOf[group] >= 0) choose(app.itemOf[group]);
}

/** A click or the space bar: chooses the function of a box; nothing moves. Callers and callees are only described. */
function selectBox(at) {
	picture.cursor = at;
	const group = at ? app.tree.group[at.node] : -1;
	if (!isSandwich()) choose(group < 0 ? -1 : app.itemOf[group]);
	else {
		showDetail();
		redraw();
	}
}

/** Moves the keyboard's cursor. `towards` is 'up', 'down', 'left' or 'right' on the screen. */
function moveCursor(towards) {
	const { layers } = picture;
	const { layer, node } = picture.cursor ?? { layer: 0, node: layers[0].focus };
	const { tree, down, focus, origin } = layers[layer];
	let next = node;
	if (towards === 'left' || towards === 'right') {
		const parent = tree.parent[node];
		if (node === focus || parent < 0) return;
		const at = tree.callees.indexOf(node, tree.first[parent]) + (towards === 'left' ? -1 : 1);
		if (at >= tree.first[parent] && at < tree.first[parent + 1]) next = tree.callees[at];
	} else if ((towards === 'down') === down > 0) {
		if (tree.first[node] < tree.first[node + 1]) next = tree.callees[tree.first[node]];
	} else if (node > 0) {
		next = tree.parent[node];
	} else if (layers.length > 1) {
		// From the chosen function to the other tree.
		picture.cursor = { layer: 1 - layer, node: 0 };
		moveCursor(towards);
		return;
	}
	if (tree.width[next] === 0) return;
	picture.cursor = { layer, node: next };
	picture.hovered = null;
	const stage = byId('stage');
	const y = (origin + down * tree.depth[next]) * ROW;
	stage.scrollTop = min(max(stage.scrollTop, y + ROW - stage.clientHeight), y);
	showDetail();
	redraw();
}

function startPicture() {
	const stage = byId('stage');
	const hover = (event) => {
		const at = event ? nodeAt(event) : null;
		if (at?.node === picture.hovered?.node && at?.layer === picture.hovered?.layer) return;
		picture.hovered = at;
		stage.style.cursor = at ? 'pointer' : '';
		showDetail();
		redraw();
	};
	on(stage, 'mousemove', (event) => {
		hover(event);
		const at = picture.hovered;
		const lines = at && describeNode(picture.layers[at.layer].tree, at.node);
		const shown = isTimeline() ? timelineTooltip(event) : lines;
		if (shown && !timeline.moved) showTooltip(event, shown);
		else hideTooltip();
	});
	on(stage, 'mouseleave', () => {
		hover(null);
		hideTooltip();
	});
	on(
		stage,
		'scroll',
		() => {
			hideTooltip();
			redraw();
		},
		{ passive: true },
	);
	on(stage, 'click', (event) => {
		// The end of a drag is not a click.
		if (!timeline.moved) selectBox(nodeAt(event));
	});
	on(stage, 'dblclick', (event) => {
		const at = nodeAt(event);
		if (isTimeline()) zoomToBox(event);
		else if (at) activate(at);
	});
	on(byId('go-calls'), 'click', () => showTab('calls'));
	on(byId('go-code'), 'click', () => showTab('code'));
}
