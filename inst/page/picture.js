// The picture: the flame graph, or, beside the list of callers and callees, a tree of the callers of
// the chosen function above it and one of its callees below it.
//
// The canvas is as large as its window, which scrolls over an empty element as tall as the picture:
// a recursion of thousands of calls would need a canvas that is larger than browsers allow.
'use strict';

const picture = {
	layers: [],
	rows: 1,
	boxes: newBoxes(),
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
	} else {
		const down = state.layout === 'icicle' ? 1 : -1;
		if (state.zoom >= tree.n || tree.width[state.zoom] === 0) state.zoom = 0;
		picture.layers = [{ tree, focus: state.zoom, origin: down > 0 ? 0 : tree.deepest, down }];
		picture.rows = tree.deepest + 1;
	}
	picture.cursor = null;
	picture.hovered = null;
	byId('spacer').style.height = `${picture.rows * ROW}px`;
	byId('picture-title').textContent = isSandwich() ? 'Callers (above) and callees (below)' : 'Flame graph';
}

/** Scrolls to the node that fills the width. */
function scrollToFocus() {
	const stage = byId('stage');
	const { tree, focus, origin, down } = picture.layers[0];
	const row = origin + down * tree.depth[focus];
	if (isSandwich()) stage.scrollTop = (row + 0.5) * ROW - stage.clientHeight / 2;
	else if (down > 0) stage.scrollTop = Math.max(0, row - 3) * ROW;
	else stage.scrollTop = (row + 4) * ROW - stage.clientHeight;
}

/** Recomputes what depends on the scheme, the colours or the trees. */
function stylePicture() {
	const context = byId('canvas').getContext('2d', { alpha: false });
	const { model, tree, colours, state } = app;
	const scheme = app.dark ? 'dark' : 'light';
	const { groups } = tree;
	const sides = (layer, node) => {
		const at = picture.layers[layer].tree;
		const scale = state.unit === 'share' ? app.sums.map((sum) => 1 / (sum || 1)) : [1, 1];
		return [at.total[node] * scale[0], at.baseTotal[node] * scale[1]];
	};
	const groupOf = (layer, node) => picture.layers[layer].tree.group[node];
	const rootName = () => (isSandwich() ? visible(app.items.names[state.select]) : 'all');
	const kind = groups.kind.map((row) => model.strings[row]);
	const fit = ['12px system-ui, sans-serif', 'italic 12px system-ui, sans-serif'].map((font) => {
		context.font = font;
		const fitted = textFitter(context);
		return (text, room) => fitted(text, room);
	});
	const text = css(SCHEMES[scheme].text);
	const labels = app.labels;
	picture.style = {
		background: themeColour('--canvas'),
		foreground: themeColour('--text'),
		muted: themeColour('--muted'),
		rest: themeColour('--rest'),
		faded: themeColour('--faded'),
		accent: themeColour('--accent'),
		hatch: hatching(context, text),
		fit,
		fill: (layer, node) => {
			const group = groupOf(layer, node);
			if (model.hasBase) return css(changeColour(scheme, ...sides(layer, node)));
			if (app.matches && group >= 0 && app.matches[group]) return themeColours.match;
			return group < 0 ? themeColours.root : colours.css[group];
		},
		text: (layer, node) => {
			const group = groupOf(layer, node);
			if (model.hasBase) return text;
			if (app.matches && group >= 0 && app.matches[group]) return themeColours.matchText;
			return group < 0 ? themeColours.text : text;
		},
		label: (layer, node) => {
			const group = groupOf(layer, node);
			const label = group < 0 ? rootName() : labels[group];
			return model.hasBase ? `${label} ${changeText(...sides(layer, node))}` : label;
		},
		isNative: (layer, node) => {
			const group = groupOf(layer, node);
			return group >= 0 && kind[group] === 'native';
		},
		isFaded: (layer, node) => {
			const group = groupOf(layer, node);
			return app.matches !== null && (group < 0 || !app.matches[group]);
		},
		isChosen: (layer, node) => {
			const group = groupOf(layer, node);
			return group < 0 ? isSandwich() : app.chosen !== null && app.chosen[group] === 1;
		},
		cursor: null,
	};
	const themeColours = {
		root: themeColour('--root'),
		text: themeColour('--text'),
		match: themeColour('--match'),
		matchText: themeColour('--match-text'),
	};
}

function drawPicture() {
	const stage = byId('stage');
	const width = stage.clientWidth;
	const height = stage.clientHeight;
	const { boxes, layers, style } = picture;
	const top = stage.scrollTop;
	boxes.n = 0;
	const first = Math.floor(top / ROW);
	const last = Math.min(picture.rows - 1, Math.ceil((top + height) / ROW));
	for (let l = 0; l < layers.length; l++) collectBoxes(boxes, layers[l], l, width, first, last);
	style.cursor = picture.hovered ?? picture.cursor;
	const context = sizeCanvas(byId('canvas'), width, height);
	// A flame graph that is lower than its window stands on the bottom.
	const offset = layers[0].down < 0 && layers.length === 1 ? Math.max(0, height - picture.rows * ROW) : 0;
	picture.offset = offset;
	drawBoxes(context, boxes, style, top - offset, width, height);
}

const redraw = beforeFrame(drawPicture);

/** The layer and node under the pointer, null if there is none. */
function nodeAt(event) {
	const stage = byId('stage');
	const area = stage.getBoundingClientRect();
	const y = event.clientY - area.top + stage.scrollTop - picture.offset;
	const i = boxAt(picture.boxes, event.clientX - area.left, Math.floor(y / ROW));
	return i >= 0 && picture.boxes.node[i] >= 0
		? { layer: picture.boxes.layer[i], node: picture.boxes.node[i] }
		: null;
}

/** Zooms the flame graph to a node, and chooses its function. */
function zoomTo(node) {
	const { state } = app;
	if (node !== state.zoom) picture.back.push(state.zoom);
	state.zoom = node;
	picture.layers[0].focus = node;
	picture.cursor = { layer: 0, node };
	scrollToFocus();
	const group = app.tree.group[node];
	choose(group >= 0 ? app.itemOf[group] : -1);
}

function zoomBack() {
	const { state } = app;
	if (isSandwich() || state.zoom === 0) return false;
	state.zoom = picture.back.pop() ?? 0;
	picture.layers[0].focus = state.zoom;
	picture.cursor = { layer: 0, node: state.zoom };
	scrollToFocus();
	refresh();
	return true;
}

/** What a click or Enter does: zoom, or, among callers and callees, choose. */
function activate({ layer, node }) {
	if (!isSandwich()) {
		zoomTo(node);
		return;
	}
	const group = picture.layers[layer].tree.group[node];
	if (group >= 0 && app.itemOf[group] >= 0) choose(app.itemOf[group]);
}

/** Moves the keyboard's cursor. `towards` is 'up', 'down', 'left' or 'right' on the screen. */
function moveCursor(towards) {
	const { layers } = picture;
	const { layer, node } = picture.cursor ?? { layer: 0, node: layers[0].focus };
	const { tree, down, focus } = layers[layer];
	let next = node;
	let nextLayer = layer;
	if (towards === 'left' || towards === 'right') {
		const parent = tree.parent[node];
		if (node === focus || parent < 0) return;
		const at = tree.callees.indexOf(node, tree.first[parent]) + (towards === 'left' ? -1 : 1);
		if (at >= tree.first[parent] && at < tree.first[parent + 1]) next = tree.callees[at];
	} else if ((towards === 'down') === down > 0) {
		if (tree.first[node] < tree.first[node + 1]) next = tree.callees[tree.first[node]];
	} else if (node === 0 && layers.length > 1) {
		// From the chosen function to the other tree.
		nextLayer = 1 - layer;
		const other = layers[nextLayer].tree;
		next = other.first[0] < other.first[1] ? other.callees[other.first[0]] : 0;
	} else if (node > 0) {
		next = tree.parent[node];
	}
	if (layers[nextLayer].tree.width[next] === 0) return;
	picture.cursor = { layer: nextLayer, node: next };
	picture.hovered = null;
	const stage = byId('stage');
	const target = layers[nextLayer];
	const y = (target.origin + target.down * target.tree.depth[next]) * ROW;
	if (y < stage.scrollTop) stage.scrollTop = y;
	else if (y + ROW > stage.scrollTop + stage.clientHeight) stage.scrollTop = y + ROW - stage.clientHeight;
	showDetail();
	redraw();
}

/** The line below the picture: the node under the pointer or the cursor, else the chosen function. */
function showDetail() {
	const at = picture.hovered ?? picture.cursor;
	let text = '';
	if (at) {
		const { tree } = picture.layers[at.layer];
		text = describeNode(tree, at.node);
	} else if (app.state.select >= 0) {
		text = describeItem(app.state.select);
	} else {
		text = app.sums[0] === 0 ? 'No samples with a stack.' : describeNode(app.tree, 0);
	}
	byId('detail').textContent = text;
	const chosen = app.state.select >= 0;
	byId('go-calls').hidden = !chosen || app.state.tab === 'calls';
	byId('go-source').hidden = !chosen || app.state.tab === 'source' || app.state.by === 'package';
}

function sidesText(values, base) {
	const unit = app.amount.unit;
	const one = (value, side) => `${shareText(value, app.sums[side])} (${amountText(value, unit)})`;
	if (base === null) return one(values, 0);
	return `${one(values, 0)}, base ${one(base, 1)}, ${changeText(values, base)}`;
}

function describeNode(tree, node) {
	const group = tree.group[node];
	const parts = [];
	if (group >= 0) {
		parts.push(app.labels[group], ...whereText(tree.groups, group));
	} else {
		parts.push(isSandwich() ? visible(app.items.names[app.state.select]) : 'All samples with a stack');
	}
	parts.push(`total ${sidesText(tree.total[node], tree.baseTotal?.[node] ?? null)}`);
	if (group >= 0) parts.push(`self ${sidesText(tree.self[node], tree.baseSelf?.[node] ?? null)}`);
	return parts.join(' · ');
}

function describeItem(item) {
	const { self, total } = app.figures;
	const base = (values) => (app.model.hasBase ? values[1][item] : null);
	return [
		visible(app.items.names[item]),
		...whereText(app.items, item),
		`total ${sidesText(total[0][item], base(total))}`,
		`self ${sidesText(self[0][item], base(self))}`,
	].join(' · ');
}

/** File, package and kind of a group, as far as they are known. */
function whereText(groups, row) {
	const { strings } = app.model;
	const file = strings[groups.file[row]];
	const kind = strings[groups.kind[row]];
	const parts = [];
	if (file && groups.by !== 'place') parts.push(visible(baseName(file), 60));
	if (groups.package[row] > 0 && groups.by !== 'package')
		parts.push(visible(strings[groups.package[row]], 60));
	if (kind) parts.push(visible(KINDS[kind] ?? kind, 60));
	return parts;
}

function startPicture() {
	const stage = byId('stage');
	const hover = (event) => {
		const at = event ? nodeAt(event) : null;
		if (at?.node === picture.hovered?.node && at?.layer === picture.hovered?.layer) return;
		picture.hovered = at;
		stage.classList.toggle('pointing', at !== null);
		showDetail();
		redraw();
	};
	stage.addEventListener('mousemove', hover);
	stage.addEventListener('mouseleave', () => hover(null));
	stage.addEventListener('scroll', redraw, { passive: true });
	stage.addEventListener('click', (event) => {
		const at = nodeAt(event);
		if (at) activate(at);
	});
	byId('go-calls').addEventListener('click', () => showTab('calls'));
	byId('go-source').addEventListener('click', () => showTab('source'));
}
