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
	if (!TABS.includes(tab)) return;
	app.state.tab = tab;
	update('calls');
	if (document.activeElement?.id.startsWith('go-')) byId(`tab-${tab}`).focus();
}

function startTabs() {
	for (const tab of TABS) {
		const button = byId(`tab-${tab}`);
		on(button, 'click', () => showTab(tab));
		on(button, 'keydown', (event) => {
			const by = { ArrowLeft: TABS.length - 1, ArrowRight: 1 }[event.key];
			if (!by) return;
			event.preventDefault();
			const next = TABS[(TABS.indexOf(tab) + by) % TABS.length];
			showTab(next);
			byId(`tab-${next}`).focus();
		});
	}
}

/** The selectors, with their options and the first step of update() to repeat after a change. */
function selectors() {
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
		['type', types.map((type, row) => [row, typeLabel(type)]), 'weights'],
		['source', runs.length > 1 ? [[-1, `all ${runs.length}`], ...runs] : runs, 'weights'],
		[
			'label',
			[[-1, 'all'], ...labels.map(({ key, value }, row) => [row, visible(`${key} = ${value}`, 60)])],
			'weights',
		],
		['by', !heap ? same('function', 'line', ...CONTAINERS) : frames.alike ? names : [], 'tree'],
		[
			'colour',
			hasBase ? [] : same(...(heap ? [] : ['package', 'file']), 'kind', ...labelKeys(model)),
			'colours',
		],
		['unit', hasBase ? same('amounts', 'shares') : [], 'weights'],
		['layout', same('icicle', 'flame', ...(model.orders.length > 0 ? ['time'] : [])), 'layout'],
	];
}

/** Replaces the texts of the page by those for heap snapshots; what has none is hidden. */
function describeHeap() {
	TABS.shift();
	for (const made of document.querySelectorAll('[data-heap]')) {
		made.textContent = made.dataset.heap;
		made.hidden = !made.textContent;
	}
}

function startControls() {
	const { model, state } = app;
	if (model.heap) describeHeap();
	for (const [id, labels, level] of selectors()) {
		const select = byId(id);
		fillSelect(select, labels);
		// A selector with a single option is hidden.
		select.parentElement.hidden = labels.length < 2;
		on(select, 'change', () => {
			state[id] = typeof state[id] === 'number' ? Number(select.value) : select.value;
			if (id === 'by') forgetNodes();
			// The selection has another unit if fewer processes have values of the type.
			if (id === 'source' || (id === 'type' && model.processes > 1)) state.brush = state.view = null;
			update(level);
		});
	}
	for (const [id, isThere] of [
		['hide', model.hasPlumbing],
		['mine', model.mine.includes(1)],
	]) {
		const box = byId(id);
		box.parentElement.hidden = !isThere;
		on(box, 'change', () => {
			state[id] = box.checked;
			forgetZoom();
			update('tree');
		});
	}
	on(byId('reset'), 'click', () => {
		const kept = ['type', 'by', 'colour', 'layout', 'unit'].map((key) => [key, state[key]]);
		Object.assign(state, app.defaults, Object.fromEntries(kept));
		forgetZoom();
		byId('search').value = '';
		update('tree');
	});
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
	const paths = model.functions.file.some((file) => file > 0) ? 'contains' : 'does not contain';
	const texts =
		model.texts.length > 0 ? `the source text of ${plural(model.texts.length, 'file')}` : 'no source text';
	byId('contents').textContent = `This page contains ${texts}. It ${paths} paths of files.`;
	byId('generator').textContent = model.generator;
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
