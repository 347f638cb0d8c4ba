// Evaluated in a page by tests: its sums, the sizes of its trees and their widths. The tests compare them with figures
// that were computed independently.
'use strict';

/** Nodes in preorder, with their names. */
function listNodes(tree, most) {
	const nodes = [];
	const open = [0];
	while (open.length > 0 && nodes.length < most) {
		const i = open.pop();
		const { depth, self, total, width } = tree;
		const name = tree.groups.names[tree.group[i]];
		if (i > 0) nodes.push({ depth: depth[i], name, self: self[i], total: total[i], width: width[i] });
		for (let at = tree.first[i + 1] - 1; at >= tree.first[i]; at--) {
			if (width[tree.callees[at]] > 0) open.push(tree.callees[at]);
		}
	}
	return nodes;
}

/** Callees that do not fit in their caller, or do not start where the previous one ends. */
function misplaced(tree) {
	let wrong = 0;
	const near = (a, b) => Math.abs(a - b) <= 1e-9 * tree.width[0];
	for (let i = 0; i < tree.n; i++) {
		let x = tree.x[i];
		for (let at = tree.first[i]; at < tree.first[i + 1]; at++) {
			const child = tree.callees[at];
			if (tree.width[child] === 0) break;
			if (!near(tree.x[child], x)) wrong++;
			x += tree.width[child];
		}
		const end = tree.x[i] + tree.width[i];
		if (x > end && !near(x, end)) wrong++;
	}
	return wrong;
}

function selftest(model, most = 2000) {
	const { hasBase, sources, orders } = model;
	const sumOf = (type, wanted, ranges) => {
		const values = selfByNode(model, type, wanted, ranges);
		return { sum: sumWithStack(values), leftOut: values[0] };
	};
	const types = model.types.map((type) => ({
		name: type.name,
		unit: type.unit,
		sums: sources.map((_, row) => sumOf(type, (source) => source === row, null)),
		ordered: orders.map((order) => sumOf(type, () => true, [{ order, from: 0, to: order.samples }])),
	}));
	const side = (base) =>
		selfByNode(model, model.types[model.type], (row) => sources[row].base === base, null);
	const trees = ['function', 'line', 'package'].map((by) => {
		const tree = fold(model, groupFrames(model, by), null);
		weigh(tree, side(false), hasBase ? side(true) : null, false);
		const { n, width, total, baseTotal } = tree;
		const root = { width: width[0], total: total[0], base: baseTotal?.[0] };
		return { by, nodes: n - 1, ...root, misplaced: misplaced(tree), list: listNodes(tree, most) };
	});
	return { type: model.type, types, trees };
}
