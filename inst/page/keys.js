// The keyboard, and the help.
'use strict';

const ARROWS = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

function showHelp() {
	byId('help').showModal();
}

/** Esc leaves, one after the other, the zoom, the selection of time, the search, the chosen function and the tab. */
function escapeOnce() {
	const { state } = app;
	if (zoomBack()) return;
	if (state.brush) setBrush(null);
	else if (state.q) {
		state.q = '';
		byId('search').value = '';
		update('search');
	} else if (state.select >= 0 || state.line > 0) choose(-1);
	else if (state.tab !== app.defaults.tab) showTab(app.defaults.tab);
}

const TIMELINE_KEYS = {
	ArrowLeft: () => panView(-0.1),
	ArrowRight: () => panView(0.1),
	'+': () => zoomView(0.7),
	'=': () => zoomView(0.7),
	'-': () => zoomView(1 / 0.7),
};

function stageKey({ key }) {
	if (isTimeline()) {
		TIMELINE_KEYS[key]?.();
		return Object.hasOwn(TIMELINE_KEYS, key);
	}
	const isAction = (key === 'Enter' || key === ' ') && picture.cursor;
	if (ARROWS[key]) moveCursor(ARROWS[key]);
	else if (isAction) (key === ' ' ? selectBox : activate)(picture.cursor);
	return ARROWS[key] || isAction;
}

function stripKey({ key, shiftKey }) {
	const direction = { ArrowLeft: -1, ArrowRight: 1 }[key];
	if (direction) moveBrush(direction, shiftKey);
	return direction;
}

function startKeys() {
	for (const [id, action] of [
		['stage', stageKey],
		['strip', stripKey],
	]) {
		on(byId(id), 'keydown', (event) => {
			if (action(event)) event.preventDefault();
		});
	}
	on(byId('show-help'), 'click', showHelp);
	on(byId('close-help'), 'click', () => byId('help').close());
	on(document, 'keydown', (event) => {
		if (byId('help').open || event.ctrlKey || event.metaKey || event.altKey) return;
		const typing = event.target.matches('input[type=search], select');
		if (event.key === 'Escape') {
			if (typing) event.target.blur();
			escapeOnce();
			event.preventDefault();
			return;
		}
		if (typing) return;
		const actions = {
			'/': () => byId('search').focus(),
			'?': showHelp,
			c: () => showTab('calls'),
			s: () => showTab('code'),
			t: () => showTab('table'),
		};
		if (!actions[event.key]) return;
		actions[event.key]();
		event.preventDefault();
	});
}
