// Callers and callees of the chosen function. Their trees are built only for this function: the callers
// of all functions would be millions of nodes.
'use strict';

const SHOWN_CALLS = 60;

/** Builds the trees of callers and callees for the picture. */
function arrangeCalls() {
	const { state, tree, chosen } = app;
	const wanted = state.tab === 'calls' && chosen !== null;
	app.sandwich = wanted ? { callers: callersOf(tree, chosen), callees: calleesOf(tree, chosen) } : null;
}

/** The outermost nodes of a tree with their totals; `rest` is the remaining total. */
function callRows(tree, rest) {
	const { itemOf, labels } = app;
	const rows = [];
	for (let i = tree.first[0]; i < tree.first[1]; i++) {
		const node = tree.callees[i];
		const group = tree.group[node];
		rows.push({
			item: itemOf[group],
			label: labels[group],
			value: tree.total[node],
			base: tree.baseTotal?.[node],
		});
	}
	if (tree.self[0] !== 0 || tree.baseSelf?.[0]) {
		rows.push({ item: -1, label: rest, value: tree.self[0], base: tree.baseSelf?.[0] });
	}
	return rows.sort((a, b) => abs(b.value) - abs(a.value) || (b.base ?? 0) - (a.base ?? 0));
}

function callsTable(title, tree, rest) {
	const { amount, model } = app;
	const rows = callRows(tree, rest);
	const size = (value) => element('td', { 'data-value': value }, amountText(value, amount.unit));
	const body = rows.slice(0, SHOWN_CALLS).map(({ item, label, value, base }) => {
		const head = item >= 0 ? nameButton(item, label) : element('bdi', {}, label);
		const cells = [element('td', {}, shareText(value, tree.size[0])), size(value)];
		if (model.hasBase) cells.push(size(base), element('td', {}, changeText(value, base)));
		return element('tr', {}, element('th', { scope: 'row' }, head), ...cells);
	});
	const labels = [word('Function', 'Holder'), 'Share', 'Total'];
	if (model.hasBase) labels.push('Base', 'Change');
	const more = rows.length > SHOWN_CALLS ? ` (${SHOWN_CALLS} of ${rows.length})` : '';
	return makeTable('calls', title + more, labels, body);
}

function drawCalls() {
	const { sandwich, items, state } = app;
	const parts = sandwich
		? [
				element('h3', {}, element('bdi', {}, visible(items.names[state.select], 80))),
				callsTable(word('Called by', 'Held by'), sandwich.callers, '(outermost)'),
				callsTable(word('Calls', 'Holds'), sandwich.callees, '(itself)'),
			]
		: [note('Choose a box in the picture or a row in the table.')];
	byId('panel-calls').replaceChildren(...parts);
}
