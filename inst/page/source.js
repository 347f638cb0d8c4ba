// The source text, with self, total and bytes of each line.
'use strict';

const SHOWN_LINES = 240;

/** The lines of each file, by row of its path in the strings; null for files without text. */
function sourceFiles() {
	if (!app.files) {
		const { texts, functions } = app.model;
		app.files = new Map(texts.map(({ file, text }) => [file, text.split('\n')]));
		for (const file of functions.file) if (file > 0 && !app.files.has(file)) app.files.set(file, null);
	}
	return app.files;
}

/** The rows of the figures by line for one file, by number of the line. */
function linesOf(file) {
	const groups = app.groupsBy('place');
	app.places ??= app.figuresOf(groups);
	const rows = new Map();
	for (let row = 0; row < groups.n; row++) if (groups.file[row] === file) rows.set(groups.line[row], row);
	return rows;
}

/**
 * The file and line of the chosen function or line. If a function has several files, a file with text is
 * preferred. The line is the first one in this file.
 */
function chosenPlace(files) {
	const { state, model, items } = app;
	const { functions, frames } = model;
	let best = { file: -1, line: 0 };
	for (let i = 0; i < items.ofFrame.length; i++) {
		const f = frames.function[i];
		if (items.ofFrame[i] !== state.select || f < 0 || functions.file[f] === 0) continue;
		const file = functions.file[f];
		const line = (items.by === 'function' && functions.line[f]) || frames.line[i];
		const better = best.file < 0 || (files.get(file) && !files.get(best.file));
		const earlier = file === best.file && line > 0 && (line < best.line || best.line === 0);
		if (better || earlier) best = { file, line };
	}
	return best;
}

/** The file and the line to show: from the state, else of the chosen function, else of the heaviest line. */
function placeToShow(files) {
	const { state, model } = app;
	let place = { file: model.texts[0]?.file ?? -1, line: 0 };
	if (state.file >= 0 && files.has(state.file)) place = { file: state.file, line: state.line };
	else if (state.select >= 0 && state.by !== 'package') place = chosenPlace(files);
	if (place.line === 0) {
		let most = 0;
		for (const [line, row] of linesOf(place.file)) {
			const value = Math.abs(app.places.self[0][row]);
			if (value > most) [most, place.line] = [value, line];
		}
	}
	return place;
}

function showSource(file, line) {
	Object.assign(app.state, { file, line });
	refresh();
}

function filePicker(files, file) {
	const { strings } = app.model;
	const order = (a, b) =>
		(files.get(b) !== null) - (files.get(a) !== null) || (strings[a] < strings[b] ? -1 : 1);
	const labels = [...files.keys()].sort(order).slice(0, 500);
	const picker = element('select', { id: 'file' });
	const entries = labels.map((row) => [
		row,
		visible(strings[row], 80) + (files.get(row) ? '' : ' (no text)'),
	]);
	fillSelect(picker, file < 0 ? [[-1, 'choose a file'], ...entries] : entries);
	picker.value = String(file);
	picker.addEventListener('change', () => {
		showSource(Number(picker.value), 0);
		byId('file').focus();
	});
	return element('label', {}, 'File ', picker);
}

function sourceColumns() {
	const { model, wholes, places } = app;
	const column = (label, values, show) => ({
		label,
		values,
		show: (value) => (value === 0 ? '' : show(value)),
	});
	const share = (side) => (value) => shareText(value, wholes[side]);
	const columns = [column('Self', places.self[0], share(0)), column('Total', places.total[0], share(0))];
	if (model.hasBase) columns.push(column('Total, base', places.total[1], share(1)));
	if (model.bytes >= 0) columns.push(column('Bytes', places.own[0], (value) => amountText(value, 'bytes')));
	return columns;
}

/** The table of lines. Lines without figures have one empty cell for them. */
function sourceTable(numbers, lines, rows, here) {
	const columns = sourceColumns();
	const total = app.places.total[0];
	const largest = Math.max(0, ...[...rows.values()].map((row) => Math.abs(total[row])));
	const cell = ({ values, show }, row) =>
		element('td', { 'data-value': String(values[row]) }, show(values[row]));
	const body = numbers.map((number) => {
		const row = rows.get(number);
		const cells =
			row === undefined ? [element('td', { colSpan: columns.length })] : columns.map((c) => cell(c, row));
		const code = element(
			'td',
			{ className: 'code' },
			visible((lines[number - 1] ?? '').replace(/\t/g, '    '), 400),
		);
		const head = element('th', { scope: 'row' }, String(number));
		const made = element('tr', { 'data-line': String(number) }, head, ...cells, code);
		if (number === here) made.className = 'chosen';
		if (row !== undefined && largest > 0) {
			made.classList.add('hot');
			made.style.setProperty('--share', `${Math.round((40 * Math.abs(total[row])) / largest)}%`);
		}
		return made;
	});
	return makeTable('source', '', ['Line', ...columns.map(({ label }) => label), 'Text'], body);
}

function drawSource() {
	const panel = byId('panel-source');
	const files = sourceFiles();
	const { file, line } = placeToShow(files);
	const lines = files.get(file);
	const rows = linesOf(file);
	panel.replaceChildren(filePicker(files, file));
	if (!lines) {
		const why = file < 0 ? 'The file is unknown.' : 'The page does not contain the text of this file.';
		const numbers = [...rows.keys()].sort((a, b) => a - b).slice(0, SHOWN_LINES);
		panel.append(note(why), sourceTable(numbers, [], rows, line));
		return;
	}
	const last = lines.length;
	const from = Math.max(1, Math.min(Math.round(line - SHOWN_LINES / 3), last - SHOWN_LINES + 1));
	const to = Math.min(last, from + SHOWN_LINES - 1);
	const step = (label, by) =>
		moreButton(label, () => showSource(file, Math.min(Math.max(1, line + by), last)));
	if (from > 1) panel.append(step('Earlier lines', -SHOWN_LINES / 2));
	panel.append(
		sourceTable(
			Array.from({ length: to - from + 1 }, (_, i) => from + i),
			lines,
			rows,
			line,
		),
	);
	if (to < last) panel.append(step('Later lines', SHOWN_LINES / 2));
	// scrollIntoView() would also scroll a document in which this page is embedded.
	panel.scrollTop = (panel.querySelector('.chosen')?.offsetTop ?? 0) - panel.clientHeight / 2;
}
