// The selectors above the picture, and the tabs beside it.
'use strict';

function fillSelect(select, labels) {
	select.replaceChildren(
		...labels.map(([value, label]) => element('option', { value: String(value) }, label)),
	);
}

function typeLabel({ name, unit, factor }) {
	if (factor) return 'time (samples × interval)';
	return unit && unit !== 'count' ? `${visible(name, 60)} (${visible(unit, 30)})` : visible(name, 60);
}

/** Shows the state in the selectors. */
function showState() {
	const { state } = app;
	for (const id of ['type', 'source', 'by', 'colour', 'layout', 'unit']) byId(id).value = String(state[id]);
	byId('hide').checked = state.hide;
	if (document.activeElement !== byId('search')) byId('search').value = state.q;
	for (const tab of ['table', 'calls', 'source']) {
		const chosen = tab === state.tab;
		byId(`tab-${tab}`).setAttribute('aria-selected', String(chosen));
		byId(`tab-${tab}`).tabIndex = chosen ? 0 : -1;
		byId(`panel-${tab}`).hidden = !chosen;
		if (!chosen) byId(`panel-${tab}`).replaceChildren();
	}
}

function showTab(tab) {
	app.state.tab = tab;
	update('calls');
	if (document.activeElement?.id.startsWith('go-')) byId(`tab-${tab}`).focus();
}

function startTabs() {
	const tabs = ['table', 'calls', 'source'];
	for (const tab of tabs) {
		const button = byId(`tab-${tab}`);
		button.addEventListener('click', () => showTab(tab));
		button.addEventListener('keydown', (event) => {
			const by = { ArrowLeft: tabs.length - 1, ArrowRight: 1 }[event.key];
			if (!by) return;
			event.preventDefault();
			const next = tabs[(tabs.indexOf(tab) + by) % tabs.length];
			showTab(next);
			byId(`tab-${next}`).focus();
		});
	}
}

function startControls() {
	const { model, state } = app;
	fillSelect(
		byId('type'),
		model.types.map((type, row) => [row, typeLabel(type)]),
	);
	const sources = model.sources.map((source, row) => {
		const name = visible(source.name || `run ${row + 1}`, 60);
		return [row, source.base ? `${name} (base)` : name];
	});
	fillSelect(byId('source'), [[-1, `all ${sources.length}`], ...sources]);
	byId('type-label').hidden = model.types.length < 2;
	byId('source-label').hidden = model.sources.length < 2;
	byId('unit-label').hidden = !model.hasBase;
	byId('hide-label').hidden = !model.plumbing;
	byId('colour').parentElement.hidden = model.hasBase;
	const levels = {
		type: 'weights',
		source: 'weights',
		by: 'tree',
		colour: 'colours',
		layout: 'layout',
		unit: 'weights',
	};
	for (const [id, level] of Object.entries(levels)) {
		byId(id).addEventListener('change', () => {
			const value = byId(id).value;
			state[id] = /^-?\d+$/.test(value) ? Number(value) : value;
			if (id === 'by') forgetNodes();
			if (id === 'source') state.brush = null;
			update(level);
		});
	}
	byId('hide').addEventListener('change', () => {
		state.hide = byId('hide').checked;
		state.zoom = 0;
		picture.back = [];
		update('tree');
	});
	byId('reset').addEventListener('click', () => {
		Object.assign(state, {
			zoom: 0,
			brush: null,
			q: '',
			select: -1,
			file: -1,
			line: 0,
			hide: false,
			tab: 'table',
		});
		picture.back = [];
		byId('search').value = '';
		update('tree');
	});
	startTabs();
}

/** Nodes and items of one grouping mean nothing in another. */
function forgetNodes() {
	Object.assign(app.state, { zoom: 0, select: -1 });
	picture.back = [];
}

/** The lines about the whole profile: above the picture, and at the end of the page. */
function describeProfile() {
	const { model } = app;
	byId('title').textContent = visible(model.title || 'Profile', 120);
	document.title = visible(model.title || 'profile', 120);
	const samples = model.sources.reduce((sum, source) => sum + source.samples, 0);
	const functions = new Set(model.functions.name).size;
	const facts = [plural(samples, 'sample'), plural(functions, 'function')];
	const periods = new Set(model.sources.map((source) => source.period));
	const [period] = periods;
	if (periods.size === 1 && period > 0) facts.push(`every ${amountText(period, 'nanoseconds')}`);
	const start = model.sources[0]?.start;
	if (start) facts.push(new Date(start * 1000).toLocaleString());
	if (model.sources.length > 1) facts.push(plural(model.sources.length, 'run'));
	byId('facts').textContent = facts.join(' · ');
	const paths = model.functions.file.some((file) => file > 0);
	const texts = plural(model.texts.length, 'file');
	byId('contents').textContent = model.texts.length
		? `This page contains the source text of ${texts}${paths ? ', and paths of files' : ''}.`
		: paths
			? 'This page contains paths of files, but no source text.'
			: 'This page contains neither source text nor paths.';
	byId('generator').textContent = model.generator;
}

/** Values that are not in the picture, and why the picture may be empty. */
function describeLeftOut() {
	const { amount, leftOut } = app;
	const note = byId('left-out');
	note.hidden = leftOut === 0;
	note.textContent = leftOut === 0 ? '' : `Left out, without a stack: ${amountText(leftOut, amount.unit)}`;
}

function drawLegend() {
	const { colours, model } = app;
	const scheme = app.dark ? 'dark' : 'light';
	const entries = model.hasBase
		? [
				{ label: 'less than base', colour: changeColour(scheme, 1, 4) },
				{ label: 'same', colour: changeColour(scheme, 1, 1) },
				{ label: 'more than base', colour: changeColour(scheme, 4, 1) },
			]
		: colours.legend.slice(0, 12);
	const more = model.hasBase ? 0 : colours.legend.length - entries.length;
	const made = entries.map(({ label, colour }) => {
		const swatch = element('span', { className: 'swatch', 'aria-hidden': 'true' });
		swatch.style.backgroundColor = css(colour);
		return element('li', {}, swatch, element('bdi', {}, visible(label, 40)));
	});
	if (more > 0) made.push(element('li', {}, `and ${whole.format(more)} more`));
	byId('legend').replaceChildren(...made);
}
