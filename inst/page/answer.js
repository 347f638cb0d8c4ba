// The result of the comparison with the base, at the top of the page: the whole run with its interval and verdict, and
// the functions for which a difference was found. It is the text that compare_profiles() prints; nothing is computed here.
'use strict';

/** The rows of the table: lists of cells, the first one is the name. */
function answerRows({ columns, cells }) {
	const width = columns.length;
	return Array.from({ length: width && cells.length / width }, (_, row) =>
		cells.slice(row * width, (row + 1) * width),
	);
}

/** The item of a function in the picture, -1 if it is not there by the current grouping. */
function itemNamed(name) {
	return app.state.by === 'function' ? app.items.names.indexOf(name) : -1;
}

function startAnswer() {
	const { comparison } = app.model;
	if (!comparison) return;
	byId('answer').hidden = false;
	byId('answer').dataset.verdict = comparison.verdict;
	byId('answer-head').textContent = comparison.head;
	byId('answer-whole').textContent = `Whole run: ${comparison.whole}`;
	const rows = answerRows(comparison).map(([name, ...cells]) => {
		const button = element('button', {}, element('bdi', {}, visible(name, 120)));
		on(button, 'click', () => {
			const item = itemNamed(name);
			if (item >= 0) choose(item);
		});
		const head = element('th', { scope: 'row', 'data-name': name }, button);
		return element('tr', {}, head, ...cells.map((cell) => element('td', {}, cell)));
	});
	if (rows.length > 0) {
		const labels = comparison.columns.map((column) => column[0].toUpperCase() + column.slice(1));
		byId('answer-rows').append(makeTable('', '', labels, rows));
	}
	byId('answer-notes').append(...comparison.notes.map(note));
}
