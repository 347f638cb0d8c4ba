// Starts the page, and recomputes its parts after a change. `app` contains the model, the state of the
// view, and everything computed from both: sums, the tree, the figures, the colours. After a change of
// the state, call update() with the first step to repeat, or refresh() if only drawing is needed.
//
// A group is a row of `tree.groups`, by which frames are grouped; an item is a row of the table.
// These are the same, except by line: functions on the same line are different boxes, but one item.
'use strict';

const app = { cache: new Map(), models: {} };
const DARK = matchMedia('(prefers-color-scheme: dark)');

/** The steps, in order; each uses the results of the previous steps. */
const STEPS = [
	['tree', arrangeTree],
	['weights', arrangeWeights],
	['colours', arrangeColours],
	['search', arrangeSearch],
	['calls', arrangeChoice],
	['layout', arrangePicture],
];

function cached(key, make) {
	if (!app.cache.has(key)) app.cache.set(key, make());
	return app.cache.get(key);
}

app.groupsBy = (by) => cached(`groups ${by}`, () => groupFrames(app.model, by));
app.figuresOf = (groups) => figuresByGroup(app.model, groups, app.shown, app.sides, [app.bytes]);

/** Whether the samples of a source are shown. A selected source is compared with all sources of the other side. */
function isWanted(source) {
	const chosen = app.state.source;
	const { sources } = app.model;
	return chosen < 0 || source === chosen || sources[source].base !== sources[chosen].base;
}

/** The number of runs of a side that are shown, 1 if values are not shown per run. */
function runsOf(base) {
	const { sources } = app.model;
	if (!isPerRun(app.model)) return 1;
	return max(1, sources.filter((source, row) => isWanted(row) && source.base === base).length);
}

/** Whether values are shown per run: sides that are compared may have different numbers of runs. */
function isPerRun({ hasBase, heap, processes }) {
	return hasBase && !heap && processes === 0;
}

/** Divides sums by a number of runs. */
function perRun(sums, runs) {
	return runs === 1 ? sums : sums.map((sum) => sum / runs);
}

/** Whether samples with a set of labels are shown. */
function hasLabel(set) {
	return app.state.label === -1 || app.model.labels[app.state.label]?.sets.has(set);
}

function arrangeTree() {
	const { model, state } = app;
	const groups = app.groupsBy(state.by);
	const view = `${state.hide} ${state.mine}`;
	app.shown = cached(`shown ${view}`, () => shownNodes(model, state));
	app.tree = cached(`tree ${state.by} ${view}`, () => fold(model, groups, app.shown));
	app.items = state.by === 'line' ? app.groupsBy('place') : groups;
	app.labels = cached(`labels ${state.by}`, () =>
		groups.names.map((text) => visible(state.by === 'file' ? baseName(text) : text)),
	);
	app.itemOf = cached(`items ${state.by}`, () => {
		const items = new Int32Array(groups.n);
		for (let i = 0; i < groups.ofFrame.length; i++) items[groups.ofFrame[i]] = app.items.ofFrame[i];
		return items;
	});
}

function arrangeWeights() {
	const { model, state } = app;
	app.amount = model.types[state.type] ?? { name: 'samples', unit: 'count', type: -1, factor: null };
	arrangeStrip();
	const ranges = brushedRanges();
	const isOf = (base) => (source, set) =>
		isWanted(source) && model.sources[source].base === base && (ranges || hasLabel(set));
	const sides = model.hasBase ? [false, true] : [false];
	const runs = sides.map(runsOf);
	app.sides = sides.map((base, at) => perRun(selfByNode(model, app.amount, isOf(base), ranges), runs[at]));
	app.wholes = sides.map((base, at) =>
		wholeOf(model, app.amount, isOf(base), ranges, app.sides[at], runs[at]),
	);
	app.bytes = selfByNode(model, model.types[model.bytes], isOf(false), ranges);
	app.isDifference = !model.hasBase && app.sides[0].some((value) => value < 0);
	app.leftOut = app.sides[0][0];
	weigh(app.tree, app.sides[0], app.sides[1] ?? null, state.unit === 'shares');
	app.figures = app.figuresOf(app.items);
	app.places = null;
}

function arrangeColours() {
	const { model, state } = app;
	const groups = app.groupsBy(state.by);
	const by = CONTAINERS.includes(state.by) ? state.by : state.colour;
	app.scheme = DARK.matches ? 'dark' : 'light';
	app.colours = cached(`colours ${state.by} ${by} ${app.scheme}`, () => {
		const weight = new Float64Array(groups.n);
		const self = selfByNode(model, model.types[model.type], () => true, null);
		for (let i = 1; i < model.n; i++) weight[groups.ofFrame[model.frame[i]]] += abs(self[i]);
		return colourGroups(model, groups, by, weight, app.scheme);
	});
}

/** The groups of the chosen item or the nodes on the chosen line, and callers and callees. */
function arrangeChoice() {
	const { state, itemOf, items } = app;
	if (state.select >= items.n) state.select = -1;
	app.chosen = state.select >= 0 ? Uint8Array.from(itemOf, (item) => (item === state.select ? 1 : 0)) : null;
	app.onLine =
		state.select < 0 && state.file >= 0 && state.line > 0 ? nodesOnLine(state.file, state.line) : null;
	arrangeCalls();
}

/** 1 for each node of the tree with a frame on a line. */
function nodesOnLine(file, line) {
	const { model, tree } = app;
	const groups = app.groupsBy('place');
	const onLine = new Uint8Array(tree.n);
	for (let i = 1; i < model.n; i++) {
		const row = groups.ofFrame[model.frame[i]];
		if (row >= 0 && groups.file[row] === file && groups.line[row] === line) onLine[tree.nodeOf[i]] = 1;
	}
	return onLine;
}

/** Repeats the steps from `first` on, and draws. */
function update(first) {
	const from = STEPS.findIndex(([name]) => name === first);
	for (const [, step] of STEPS.slice(from)) step();
	stylePicture();
	if (from < 3) {
		drawStrip();
		drawLegend();
		describeLeftOut();
	}
	refresh();
	scrollToFocus();
	scrollToChoice(first === 'search');
}

/** Draws everything, and saves the state. */
function refresh() {
	showState();
	drawPicture();
	drawBrush();
	const draw = { code: drawCode, table: drawTable, calls: drawCalls };
	draw[app.state.tab]();
	showDetail();
	saveState(app.state, app.defaults);
}

/** Chooses a function, line or package, -1 for none. */
function choose(item) {
	app.state.select = item;
	app.state.file = -1;
	app.state.line = 0;
	arrangeChoice();
	if (app.state.tab === 'calls') update('layout');
	else {
		stylePicture();
		refresh();
		scrollToChoice();
	}
}

/** Whether the address asks for the snapshot that belongs to the profile. */
function asksForSnapshot() {
	return byId('go-snapshot').hidden ? false : /[#&]snapshot=1/.test(location.hash);
}

/** Shows the state in the address, of the profile or of its snapshot. */
function restore() {
	if (asksForSnapshot() !== app.state.snapshot) {
		showPart(asksForSnapshot());
		return;
	}
	app.state = { ...parseHash(location.hash, app.defaults, app.model), snapshot: app.state.snapshot };
	byId('search').value = app.state.q;
	picture.back = [];
	timeline.back = [];
	update('tree');
}

/** Reads the profile, or the snapshot that belongs to it. */
async function readPart(isSnapshot) {
	const block = byId(isSnapshot ? 'snapshot' : 'data');
	app.models[isSnapshot] ??= await decode(block.textContent);
	// Frees the text of the data, which is no longer needed.
	block.textContent = '';
	app.model = app.models[isSnapshot];
	app.cache.clear();
	app.defaults = defaultState(app.model);
	app.state = { ...app.defaults, snapshot: isSnapshot };
}

/** Shows the profile or its snapshot, from its beginning. */
async function showPart(isSnapshot) {
	await readPart(isSnapshot);
	picture.back = [];
	timeline.back = [];
	describeProfile();
	showControls();
	update('tree');
}

async function main() {
	const hasSnapshot = byId('snapshot').textContent !== '';
	byId('go-snapshot').hidden = !hasSnapshot;
	try {
		await readPart(asksForSnapshot());
	} catch (error) {
		byId('facts').textContent = `The data of this page cannot be read: ${error.message}`;
		return;
	}
	describeProfile();
	showControls();
	startControls();
	startPicture();
	startTimeline();
	startStrip();
	startTable();
	startAnswer();
	startParallel();
	startSearch();
	startKeys();
	document.body.classList.add('ready');
	restore();
	performance.mark('picture');
	on(window, 'hashchange', restore);
	new ResizeObserver(
		beforeFrame(() => {
			drawPicture();
			drawStrip();
		}),
	).observe(byId('stage'));
	on(DARK, 'change', () => update('colours'));
}

main();
