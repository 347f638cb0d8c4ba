// What is known of a box or a row: the line below the picture, and the tooltip.
'use strict';

/** The line below the picture: the box under the pointer or the cursor, else the chosen function. */
function showDetail() {
	const { state } = app;
	const at = picture.hovered ?? picture.cursor;
	const chosen = state.select >= 0;
	let text = noValuesText();
	if (at) text = describeNode(picture.layers[at.layer].tree, at.node).join(' · ');
	else if (chosen) text = describeItem(state.select).join(' · ');
	else if (app.tree.width[0] !== 0) text = describeNode(app.tree, 0).join(' · ');
	byId('detail').textContent = text;
	byId('go-calls').hidden = !chosen || state.tab === 'calls';
	byId('go-code').hidden = !chosen || state.tab === 'code' || state.by === 'package' || !!app.model.heap;
}

/** Why the picture is empty. The tree of the model contains the stacks of all samples. */
function noValuesText() {
	const { model, amount, state } = app;
	if (model.n <= 1 || state.brush || state.source >= 0) return 'No samples with a stack.';
	const hasValues = (_, at) => model.values.some(({ type, node }) => type === at && node.at(-1) > 0);
	const others = model.types.filter(hasValues).map(({ name }) => visible(name, 60));
	const choose = others.length > 0 ? ` Choose ${others.join(' or ')}.` : '';
	return `All values of ${visible(amount.name, 60)} are 0.${choose}`;
}

/**
 * Total and self with their shares; if there is a base, also the values and shares in the base. In heap snapshots, only
 * types have a self value, which is their total.
 */
function sidesTexts(total, self, row) {
	const both = [total, self].map((values, i) => {
		const one = (side) =>
			`${shareText(values[side][row], app.wholes[side])} (${amountText(values[side][row], app.amount.unit)})`;
		const text = `${i ? 'self' : 'total'} ${one(0)}`;
		if (!app.model.hasBase) return text;
		return `${text}, base ${one(1)}, ${changeText(values[0][row], values[1][row])}`;
	});
	return app.model.heap ? [both[0]] : both;
}

/** The parts of the description of a node: name, places, total and self. */
function describeNode(tree, node) {
	const group = tree.group[node];
	const all = word('All samples with a stack', 'All memory');
	const texts = sidesTexts([tree.total, tree.baseTotal], [tree.self, tree.baseSelf], node);
	if (group < 0) return [isSandwich() ? rootName() : all, texts[0]];
	const name = app.model.heap && !isSandwich() ? pathText(tree, node) : app.labels[group];
	return [name, ...whereText(tree.groups, group, linesOfNode(tree, node)), ...texts];
}

/**
 * The path of a node of a heap snapshot. It ends with the last step that has a name and those inside of it: without the
 * name, they say little. If it is long, steps between its start and its end are left out, as in holders().
 */
function pathText(tree, node) {
	const outer = [];
	for (let at = node; at > 0; at = tree.parent[at]) outer.unshift(app.labels[tree.group[at]]);
	const isNamed = outer.map((step) => step.startsWith('$'));
	const end = outer.splice(max(isNamed.lastIndexOf(true), 0));
	if (end.length > 3) end.splice(1, end.length - 2, '…');
	const text = (steps) => [...steps, ...end].join(' > ');
	let shown = outer;
	for (let kept = outer.length - 1; kept >= 1 && text(shown).length > 100; kept--) {
		const first = ceil(kept / 2);
		shown = [...outer.slice(0, first), '…', ...outer.slice(outer.length - kept + first)];
	}
	return text(shown);
}

function describeItem(item) {
	const { items, figures } = app;
	return [
		visible(items.names[item]),
		...whereText(items, item),
		...sidesTexts(figures.total, figures.self, item),
	];
}

/** The lines of a function in one node, such as `:3` or `:3–8`. */
function linesOfNode({ nodeOf, groups, group }, node) {
	const { n, frame, frames } = app.model;
	if (!nodeOf || groups.by !== 'function') return '';
	let [first, last] = [Infinity, 0];
	for (let i = 1; i < n; i++) {
		const line = frames.line[frame[i]];
		// Frames that are not shown belong to the node of their caller.
		if (nodeOf[i] !== node || groups.ofFrame[frame[i]] !== group[node] || line <= 0) continue;
		first = min(first, line);
		last = max(last, line);
	}
	return last === 0 ? '' : first === last ? `:${first}` : `:${first}–${last}`;
}

/** File, package and kind of a group, as far as they are known; the kind R is omitted. */
function whereText(groups, row, lines = '') {
	const { strings } = app.model;
	const file = strings[groups.file[row]];
	const kind = strings[groups.kind[row]];
	const parts = [kind === 'r' ? '' : kind];
	if (groups.by !== 'package') parts.unshift(strings[groups.package[row]]);
	if (!['file', 'place'].includes(groups.by) && file) parts.unshift(baseName(file) + lines);
	return parts.filter(Boolean).map((text) => visible(text, 60));
}
