// The keyboard, and the help.
'use strict';

const ARROWS = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

function showHelp() {
	byId('help').showModal();
}

/** Esc: out of the zoom, then without the selection of time, the search and the chosen function. */
function escapeOnce() {
	const { state } = app;
	if (zoomBack()) return;
	if (state.brush) setBrush(null);
	else if (state.q) {
		state.q = '';
		byId('search').value = '';
		update('search');
	} else if (state.tab !== 'table') showTab('table');
	else if (state.select >= 0) choose(-1);
}

function stageKey(event) {
	if (ARROWS[event.key]) moveCursor(ARROWS[event.key]);
	else if (event.key === 'Enter' || event.key === ' ') {
		if (picture.cursor) activate(picture.cursor);
	} else return;
	event.preventDefault();
}

function stripKey(event) {
	if (event.key === 'ArrowLeft') moveBrush(-1, event.shiftKey);
	else if (event.key === 'ArrowRight') moveBrush(1, event.shiftKey);
	else return;
	event.preventDefault();
}

function startKeys() {
	byId('stage').addEventListener('keydown', stageKey);
	byId('strip').addEventListener('keydown', stripKey);
	byId('show-help').addEventListener('click', showHelp);
	byId('close-help').addEventListener('click', () => byId('help').close());
	byId('help').addEventListener('click', (event) => {
		// A click beside the dialog.
		if (event.target === byId('help')) byId('help').close();
	});
	document.addEventListener('keydown', (event) => {
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
			s: () => showTab('source'),
			t: () => showTab('table'),
		};
		if (!actions[event.key]) return;
		actions[event.key]();
		event.preventDefault();
	});
}
