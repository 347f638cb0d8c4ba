// Callers and callees of the chosen function. Their trees are made for this function only: all
// callers of all functions would be millions of nodes.
'use strict';

const SHOWN_CALLS = 60;

/** Makes the trees of callers and callees, which the picture shows. */
function arrangeCalls() {
	const { state, tree, chosen } = app;
	app.sandwich =
		state.tab === 'calls' && chosen !== null
			? { callers: callersOf(tree, chosen), callees: calleesOf(tree, chosen) }
			: null;
}

/** The outermost nodes of a tree with their totals, and what remains as self. */
function callRows(tree, rest) {
	const rows = [];
	for (let i = tree.first[0]; i < tree.first[1]; i++) {
		const node = tree.callees[i];
		rows.push({ group: tree.group[node], value: tree.total[node], base: tree.baseTotal?.[node] });
	}
	if (tree.self[0] !== 0 || tree.baseSelf?.[0]) {
		rows.push({ group: -1, label: rest, value: tree.self[0], base: tree.baseSelf?.[0] });
	}
	return rows.sort((a, b) => b.value - a.value || (b.base ?? 0) - (a.base ?? 0));
}

function callsTable(title, tree, rest) {
	const { amount, model } = app;
	const all = tree.total[0];
	const rows = callRows(tree, rest);
	const row = ({ group, label, value, base }) => {
		const item = group >= 0 ? app.itemOf[group] : -1;
		const text = group >= 0 ? app.labels[group] : label;
		const cells = [
			element('td', { 'data-value': String(value) }, shareText(value, all)),
			element('td', { 'data-value': String(value) }, amountText(value, amount.unit)),
		];
		if (model.hasBase) {
			cells.push(
				element('td', { 'data-value': String(base) }, amountText(base, amount.unit)),
				element('td', {}, changeText(value, base)),
			);
		}
		const head = item >= 0 ? nameButton(item, text) : element('bdi', {}, text);
		return element('tr', {}, element('th', { scope: 'row' }, head), ...cells);
	};
	const labels = model.hasBase ? ['Share', 'Total', 'Total, base', 'Change'] : ['Share', 'Total'];
	const head = ['Function', ...labels].map((label) => element('th', { scope: 'col' }, label));
	const more = rows.length > SHOWN_CALLS ? `, the first ${SHOWN_CALLS} of ${whole.format(rows.length)}` : '';
	return element(
		'table',
		{ className: 'calls' },
		element('caption', {}, `${title}${more}`),
		element('thead', {}, element('tr', {}, ...head)),
		element('tbody', {}, ...rows.slice(0, SHOWN_CALLS).map(row)),
	);
}

function drawCalls() {
	const panel = byId('panel-calls');
	if (!app.sandwich) {
		panel.replaceChildren(
			element(
				'p',
				{ className: 'note' },
				'Choose a function in the picture or in the table to see what calls it and what it calls.',
			),
		);
		return;
	}
	const name = visible(app.items.names[app.state.select], 80);
	panel.replaceChildren(
		element('h3', {}, element('bdi', {}, name)),
		element('p', { className: 'note' }, describeItem(app.state.select)),
		callsTable('Called by', app.sandwich.callers, '(outermost)'),
		callsTable('Calls', app.sandwich.callees, '(itself)'),
	);
}
