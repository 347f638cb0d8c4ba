// The table of functions, lines or packages. It has the figures of the picture as text: exact values
// are in `data-value`, and full names in `data-name`.
'use strict';

const SHOWN_ROWS = 120;

/** The columns of the table: a label, the values by item, and whether to show them as shares. */
function tableColumns() {
	const { figures, model, amount, sums, state } = app;
	const [ours, base] = sums;
	const { unit } = amount;
	const noun = unit === 'count' ? amount.name : amount.name === 'time' ? 'time' : amount.name;
	const column = (id, label, title, values, show) => ({ id, label, title, values, show });
	const share = (all) => (value) => shareText(value, all);
	const size = (value) => amountText(value, unit);
	if (model.hasBase) {
		const shares = state.unit === 'share';
		const columns = [];
		for (const [id, label] of [
			['self', 'Self'],
			['total', 'Total'],
		]) {
			const [now, before] = figures[id];
			const a = shares ? now.map((value) => value / (ours || 1)) : now;
			const b = shares ? before.map((value) => value / (base || 1)) : before;
			const show = shares ? share(1) : size;
			const change = a.map((value, item) => value - b[item]);
			columns.push(
				column(id, label, `${label} of this profile`, a, show),
				column(`${id}Base`, `${label}, base`, `${label} of the base`, b, show),
				column(`${id}Change`, 'Change', `Change of ${id}`, change, (value, item) => {
					const sign = value > 0 ? '+' : '';
					return value === 0 ? '±0' : `${sign}${show(value)} (${changeText(a[item], b[item])})`;
				}),
			);
		}
		return columns;
	}
	const columns = [
		column('self', 'Self', 'Share of the values while it was running', figures.self[0], share(ours)),
		column('selfAmount', `Self ${noun}`, `${noun} while it was running`, figures.self[0], size),
		column('total', 'Total', 'Share of the values, with what it called', figures.total[0], share(ours)),
		column('totalAmount', `Total ${noun}`, `${noun}, with what it called`, figures.total[0], size),
	];
	if (model.bytes >= 0 && model.bytes !== amount.type) {
		const show = (value) => (value === 0 ? '' : amountText(value, 'bytes'));
		columns.push(column('bytes', 'Own bytes', 'Bytes allocated while it was running', figures.own[0], show));
	}
	if (figures.gc[0].some((value) => value !== 0)) {
		const show = (value) => (value === 0 ? '' : size(value));
		columns.push(column('gc', 'GC', 'Garbage collection that it called', figures.gc[0], show));
	}
	return columns;
}

/** Items with values, in the order of the table. */
function orderedItems(columns) {
	const { figures, items, state } = app;
	const rows = [];
	for (let item = 0; item < items.n; item++) {
		const used = figures.total.some((values) => values[item] !== 0);
		const matches = app.itemMatches === null || app.itemMatches[item];
		if (matches && (used || figures.own.some((values) => values[item] !== 0))) rows.push(item);
	}
	const down = state.sort.startsWith('-');
	const id = state.sort.replace('-', '');
	const { names } = items;
	const byName = (a, b) => items.rank[a] - items.rank[b];
	if (id === 'name') return rows.sort((a, b) => (down ? byName(b, a) : byName(a, b)));
	const sorted = (columns.find((column) => column.id === id) ?? columns[0]).values;
	const total = figures.total[0];
	const sign = down ? -1 : 1;
	return rows.sort(
		(a, b) => sign * (sorted[a] - sorted[b]) || total[b] - total[a] || byName(a, b) || names[a] - names[b],
	);
}

function sortBy(id) {
	const { state } = app;
	// Figures start with the largest one, names with the first one.
	if (state.sort.replace('-', '') === id) state.sort = state.sort.startsWith('-') ? id : `-${id}`;
	else state.sort = id === 'name' ? id : `-${id}`;
	refresh();
}

function headCell({ id, label, title }) {
	const { sort } = app.state;
	const sorted = sort.replace('-', '') === id ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none';
	const arrow = { none: '', ascending: ' ▴', descending: ' ▾' }[sorted];
	const button = element('button', { type: 'button', title }, `${label}${arrow}`);
	button.addEventListener('click', () => {
		sortBy(id);
		// The button was replaced.
		document.querySelector(`#panel-table th[data-column="${id}"] button`)?.focus();
	});
	return element('th', { scope: 'col', 'aria-sort': sorted, 'data-column': id }, button);
}

/** A cell with a figure; shares get a bar. */
function figureCell(column, item, largest) {
	const value = column.values[item];
	const cell = element(
		'td',
		{ 'data-column': column.id, 'data-value': String(value) },
		column.show(value, item),
	);
	if (largest > 0 && (column.id === 'self' || column.id === 'total')) {
		cell.className = 'bar';
		cell.style.setProperty('--share', `${(100 * Math.max(value, 0)) / largest}%`);
	}
	return cell;
}

/** The name of an item, as a button that chooses it. */
function nameButton(item, label) {
	const button = element('button', { type: 'button', 'data-item': String(item) }, element('bdi', {}, label));
	if (item === app.state.select) button.setAttribute('aria-current', 'true');
	return button;
}

function tableRow(columns, largest, item) {
	const { items, model } = app;
	const full = items.names[item];
	const file = model.strings[items.file[item]];
	const head = element('th', { scope: 'row', 'data-name': full }, nameButton(item, visible(full, 120)));
	const where = [items.by !== 'place' && file ? visible(baseName(file), 40) : ''];
	if (items.package[item] > 0 && items.by !== 'package')
		where.push(visible(model.strings[items.package[item]], 40));
	const text = where.filter(Boolean).join(', ');
	if (text) head.append(element('small', {}, text));
	if (items.by === 'place') {
		head.setAttribute('data-file', file);
		head.setAttribute('data-line', String(items.line[item]));
	}
	const cells = columns.map((column, c) => figureCell(column, item, largest[c]));
	const row = element('tr', {}, head, ...cells);
	if (item === app.state.select) row.className = 'chosen';
	return row;
}

function drawTable() {
	const { state, items } = app;
	const panel = byId('panel-table');
	const columns = tableColumns();
	const rows = orderedItems(columns);
	const shown = state.rows === 'all' ? rows : rows.slice(0, Number(state.rows) || SHOWN_ROWS);
	const largest = columns.map(({ values }) => rows.reduce((most, item) => Math.max(most, values[item]), 0));
	const title = { function: 'Functions', place: 'Lines', package: 'Packages' }[items.by];
	const count =
		shown.length < rows.length
			? `${whole.format(shown.length)} of ${whole.format(rows.length)}`
			: whole.format(rows.length);
	const label = { function: 'Function', place: 'File and line', package: 'Package' }[items.by];
	const head = [headCell({ id: 'name', label, title: 'Sort by name' }), ...columns.map(headCell)];
	const table = element(
		'table',
		{ id: 'figures' },
		element('caption', {}, `${title}: ${count}${app.matches ? ', those that match' : ''}`),
		element('thead', {}, element('tr', {}, ...head)),
		element('tbody', {}, ...shown.map((item) => tableRow(columns, largest, item))),
	);
	table.className = app.model.hasBase ? 'compares' : '';
	const top = panel.scrollTop;
	panel.replaceChildren(table);
	if (shown.length < rows.length) panel.append(moreButton(shown.length));
	panel.scrollTop = top;
}

function moreButton(shown) {
	const button = element('button', { type: 'button', className: 'more' }, 'More rows');
	button.addEventListener('click', () => {
		app.state.rows = String(2 * shown);
		refresh();
	});
	return button;
}

function startTable() {
	byId('side').addEventListener('click', (event) => {
		const button = event.target.closest('button[data-item]');
		if (!button) return;
		const item = Number(button.dataset.item);
		choose(item === app.state.select && app.state.tab === 'table' ? -1 : item);
		// Choosing draws the panel again.
		document.querySelector(`#side button[data-item="${item}"]`)?.focus({ preventScroll: true });
	});
}
