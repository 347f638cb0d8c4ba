// The source text, with self, total and bytes of each line.
'use strict';

const SHOWN_LINES = 240;

/** Files whose text is in the page, or that have values, by row of their path in the strings. */
function sourceFiles() {
	if (app.files) return app.files;
	const { model } = app;
	const files = new Map(model.texts.map(({ file, text }) => [file, text.split('\n')]));
	for (const file of model.functions.file) if (file > 0 && !files.has(file)) files.set(file, null);
	app.files = files;
	return files;
}

/** Figures by file and line: a map from the number of the line to its row, for one file. */
function linesOf(file) {
	if (app.places === null) {
		const groups = app.groupsBy('place');
		app.places = { groups, figures: app.figuresOf(groups) };
	}
	const { groups } = app.places;
	const rows = new Map();
	for (let row = 0; row < groups.n; row++) if (groups.file[row] === file) rows.set(groups.line[row], row);
	return rows;
}

/** The file and line to show first: those of the chosen function, or the heaviest line. */
function findSource() {
	const { state, model, items } = app;
	const files = sourceFiles();
	if (state.file >= 0 && files.has(state.file)) return state.file;
	const item = state.select;
	if (item >= 0 && items.by !== 'package') {
		let best = -1;
		// A function can have several files: the one whose text is known is of more use.
		for (let f = 0; f < model.functions.name.length; f++) {
			const file = model.functions.file[f];
			const same =
				items.by === 'place' ? file === items.file[item] : model.functions.name[f] === items.name[item];
			if (same && file > 0 && (best < 0 || (files.get(file) && !files.get(best)))) best = file;
		}
		return best;
	}
	return model.texts.length > 0 ? model.texts[0].file : -1;
}

/** The line of a file to scroll to. */
function findLine(file, rows) {
	const { state, items, model } = app;
	if (state.line > 0) return state.line;
	if (state.select >= 0 && items.by === 'place' && items.file[state.select] === file)
		return items.line[state.select];
	if (state.select >= 0 && items.by === 'function') {
		const { functions } = model;
		for (let f = 0; f < functions.name.length; f++) {
			if (
				functions.name[f] === items.name[state.select] &&
				functions.file[f] === file &&
				functions.line[f] > 0
			) {
				return functions.line[f];
			}
		}
		const line = chosenLine(file);
		if (line > 0) return line;
	}
	let best = 1;
	let most = 0;
	for (const [line, row] of rows) {
		const value = app.places.figures.self[0][row];
		if (value > most) {
			most = value;
			best = line;
		}
	}
	return best;
}

/** The smallest line of the chosen function in a file. */
function chosenLine(file) {
	const { model, state, items } = app;
	const { functions, frames } = model;
	let line = 0;
	for (let i = 0; i < frames.function.length; i++) {
		const f = frames.function[i];
		if (f < 0 || functions.file[f] !== file || functions.name[f] !== items.name[state.select]) continue;
		if (frames.line[i] > 0 && (line === 0 || frames.line[i] < line)) line = frames.line[i];
	}
	return line;
}

function filePicker(file) {
	const { strings } = app.model;
	const files = [...sourceFiles()].sort(
		(a, b) => (b[1] !== null) - (a[1] !== null) || (strings[a[0]] < strings[b[0]] ? -1 : 1),
	);
	const picker = element('select', { id: 'file' });
	if (file < 0) picker.append(element('option', { value: '-1' }, 'choose a file'));
	for (const [row, lines] of files.slice(0, 500)) {
		picker.append(
			element('option', { value: String(row) }, `${visible(strings[row], 80)}${lines ? '' : ' (no text)'}`),
		);
	}
	picker.value = String(file);
	picker.addEventListener('change', () => {
		app.state.file = Number(picker.value);
		app.state.line = 0;
		refresh();
		byId('file').focus();
	});
	return element('label', {}, 'File ', picker);
}

/** The row of a line: number, figures and text. Lines without figures have one empty cell for them. */
function sourceLine(number, text, row, largest, here) {
	const { figures } = app.places;
	const { unit } = app.amount;
	const cells = [element('th', { scope: 'row' }, String(number))];
	const columns = sourceColumns();
	if (row === undefined) {
		cells.push(element('td', { colSpan: columns.length }));
	} else {
		for (const { values, show } of columns) {
			cells.push(
				element('td', { 'data-value': String(values(figures)[row]) }, show(values(figures)[row], unit)),
			);
		}
	}
	cells.push(element('td', { className: 'code' }, visible(text.replace(/\t/g, '    '), 400)));
	const made = element('tr', { 'data-line': String(number) }, ...cells);
	if (number === here) made.className = 'chosen';
	if (row !== undefined && largest > 0) {
		made.style.setProperty('--share', `${Math.round((40 * figures.total[0][row]) / largest)}%`);
		made.classList.add('hot');
	}
	return made;
}

function sourceColumns() {
	const { model, sums } = app;
	const share = (value) => (value === 0 ? '' : shareText(value, sums[0]));
	const columns = [
		{ label: 'Self', values: (f) => f.self[0], show: share },
		{ label: 'Total', values: (f) => f.total[0], show: share },
	];
	if (model.hasBase) {
		const base = (value) => (value === 0 ? '' : shareText(value, sums[1]));
		columns.push({ label: 'Total, base', values: (f) => f.total[1], show: base });
	}
	if (model.bytes >= 0) {
		const show = (value) => (value === 0 ? '' : amountText(value, 'bytes'));
		columns.push({ label: 'Bytes', values: (f) => f.own[0], show });
	}
	return columns;
}

function stepButton(label, line) {
	const button = element('button', { type: 'button', className: 'more' }, label);
	button.addEventListener('click', () => {
		app.state.line = line;
		refresh();
	});
	return button;
}

function drawSource() {
	const panel = byId('panel-source');
	const file = findSource();
	const lines = sourceFiles().get(file);
	const note = (text) => element('p', { className: 'note' }, text);
	if (sourceFiles().size === 0) {
		panel.replaceChildren(note('The profile has no files.'));
		return;
	}
	const rows = file >= 0 ? linesOf(file) : new Map();
	if (!lines) {
		const why =
			file >= 0
				? 'The page does not contain the text of this file.'
				: 'The file of this function is unknown.';
		panel.replaceChildren(filePicker(file), note(why));
		if (rows.size > 0)
			panel.append(sourceTable([...rows.keys()].sort((a, b) => a - b).slice(0, SHOWN_LINES), [], rows, 0));
		return;
	}
	const here = findLine(file, rows);
	const from = Math.max(1, Math.min(here - SHOWN_LINES / 3, lines.length - SHOWN_LINES + 1) | 0);
	const to = Math.min(lines.length, from + SHOWN_LINES - 1);
	const numbers = Array.from({ length: to - from + 1 }, (_, i) => from + i);
	panel.replaceChildren(filePicker(file));
	if (from > 1) panel.append(stepButton('Earlier lines', Math.max(1, here - SHOWN_LINES / 2)));
	panel.append(sourceTable(numbers, lines, rows, here));
	if (to < lines.length)
		panel.append(stepButton('Later lines', Math.min(lines.length, here + SHOWN_LINES / 2)));
	panel.querySelector(`tr[data-line="${here}"]`)?.scrollIntoView?.({ block: 'center' });
}

function sourceTable(numbers, lines, rows, here) {
	const { total } = app.places.figures;
	let largest = 0;
	for (const row of rows.values()) largest = Math.max(largest, total[0][row]);
	const head = ['Line', ...sourceColumns().map(({ label }) => label), 'Text'];
	const body = numbers.map((number) =>
		sourceLine(number, lines[number - 1] ?? '', rows.get(number), largest, here),
	);
	return element(
		'table',
		{ className: 'source' },
		element('thead', {}, element('tr', {}, ...head.map((label) => element('th', { scope: 'col' }, label)))),
		element('tbody', {}, ...body),
	);
}
