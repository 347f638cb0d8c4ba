// What the workers of parallel work did, at the top of the page: the text that describe_profile() prints. Nothing is computed
// here.
'use strict';

function startParallel() {
	const { parallel } = app.model;
	if (!parallel) return;
	byId('parallel').hidden = false;
	byId('parallel-sentence').textContent = parallel.sentence;
	const rows = answerRows(parallel).map(([name, ...cells]) =>
		element('tr', {}, element('th', { scope: 'row' }, name), ...cells.map((cell) => element('td', {}, cell))),
	);
	byId('parallel-rows').append(makeTable('', '', parallel.columns, rows));
	byId('parallel-notes').append(...parallel.notes.map(note));
}
