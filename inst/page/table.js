// The table of functions, lines, files or packages. It has the figures of the picture as text: exact values
// are in `data-value`, and full names in `data-name`.
'use strict';

const SHOWN_ROWS = 120;

function makeTable(className, caption, labels, rows) {
	const head = labels.map((label) =>
		typeof label === 'string' ? element('th', { scope: 'col' }, label) : label,
	);
	const table = element('table', { className });
	if (caption) table.append(element('caption', {}, caption));
	table.append(element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows));
	return table;
}

function note(text) {
	return element('p', { className: 'note' }, text);
}

function moreButton(label, action) {
	const button = element('button', { className: 'more' }, label);
	on(button, 'click', action);
	return button;
}

/** The columns with figures: values by item, and how to show them. */
function tableColumns() {
	const { figures, model, amount, wholes, state } = app;
	const size = (value) => amountText(value, amount.unit);
	const share = (all) => (value) => shareText(value, all);
	const unlessZero = (show) => (value) => (value === 0 ? '' : show(value));
	if (!model.hasBase) {
		const [self, total] = [figures.self[0], figures.total[0]];
		const columns = [
			{ id: 'self', label: 'Self', values: self, show: share(wholes[0]) },
			{ id: 'total', label: 'Total', values: total, show: share(wholes[0]) },
			{ id: 'selfAmount', label: `Self ${amount.name}${atLeast(amount)}`, values: self, show: size },
			{ id: 'totalAmount', label: `Total ${amount.name}${atLeast(amount)}`, values: total, show: size },
		];
		if (model.bytes >= 0 && model.bytes !== amount.type) {
			const show = unlessZero((value) => amountText(value, 'bytes'));
			columns.push({
				id: 'bytes',
				label: `Own bytes${atLeast(model.types[model.bytes])}`,
				values: figures.own[0],
				show,
			});
		}
		const gc = figures.gc[0];
		if (gc.some((value) => value !== 0))
			columns.push({ id: 'gc', label: 'GC', values: gc, show: unlessZero(size) });
		return columns;
	}
	const shares = state.unit === 'shares';
	const show = shares ? share(1) : size;
	const columnsOf = (id, labels) => {
		const [now, base] = figures[id].map((values, side) =>
			shares ? values.map((v) => v / (wholes[side] || 1)) : values,
		);
		const change = now.map((value, item) => value - base[item]);
		const showChange = (value, item) =>
			value === 0 ? '±0' : `${value > 0 ? '+' : ''}${show(value)} (${changeText(now[item], base[item])})`;
		return [
			{ id: `${id}Base`, label: labels[0], values: base, show },
			{ id, label: labels[1], values: now, show },
			{ id: `${id}Change`, label: labels[2], values: change, show: showChange, isChange: true },
		];
	};
	// Of self, only the change: more columns would not fit beside the picture.
	return [...columnsOf('total', ['Base', 'New', 'Change']), columnsOf('self', ['', '', 'Self change'])[2]];
}

/**
 * Items with values that match the search, in the order of the table. Values of differences, which
 * may be negative, are ordered by absolute value; so are changes from a base, those that were found first. Changes of the
 * memory in use are ordered with their sign: what grows comes first.
 */
function orderedItems(columns) {
	const { figures, items, state, itemMatches, model } = app;
	const rows = [];
	for (let item = 0; item < items.n; item++) {
		// In differences, a total may be 0 although self is not.
		const hasValue = [...figures.total, ...figures.self].some((values) => values[item] !== 0);
		if ((!itemMatches || itemMatches[item]) && hasValue) rows.push(item);
	}
	const sign = state.sort.startsWith('-') ? -1 : 1;
	const id = state.sort.replace('-', '');
	const byName = (a, b) => items.rank[a] - items.rank[b];
	if (id === 'name') return rows.sort((a, b) => sign * byName(a, b));
	const column = columns.find((column) => column.id === id) ?? columns[0];
	const key = (item) => (column.isChange && model.heap ? column.values[item] : abs(column.values[item]));
	const isFound = (item) => (column.isChange && items.found[item] ? 1 : 0);
	const total = (item) => abs(figures.total[0][item]);
	const order = (a, b) => sign * (isFound(a) - isFound(b) || key(a) - key(b));
	return rows.sort((a, b) => order(a, b) || total(b) - total(a) || byName(a, b));
}

/** The head of a column, a button that sorts: figures from the largest, names in alphabetical order. */
function headCell({ id, label }) {
	const { state } = app;
	const sorted = state.sort === id ? 'ascending' : state.sort === `-${id}` ? 'descending' : 'none';
	const arrow = { none: '', ascending: '\u00a0▴', descending: '\u00a0▾' }[sorted];
	const button = element('button', {}, label + arrow);
	on(button, 'click', () => {
		const first = id === 'name' ? id : `-${id}`;
		const other = id === 'name' ? `-${id}` : id;
		state.sort = state.sort === first ? other : first;
		refresh();
		// The button was replaced.
		document.querySelector(`th[data-column="${id}"] button`)?.focus();
	});
	return element('th', { scope: 'col', 'aria-sort': sorted, 'data-column': id }, button);
}

/** The name of an item, as a button that chooses it. */
function nameButton(item, label) {
	const button = element('button', { 'data-item': item }, element('bdi', {}, label));
	if (item === app.state.select) button.setAttribute('aria-current', 'true');
	return button;
}

function tableRow(columns, largest, item) {
	const { items, model, state } = app;
	const name = items.names[item];
	const file = model.strings[items.file[item]];
	const head = element('th', { scope: 'row', 'data-name': name }, nameButton(item, visible(name, 120)));
	if (items.by === 'place') {
		head.setAttribute('data-file', file);
		head.setAttribute('data-line', items.line[item]);
	} else {
		head.append(element('small', {}, whereText(items, item).join(', ')));
	}
	const cells = columns.map(({ id, values, show }, c) => {
		const cell = element('td', { 'data-column': id, 'data-value': values[item] }, show(values[item], item));
		if (largest[c] > 0 && (id === 'self' || id === 'total')) setBar(cell, values[item] / largest[c]);
		return cell;
	});
	return element('tr', { className: item === state.select ? 'chosen' : '' }, head, ...cells);
}

function drawTable() {
	const { state, items, matches } = app;
	const panel = byId('panel-table');
	// In heap snapshots, only types have a self value, which is their total.
	const columns = tableColumns().filter(({ id }) => !app.model.heap || !/^self/.test(id));
	const rows = orderedItems(columns);
	const shown = state.rows === 'all' ? rows : rows.slice(0, Number(state.rows) || SHOWN_ROWS);
	const largest = columns.map(({ values }) => rows.reduce((most, item) => max(most, abs(values[item])), 0));
	const label = { place: 'Line', file: 'File', package: 'Package' }[items.by] ?? word('Function', 'Holder');
	const count =
		shown.length < rows.length
			? `${whole.format(shown.length)} of ${whole.format(rows.length)}`
			: rows.length;
	const head = [{ id: 'name', label }, ...columns].map(headCell);
	const body = shown.map((item) => tableRow(columns, largest, item));
	const table = makeTable('', `${label}s: ${count}${matches ? ' that match' : ''}`, head, body);
	table.id = 'figures';
	const top = panel.scrollTop;
	panel.replaceChildren(table);
	if (shown.length < rows.length) {
		const more = () => {
			state.rows = String(2 * shown.length);
			refresh();
		};
		panel.append(moreButton('More rows', more));
	}
	panel.scrollTop = top;
}

/** A click anywhere in a row chooses its item; the button in it is for the keyboard. */
function startTable() {
	on(byId('side'), 'click', (event) => {
		const button = event.target.closest('tr')?.querySelector('button[data-item]');
		if (!button || event.target.closest('thead')) return;
		const item = Number(button.dataset.item);
		choose(item === app.state.select && app.state.tab === 'table' ? -1 : item);
		// Choosing draws the panel again.
		document.querySelector(`#side button[data-item="${item}"]`)?.focus({ preventScroll: true });
	});
	on(byId('side'), 'mousemove', (event) => {
		const item = event.target.closest('tbody tr')?.querySelector('button[data-item]')?.dataset.item;
		if (item === undefined || event.target.closest('td')) hideTooltip();
		else showTooltip(event, describeItem(Number(item)));
	});
	on(byId('side'), 'mouseleave', hideTooltip);
}
