// The selectors above the picture, and the tabs beside it.
'use strict';

function fillSelect(select, labels) {
	select.replaceChildren(...labels.map(([value, label]) => element('option', { value }, label)));
}

function typeLabel(type) {
	const { name, unit, factor } = type;
	if (factor) return isPerRun(app.model) ? 'time per run' : 'time';
	const shown = unit && unit !== 'count' ? `${visible(name, 60)} (${visible(unit, 30)})` : visible(name, 60);
	return shown + atLeast(type);
}

/** Shows the state in the selectors. */
function showState() {
	const { state } = app;
	for (const id of ['type', 'source', 'label', 'by', 'colour', 'layout', 'unit']) byId(id).value = state[id];
	for (const id of ['hide', 'mine']) byId(id).checked = state[id];
	const isHidden = app.model.hasPlumbing && state.hide && !state.mine;
	byId('hidden-rows').textContent = isHidden
		? `Hidden: about ${plural(max(1, round(app.model.meanPlumbing)), 'row')} of plumbing`
		: '';
	if (document.activeElement !== byId('search')) byId('search').value = state.q;
	Object.assign(document.querySelector('main').dataset, {
		tab: state.tab,
		layout: isTimeline() ? 'time' : '',
	});
	for (const tab of TABS) {
		const chosen = tab === state.tab;
		byId(`tab-${tab}`).setAttribute('aria-selected', chosen);
		byId(`tab-${tab}`).tabIndex = chosen ? 0 : -1;
		byId(`panel-${tab}`).hidden = !chosen;
		if (!chosen) byId(`panel-${tab}`).replaceChildren();
	}
}

function showTab(tab) {
	if (!tabsOf(app.model).includes(tab)) return;
	app.state.tab = tab;
	update('calls');
	if (document.activeElement?.id.startsWith('go-')) byId(`tab-${tab}`).focus();
}

function startTabs() {
	for (const tab of TABS) {
		const button = byId(`tab-${tab}`);
		on(button, 'click', () => showTab(tab));
		on(button, 'keydown', (event) => {
			const tabs = tabsOf(app.model);
			const by = { ArrowLeft: tabs.length - 1, ArrowRight: 1 }[event.key];
			if (!by) return;
			event.preventDefault();
			const next = tabs[(tabs.indexOf(tab) + by) % tabs.length];
			showTab(next);
			byId(`tab-${next}`).focus();
		});
	}
}

/** The selectors, and the first step of update() to repeat after a change. */
const SELECTORS = {
	type: 'weights',
	source: 'weights',
	label: 'weights',
	by: 'tree',
	colour: 'colours',
	unit: 'weights',
	layout: 'layout',
};

/** The options of the selectors, in their order. */
function selectorOptions() {
	const { model } = app;
	const { types, sources, labels, hasBase, heap, frames } = model;
	const runs = sources.map(({ name, base }, row) => [
		row,
		visible(name || `run ${row + 1}`, 60) + (base ? ' (base)' : ''),
	]);
	const same = (...values) => values.map((value) => [value, value]);
	const names = [
		['function', 'similar as one'],
		['name', 'each'],
	];
	return [
		types.map((type, row) => [row, typeLabel(type)]),
		runs.length > 1 ? [[-1, `all ${runs.length}`], ...runs] : runs,
		[[-1, 'all'], ...labels.map(({ key, value }, row) => [row, visible(`${key} = ${value}`, 60)])],
		!heap ? same('function', 'line', ...CONTAINERS) : frames.alike ? names : [],
		hasBase ? [] : same(...(heap ? [] : ['package', 'file']), 'kind', ...labelKeys(model)),
		hasBase ? same('amounts', 'shares') : [],
		same('icicle', 'flame', ...(model.orders.length > 0 ? ['time'] : [])),
	];
}

/** Shows the texts of the page for profiles of functions or, in `data-heap`, for heap snapshots; what has none is hidden. */
function showWords() {
	const { heap } = app.model;
	for (const made of document.querySelectorAll('[data-heap]')) {
		const ofHeap = made.dataset.heap;
		made.words ??= [...made.childNodes];
		if (ofHeap) made.replaceChildren(...(heap ? [ofHeap] : made.words));
		else made.hidden = !!heap;
	}
}

/** Shows the selectors that the profile has a use for: one with a single option is hidden. */
function showControls() {
	const { model } = app;
	showWords();
	const options = selectorOptions();
	Object.keys(SELECTORS).forEach((id, at) => {
		fillSelect(byId(id), options[at]);
		byId(id).parentElement.hidden = options[at].length < 2;
	});
	byId('hide').parentElement.hidden = !model.hasPlumbing;
	byId('mine').parentElement.hidden = !model.mine.includes(1);
}

function startControls() {
	for (const [id, level] of Object.entries(SELECTORS)) {
		const select = byId(id);
		on(select, 'change', () => {
			const { state, model } = app;
			state[id] = typeof state[id] === 'number' ? Number(select.value) : select.value;
			if (id === 'by') forgetNodes();
			// The selection has another unit if fewer processes have values of the type.
			if (id === 'source' || (id === 'type' && model.processes > 1)) state.brush = state.view = null;
			update(level);
		});
	}
	for (const id of ['hide', 'mine']) {
		on(byId(id), 'change', () => {
			app.state[id] = byId(id).checked;
			forgetZoom();
			update('tree');
		});
	}
	on(byId('reset'), 'click', () => {
		const { state, defaults } = app;
		const kept = ['type', 'by', 'colour', 'layout', 'unit', 'snapshot'].map((key) => [key, state[key]]);
		Object.assign(state, defaults, Object.fromEntries(kept));
		forgetZoom();
		byId('search').value = '';
		update('tree');
	});
	on(byId('go-snapshot'), 'click', () => showPart(!app.state.snapshot));
	startTabs();
}

function forgetZoom() {
	app.state.zoom = 0;
	picture.back = [];
}

/** Removes zoom and selection, which belong to the previous grouping. */
function forgetNodes() {
	app.state.select = -1;
	forgetZoom();
}

/** The time of the samples and the CPU time that R's thread used, if they differ: `, 1.7 s of 2.4 s used`. */
function usedTime(sources) {
	const { used } = app.model;
	if (used === undefined) return '';
	const time = sources.reduce((sum, source) => sum + source.samples * source.period, 0);
	const [shown, clock] = [time, used * 1e9].map((amount) => amountText(amount, 'nanoseconds'));
	return used * 1e9 > time ? `, ${shown} of ${clock} used` : `, ${shown}, R used ${clock}`;
}

/** `31 threads of libopenblas used 240 s, R's own 12 s; 4 processors are allowed.` `describe_profile()` says the same. */
function threadsText() {
	const { threads } = app.model;
	if (!threads) return '';
	const time = (cpu) => amountText(cpu, 'nanoseconds');
	const used = threads.others.map(({ name, count, cpu }) => {
		return [`${plural(count, 'thread')} of ${visible(name, 60)}`, time(cpu)];
	});
	if (threads.ended > 0) used.push(['threads that ended', time(threads.ended)]);
	used.push(["R's own", time(threads.r)]);
	const texts = used.map(([name, cpu], at) => (at === 0 ? `${name} used ${cpu}` : `${name} ${cpu}`));
	const { processors } = threads;
	const allowed =
		processors === undefined
			? ''
			: `; ${short.format(processors)} ${processors === 1 ? 'processor is' : 'processors are'} allowed`;
	return `${texts.join(', ')}${allowed}.`;
}

/** The lines about the whole profile: above the picture, and at the end of the page. */
function describeProfile() {
	const { model } = app;
	byId('title').textContent = visible(model.title || 'Profile', 120);
	document.title = visible(model.title || 'profile', 120);
	const counted = model.sources.filter((source) => source.samples > 0);
	const samples = counted.reduce((sum, source) => sum + source.samples, 0);
	const facts = [
		plural(samples, word('sample', 'path')) + usedTime(counted),
		plural(new Set(model.functions.name).size, word('function', 'holder')),
	];
	const periods = new Set(counted.map((source) => source.period));
	const [period] = periods;
	if (periods.size === 1 && period > 0) facts.push(`every ${amountText(period, 'nanoseconds')}`);
	if (model.processes > 1) facts.push(plural(model.processes, 'process', 'processes'));
	else if (model.comparison) facts.push('values per run');
	else if (counted.length > 1) facts.push(plural(counted.length, word('run', 'snapshot')));
	const start = model.sources[0]?.start;
	if (start) facts.push(new Date(start * 1000).toLocaleString());
	byId('facts').textContent = facts.join(' · ');
	byId('threads').textContent = threadsText();
	const paths = model.functions.file.some((file) => file > 0) ? 'contains' : 'does not contain';
	const texts =
		model.texts.length > 0 ? `the source text of ${plural(model.texts.length, 'file')}` : 'no source text';
	byId('contents').textContent = `This page contains ${texts}. It ${paths} paths of files.`;
	byId('generator').textContent = model.generator;
	byId('go-snapshot').textContent = app.state.snapshot
		? 'Back to the recording'
		: 'Snapshot of the heap at the peak';
}

/** The sum of the values that the picture leaves out, and what is to be known about the others. */
function describeLeftOut() {
	const { amount, leftOut } = app;
	const parts = [];
	if (leftOut !== 0) {
		const left = amountText(leftOut, amount.unit);
		parts.push(`Left out, without a stack (no function was recorded): ${left}.`);
	}
	if (amount.since) {
		parts.push('Measured since the previous sample: part of it belongs to code that ran before.');
		parts.push('record_profile(memory = "exact") records each vector.');
	}
	byId('left-out').textContent = parts.join(' ');
}

function drawLegend() {
	const { colours, model, scheme } = app;
	const change = (label, value) => ({ label, colour: changeColour(scheme, value, 0) });
	let { legend } = colours;
	if (model.hasBase) {
		const same = model.functions.found ? 'not certain' : 'same';
		legend = [change('less than base', -1), change(same, 0), change('more than base', 1)];
	} else if (app.isDifference) legend = [change('less', -1), change('more', 1)];
	const entries = legend.slice(0, 12);
	const more = legend.length - entries.length;
	const made = entries.map(({ label, colour }) => {
		const swatch = element('span', { className: 'swatch', 'aria-hidden': 'true' });
		swatch.style.backgroundColor = css(colour);
		return element('li', {}, swatch, element('bdi', {}, visible(label, 40)));
	});
	if (more > 0) made.push(element('li', {}, `and ${whole.format(more)} more`));
	byId('legend').replaceChildren(...made);
}
