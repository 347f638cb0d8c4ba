// With #selftest in the address, the page shows its sums, the sizes of its trees and their widths as
// JSON, for tests to compare with figures that were computed elsewhere.
'use strict';

/** Nodes in preorder, with their names. */
function listNodes(tree, most) {
	const nodes = [];
	const open = [0];
	while (open.length > 0 && nodes.length < most) {
		const i = open.pop();
		if (i > 0) {
			nodes.push({
				depth: tree.depth[i],
				name: tree.groups.names[tree.group[i]],
				self: tree.self[i],
				total: tree.total[i],
				base: tree.baseTotal ? tree.baseTotal[i] : null,
				x: tree.x[i],
				width: tree.width[i],
			});
		}
		for (let at = tree.first[i + 1] - 1; at >= tree.first[i]; at--) {
			if (tree.width[tree.callees[at]] > 0) open.push(tree.callees[at]);
		}
	}
	return nodes;
}

/** Callees that do not fit in their caller, or do not start where the one before ends. */
function misplaced(tree) {
	let wrong = 0;
	const near = (a, b) => Math.abs(a - b) <= 1e-9 * tree.width[0];
	for (let i = 0; i < tree.n; i++) {
		let x = tree.x[i];
		for (let at = tree.first[i]; at < tree.first[i + 1]; at++) {
			const child = tree.callees[at];
			if (tree.width[child] === 0) continue;
			if (!near(tree.x[child], x)) wrong++;
			x += tree.width[child];
		}
		if (x > tree.x[i] + tree.width[i] && !near(x, tree.x[i] + tree.width[i])) wrong++;
	}
	return wrong;
}

function selftest(model, most = 2000) {
	const isWantedOf = (source) => (row) => source < 0 || row === source;
	const types = model.types.map((type) => {
		const sums = [-1, ...model.sources.keys()].map((source) => {
			const values = selfByNode(model, type, isWantedOf(source), null);
			return { source, sum: sumWithStack(values), leftOut: values[0] };
		});
		const ordered = model.orders.map((order) => {
			const range = [{ order, from: 0, to: order.samples }];
			const values = selfByNode(model, type, () => true, range);
			const half = [{ order, from: 0, to: order.samples >> 1 }];
			const first = selfByNode(model, type, () => true, half);
			return {
				source: order.source,
				samples: order.samples,
				sum: sumWithStack(values),
				leftOut: values[0],
				firstHalf: sumWithStack(first) + first[0],
			};
		});
		return { name: type.name, unit: type.unit, sums, ordered };
	});
	const side = (base) =>
		selfByNode(model, model.types[model.type], (row) => model.sources[row].base === base, null);
	const trees = ['function', 'line', 'package'].map((by) => {
		const groups = groupFrames(model, by);
		const tree = weigh(
			fold(model, groups, null),
			model,
			side(false),
			model.hasBase ? side(true) : null,
			false,
		);
		return {
			by,
			nodes: tree.n - 1,
			groups: groups.n,
			deepest: tree.deepest,
			width: tree.width[0],
			total: tree.total[0],
			base: tree.baseTotal ? tree.baseTotal[0] : null,
			misplaced: misplaced(tree),
			list: listNodes(tree, most),
		};
	});
	return { format: 1, title: model.title, nodes: model.n - 1, type: model.type, types, trees };
}

function showSelftest(model) {
	byId('selftest')?.remove();
	document.body.append(element('pre', { id: 'selftest' }, JSON.stringify(selftest(model))));
}
