// The code: the lines with the largest values, and below them the source text with the figures of each line. For a
// function without source text, the lines that call it.
'use strict';

const SHOWN_LINES = 240;
const HOT_LINES = 8;

/** The number of hot lines that are shown. */
let hotLines = HOT_LINES;

/** The lines of each file, by row of its path in the strings; null for files without text. */
function sourceFiles() {
	if (!app.files) {
		const { texts, functions } = app.model;
		app.files = new Map(texts.map(({ file, text }) => [file, text.replace(/\n$/, '').split('\n')]));
		for (const file of functions.file) if (file > 0 && !app.files.has(file)) app.files.set(file, null);
	}
	return app.files;
}

/** The figures by line. */
function placeFigures() {
	app.places ??= app.figuresOf(app.groupsBy('place'));
	return app.places;
}

/** The rows of the figures by line for one file, by number of the line. */
function linesOf(file) {
	const groups = app.groupsBy('place');
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

/** The rows of lines with a value, the largest first, those with the same value by name. */
function byValue(values, base) {
	const { rank } = app.groupsBy('place');
	const size = (row) => max(abs(values[row]), abs(base?.[row] ?? 0));
	const rows = Array.from(values.keys()).filter((row) => size(row) > 0);
	return rows.sort((a, b) => size(b) - size(a) || rank[a] - rank[b]);
}

/** The place to show: from the state, else of the chosen function, else with the largest value. */
function placeToShow(files) {
	const { state, model } = app;
	let place = { file: model.texts[0]?.file ?? -1, line: 0 };
	if (state.file >= 0 && files.has(state.file)) place = { file: state.file, line: state.line };
	else if (state.select >= 0 && state.by !== 'package') place = chosenPlace(files);
	else {
		const groups = app.groupsBy('place');
		const best = byValue(placeFigures().self[0]).find((row) => files.get(groups.file[row]));
		if (best !== undefined) place.file = groups.file[best];
	}
	if (place.line === 0) {
		const { self } = placeFigures();
		let most = 0;
		for (const [line, row] of linesOf(place.file)) {
			const value = abs(self[0][row]);
			if (value > most) [most, place.line] = [value, line];
		}
	}
	return place;
}

/** For each side, the values of the innermost lines around the outermost calls of the chosen function. */
function callingLines() {
	const { model, items, state, sides } = app;
	const { ofFrame, n } = app.groupsBy('place');
	const inside = new Uint8Array(model.n);
	const totalOf = sides.map((values) => totals(model, values));
	const sums = sides.map(() => new Float64Array(n));
	for (let i = 1; i < model.n; i++) {
		let caller = model.parent[i];
		inside[i] = inside[caller];
		if (inside[i] || items.ofFrame[model.frame[i]] !== state.select) continue;
		inside[i] = 1;
		while (caller > 0 && ofFrame[model.frame[caller]] < 0) caller = model.parent[caller];
		if (caller > 0)
			totalOf.forEach((total, s) => {
				sums[s][ofFrame[model.frame[caller]]] += total[i];
			});
	}
	return sums;
}

/** Shows a line, and marks the boxes on it if no function is chosen. */
function showSource(file, line) {
	Object.assign(app.state, { file, line });
	arrangeChoice();
	stylePicture();
	refresh();
	scrollToChoice();
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
	picker.value = file;
	on(picker, 'change', () => {
		showSource(Number(picker.value), 0);
		byId('file').focus();
	});
	return element('label', {}, 'File ', picker);
}

function lineText(file, line) {
	return visible((sourceFiles().get(file)?.[line - 1] ?? '').replace(/\t/g, '    '), 400);
}

/** A table of lines, the largest value first; `sums` has the values of each side. */
function hotTable(caption, label, sums) {
	const { wholes, amount, model, state } = app;
	const groups = app.groupsBy('place');
	const rows = byValue(...sums);
	const largest = rows.length > 0 ? max(...sums.map((values) => abs(values[rows[0]]))) : 0;
	const body = rows.slice(0, hotLines).map((row) => {
		const [file, line] = [groups.file[row], groups.line[row]];
		const place = `${baseName(model.strings[file])}:${line}`;
		const button = element('button', {}, element('bdi', {}, visible(place, 80)));
		const cells = sums.map((values) => {
			const cell = element('td', { 'data-value': values[row] }, amountText(values[row], amount.unit));
			setBar(cell, values[row] / largest);
			return cell;
		});
		cells.push(element('td', {}, shareText(sums[0][row], wholes[0])));
		const head = element(
			'th',
			{ scope: 'row', className: 'code', 'data-name': groups.names[row] },
			lineText(file, line).trim(),
		);
		const made = element('tr', {}, ...cells, head, element('td', {}, button));
		on(made, 'click', () => {
			state.select = -1;
			showSource(file, line);
		});
		if (state.file === file && state.line === line) made.className = 'chosen';
		return made;
	});
	const labels = [label, ...(model.hasBase ? ['Base'] : []), 'Share', 'Code', 'Line'];
	const table = makeTable('hot-lines', caption, labels, body);
	if (rows.length <= hotLines) return [table];
	const more = () => {
		hotLines *= 4;
		drawCode();
	};
	return [table, moreButton(`More of ${whole.format(rows.length)} lines`, more)];
}

function sourceColumns() {
	const { model, wholes, places, amount } = app;
	const column = (label, values, show) => ({
		label,
		values,
		show: (value) => (value === 0 ? '' : show(value)),
	});
	const size = (value) => amountText(value, amount.unit);
	const columns = [
		column('Self', places.self[0], size),
		column('Total', places.total[0], size),
		column('Share', places.total[0], (value) => shareText(value, wholes[0])),
	];
	if (model.hasBase) columns.push(column('Base', places.total[1], size));
	if (model.bytes >= 0 && model.bytes !== amount.type) {
		const bytes = column(`Bytes${atLeast(model.types[model.bytes])}`, places.own[0], (value) =>
			amountText(value, 'bytes'),
		);
		bytes.largest = places.own[0].reduce((most, value) => max(most, value), 0);
		columns.push(bytes);
	}
	return columns;
}

/** The table of lines. Lines without figures have one empty cell for them. */
function sourceTable(numbers, file, rows, here) {
	const columns = sourceColumns();
	const total = app.places.total[0];
	const largest = max(0, ...[...rows.values()].map((row) => abs(total[row])));
	const cell = ({ values, show, largest: most }, row) => {
		const made = element('td', { 'data-value': values[row] }, show(values[row]));
		if (most > 0) setBar(made, values[row] / most);
		return made;
	};
	const body = numbers.map((number) => {
		const row = rows.get(number);
		const cells =
			row === undefined ? [element('td', { colSpan: columns.length })] : columns.map((c) => cell(c, row));
		const code = element('td', { className: 'code' }, lineText(file, number));
		const head = element('th', { scope: 'row' }, number);
		const made = element('tr', { 'data-line': number }, head, ...cells, code);
		if (number === here) made.className = 'chosen';
		if (row !== undefined && largest > 0) {
			made.classList.add('hot');
			made.style.setProperty('--heat-share', `${round((40 * abs(total[row])) / largest)}%`);
		}
		return made;
	});
	return makeTable('source', '', ['Line', ...columns.map(({ label }) => label), 'Code'], body);
}

/** The text of a file around a line, or its lines with figures. */
function sourceParts(files, { file, line }) {
	const lines = files.get(file);
	const rows = linesOf(file);
	if (!lines) {
		const why = file < 0 ? 'The file is unknown.' : 'The page does not contain the text of this file.';
		const numbers = [...rows.keys()].sort((a, b) => a - b).slice(0, SHOWN_LINES);
		return [note(why), sourceTable(numbers, file, rows, line)];
	}
	const last = lines.length;
	const from = max(1, min(round(line - SHOWN_LINES / 3), last - SHOWN_LINES + 1));
	const to = min(last, from + SHOWN_LINES - 1);
	const step = (label, by) => moreButton(label, () => showSource(file, min(max(1, line + by), last)));
	const numbers = Array.from({ length: to - from + 1 }, (_, i) => from + i);
	return [
		...(from > 1 ? [step('Earlier lines', -SHOWN_LINES / 2)] : []),
		sourceTable(numbers, file, rows, line),
		...(to < last ? [step('Later lines', SHOWN_LINES / 2)] : []),
	];
}

function drawCode() {
	const { state, items } = app;
	const panel = byId('panel-code');
	const files = sourceFiles();
	const { self } = placeFigures();
	let place = placeToShow(files);
	const hot = element('div', {
		id: 'hot',
		tabIndex: 0,
		role: 'region',
		'aria-label': 'Lines with the largest values',
	});
	const text = element('div', { id: 'text', tabIndex: 0, role: 'region', 'aria-label': 'Source text' });
	const isFunction = state.select >= 0 && state.file < 0 && items.by !== 'package';
	if (app.groupsBy('place').n === 0) {
		const why = 'No lines were recorded. In R, set options(keep.source = TRUE) before the code is parsed.';
		panel.replaceChildren(note(why));
		return;
	}
	if (isFunction && !files.get(place.file)) {
		const name = visible(items.names[state.select], 80);
		const calls = callingLines();
		hot.append(...hotTable(`${name} has no source text here. Lines that call it:`, 'Total', calls));
		const [first] = byValue(...calls);
		const { file, line } = app.groupsBy('place');
		if (first !== undefined) place = { file: file[first], line: line[first] };
	} else {
		hot.append(...hotTable('Lines with the largest values', 'Self', self));
	}
	text.append(filePicker(files, place.file), ...sourceParts(files, place));
	const top = [byId('hot')?.scrollTop ?? 0, byId('text')?.scrollTop ?? 0];
	panel.replaceChildren(hot, text);
	hot.scrollTop = top[0];
	text.scrollTop = top[1];
	const row = text.querySelector('.chosen');
	const isVisible =
		row &&
		row.offsetTop >= text.scrollTop &&
		row.offsetTop + row.offsetHeight <= text.scrollTop + text.clientHeight;
	// scrollIntoView() would also scroll a document in which this page is embedded.
	if (row && !isVisible) text.scrollTop = row.offsetTop - text.clientHeight / 2;
}
