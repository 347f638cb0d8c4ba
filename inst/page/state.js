// The state of the view, and its form in the hash of the address, so that a link shows the same view.
'use strict';

const TABS = ['code', 'table', 'calls'];

/** The tabs that are shown: a heap snapshot has no code. */
function tabsOf({ heap }) {
	return heap ? TABS.slice(1) : TABS;
}

/** The labels of units of work. A page begins with their colours, which show which of them take the most time. */
const WORK_KEYS = /[.](test|chunk|target|route|reactive)$|^label task$/;

/** If frameworks add more rows than this to an average sample, they are hidden at first. */
const MOST_PLUMBING = 10;

/** The state that a page starts with, before the hash. */
function defaultState(model) {
	const { frames, texts, heap, hasBase, processes, orders } = model;
	const time = model.types.findIndex((type) => type.factor);
	model.meanPlumbing = meanPlumbing(model);
	return {
		// Counts of samples are shown as time, if their periods are known.
		type: time >= 0 && model.type === model.counts ? time : model.type,
		source: -1,
		label: -1,
		by: 'function',
		colour: heap ? 'kind' : (labelKeys(model).find((key) => WORK_KEYS.test(key)) ?? 'package'),
		hide: model.meanPlumbing > MOST_PLUMBING,
		mine: false,
		layout: processes > 1 && orders.length > 1 && !hasBase ? 'time' : 'icicle',
		unit: 'amounts',
		zoom: 0,
		q: '',
		brush: null,
		view: null,
		sort: hasBase ? '-totalChange' : heap ? '-total' : '-self',
		// A comparison begins with the functions that changed.
		tab: !hasBase && texts.length > 0 && frames.line.some((line) => line > 0) ? 'code' : 'table',
		select: -1,
		file: -1,
		line: 0,
		rows: '',
		// Whether the page shows the snapshot that belongs to its profile.
		snapshot: false,
	};
}

/** The keys of labels, as ways to colour. */
function labelKeys({ labels }) {
	return [...new Set(labels.map(({ key }) => `label ${key}`))];
}

/** The state in a hash; missing and invalid values are taken from `defaults`. */
function parseHash(hash, defaults, model) {
	const state = { ...defaults };
	const choices = {
		type: model.types.keys(),
		source: model.sources.keys(),
		label: model.labels.keys(),
		by: model.heap ? ['function', 'name'] : ['function', 'line', ...CONTAINERS],
		colour: ['package', 'file', 'kind', ...labelKeys(model)],
		layout: model.orders.length > 0 ? ['icicle', 'flame', 'time'] : ['icicle', 'flame'],
		unit: ['amounts', 'shares'],
		tab: tabsOf(model),
	};
	// A zoom is a row of the tree, which is another one if plumbing is hidden.
	if (/(^|[#&])zoom=/.test(hash)) state.hide = false;
	for (const [key, text] of new URLSearchParams(hash.replace(/^#/, ''))) {
		if (!Object.hasOwn(defaults, key)) continue;
		const kind = typeof defaults[key];
		const isNumber = /^\d{1,9}$/.test(text);
		const value = kind === 'boolean' ? text !== '0' : kind === 'number' && isNumber ? Number(text) : text;
		if (key === 'label' && !isNumber) {
			// Such as trace_id=..., for links from elsewhere. If no sample has it, none is shown.
			const row = model.labels.findIndex((label) => `${label.key}=${label.value}` === text);
			state.label = row < 0 ? -2 : row;
		} else if (key === 'brush' || key === 'view') {
			const [from, to] = text.split('-').map(Number);
			if (from >= 0 && from < to) state[key] = [from, to];
		} else if (typeof value === kind && [...(choices[key] ?? [value])].includes(value)) {
			state[key] = value;
		}
	}
	return state;
}

/** The hash of a state: the values that differ from `defaults`. */
function formatHash(state, defaults) {
	const out = new URLSearchParams();
	for (const [key, value] of Object.entries(state)) {
		if (value === defaults[key] && !(key === 'hide' && state.zoom > 0)) continue;
		if (Array.isArray(value)) out.set(key, value.map(round).join('-'));
		else if (typeof value === 'boolean') out.set(key, value ? '1' : '0');
		else out.set(key, value);
	}
	return out.toString();
}

let hashTimer = 0;

/** Writes the hash, a little later: browsers limit how often it may change. */
function saveState(state, defaults) {
	clearTimeout(hashTimer);
	hashTimer = setTimeout(() => {
		const hash = formatHash(state, defaults);
		if (hash === location.hash.replace(/^#/, '')) return;
		try {
			window.history.replaceState(null, '', hash ? `#${hash}` : location.href.replace(/#.*$/, ''));
		} catch {
			// An embedded page without its own address has no hash.
		}
	}, 150);
}
