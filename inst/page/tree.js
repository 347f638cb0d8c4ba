// Call trees: frames are grouped by function, line or package, and paths with the same groups
// become one node. A tree has two sides, the profile and the base that it is compared with; without
// a base, the second side is zero.
//
// Nothing here is recursive: stacks may be thousands of frames deep. A node always comes after its
// caller, so that loops over nodes replace recursion.
'use strict';

/**
 * The groups of frames. `ofFrame` has the group of each frame. By 'function', a group is a name: R
 * shows one function in several files, if it evaluates arguments that were written elsewhere. By
 * 'line' it is a name, a file and a line. By 'place' it is a file and a line, and frames without a
 * line have no group (-1).
 */
function groupFrames(model, by) {
	const { functions, frames } = model;
	const rows = new Map();
	const groups = { by, n: 0, name: [], file: [], line: [], package: [], kind: [] };
	const ofFrame = new Int32Array(frames.function.length);
	for (let i = 0; i < ofFrame.length; i++) {
		const f = frames.function[i];
		const known = f >= 0;
		const name = known ? functions.name[f] : -1;
		const file = known ? functions.file[f] : 0;
		const pkg = known ? functions.package[f] : 0;
		const line = frames.line[i];
		let key = name;
		if (by === 'line') key = `${name} ${file} ${line}`;
		else if (by === 'package') key = pkg;
		else if (by === 'place') key = known && line > 0 ? `${file} ${line}` : null;
		if (key === null) {
			ofFrame[i] = -1;
			continue;
		}
		let row = rows.get(key);
		if (row === undefined) {
			row = groups.n++;
			rows.set(key, row);
			groups.name.push(by === 'package' ? pkg : name);
			groups.file.push(by === 'package' ? 0 : file);
			groups.line.push(by === 'line' || by === 'place' ? line : 0);
			groups.package.push(pkg);
			groups.kind.push(frames.kind[i]);
		} else {
			if (groups.file[row] !== file) groups.file[row] ||= file;
			groups.package[row] ||= pkg;
			groups.kind[row] ||= frames.kind[i];
		}
		ofFrame[i] = row;
	}
	groups.ofFrame = ofFrame;
	groups.names = groups.name.map((_, row) => groupName(model, groups, row));
	const order = Array.from(groups.names.keys());
	const { names } = groups;
	order.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
	groups.rank = new Int32Array(groups.n);
	for (let i = 0; i < order.length; i++) groups.rank[order[i]] = i;
	return groups;
}

/** The text that names a group. */
function groupName(model, groups, row) {
	const { strings } = model;
	const name = groups.name[row];
	if (groups.by === 'place') return `${strings[groups.file[row]]}:${groups.line[row]}`;
	if (groups.by === 'package') return name > 0 ? strings[name] : 'unknown package';
	const text = name >= 0 ? strings[name] : UNKNOWN;
	return groups.by === 'line' && groups.line[row] > 0 ? `${text}:${groups.line[row]}` : text;
}

/** A table of nodes by caller and group, with open addressing: Map takes five times as long. */
function nodeTable(size) {
	let mask = 1023;
	while (mask < 2 * size) mask = 2 * mask + 1;
	const slots = new Int32Array(mask + 1).fill(-1);
	return { slots, mask };
}

/** The nodes of a tree that is being built; there are at most `size`, with the root. */
function newTree(size) {
	const tree = { n: 1, parent: new Int32Array(size), group: new Int32Array(size), table: nodeTable(size) };
	tree.parent[0] = -1;
	tree.group[0] = -1;
	return tree;
}

/** The callee of a node in this group, which is added if it is new. */
function callee(tree, node, group) {
	const { slots, mask } = tree.table;
	let slot = (Math.imul(node, 0x9e3779b1) ^ Math.imul(group, 0x85ebca6b)) >>> 0;
	slot = (slot ^ (slot >>> 15)) & mask;
	while (slots[slot] >= 0) {
		const found = slots[slot];
		if (tree.parent[found] === node && tree.group[found] === group) return found;
		slot = (slot + 1) & mask;
	}
	const added = tree.n++;
	slots[slot] = added;
	tree.parent[added] = node;
	tree.group[added] = group;
	return added;
}

/** Removes what is only needed while a tree is built. */
function finished(tree) {
	return { n: tree.n, parent: tree.parent.slice(0, tree.n), group: tree.group.slice(0, tree.n) };
}

/**
 * The tree by group. `hidden` has 1 for frames to leave out: what they call is then called by their
 * caller. Consecutive frames of one package are one node. `nodeOf` has the node of each node of
 * the model.
 */
function fold(model, groups, hidden) {
	const tree = newTree(model.n);
	const nodeOf = new Int32Array(model.n);
	const merges = groups.by === 'package';
	for (let i = 1; i < model.n; i++) {
		const caller = nodeOf[model.parent[i]];
		const frame = model.frame[i];
		const group = groups.ofFrame[frame];
		const same = merges && tree.group[caller] === group;
		nodeOf[i] = hidden?.[frame] || same ? caller : callee(tree, caller, group);
	}
	return { ...finished(tree), groups, nodeOf };
}

/** Sets the sums of a tree from those of the nodes of the model. */
function weigh(tree, model, ours, base, shares) {
	const add = (values) => {
		const sums = new Float64Array(tree.n);
		// The samples without a stack are those of node 0.
		for (let i = 1; i < model.n; i++) sums[tree.nodeOf[i]] += values[i];
		return sums;
	};
	tree.self = add(ours);
	tree.baseSelf = base ? add(base) : null;
	return layOut(tree, shares);
}

function totals(tree, self) {
	const total = self.slice();
	for (let i = tree.n - 1; i > 0; i--) total[tree.parent[i]] += total[i];
	return total;
}

/**
 * Sets totals, widths and positions, and sorts callees in descending order of width. A node is as
 * wide as its larger side, and at least as wide as all of its callees. For `shares`, sides are
 * divided by their sum.
 */
function layOut(tree, shares) {
	const { n, parent } = tree;
	tree.total = totals(tree, tree.self);
	tree.baseTotal = tree.baseSelf && totals(tree, tree.baseSelf);
	const scale = (sum) => (shares && sum !== 0 ? 1 / sum : 1);
	const ours = scale(tree.total[0]);
	const base = tree.baseTotal ? scale(tree.baseTotal[0]) : 0;
	const inner = new Float64Array(n);
	const width = new Float64Array(n);
	for (let i = n - 1; i >= 0; i--) {
		const larger = Math.max(
			Math.abs(tree.total[i]) * ours,
			tree.baseTotal ? Math.abs(tree.baseTotal[i]) * base : 0,
		);
		width[i] = Math.max(larger, inner[i]);
		if (i > 0) inner[parent[i]] += width[i];
	}
	tree.width = width;
	tree.shares = Boolean(shares);
	sortCallees(tree);
	tree.x = new Float64Array(n);
	tree.depth = new Int32Array(n);
	tree.deepest = 0;
	const open = new Int32Array(n);
	let opened = 1;
	while (opened > 0) {
		const i = open[--opened];
		let x = tree.x[i];
		for (let at = tree.first[i]; at < tree.first[i + 1]; at++) {
			const child = tree.callees[at];
			if (width[child] === 0) break;
			tree.x[child] = x;
			x += width[child];
			tree.depth[child] = tree.depth[i] + 1;
			if (tree.depth[child] > tree.deepest) tree.deepest = tree.depth[child];
			open[opened++] = child;
		}
	}
	return tree;
}

/** The callees of node i are `callees[first[i]]` to `callees[first[i + 1] - 1]`. */
function sortCallees(tree) {
	const { n, parent, width, group, groups } = tree;
	const first = new Int32Array(n + 1);
	for (let i = 1; i < n; i++) first[parent[i] + 1]++;
	for (let i = 0; i < n; i++) first[i + 1] += first[i];
	const next = first.slice();
	const callees = new Int32Array(Math.max(n - 1, 0));
	for (let i = 1; i < n; i++) callees[next[parent[i]]++] = i;
	const { rank } = groups;
	const order = (a, b) => width[b] - width[a] || rank[group[a]] - rank[group[b]];
	for (let i = 0; i < n; i++) {
		const count = first[i + 1] - first[i];
		if (count === 2) {
			const at = first[i];
			if (order(callees[at], callees[at + 1]) > 0) callees.subarray(at, at + 2).reverse();
		} else if (count > 2) {
			callees.subarray(first[i], first[i + 1]).sort(order);
		}
	}
	tree.first = first;
	tree.callees = callees;
}

/** Nodes of the chosen groups that no other chosen node contains: recursion counts once. */
function outermost(tree, chosen) {
	const inside = new Uint8Array(tree.n);
	const found = [];
	for (let i = 1; i < tree.n; i++) {
		inside[i] = inside[tree.parent[i]];
		if (!inside[i] && chosen[tree.group[i]]) {
			inside[i] = 1;
			found.push(i);
		}
	}
	return found;
}

/** What the chosen groups call: their subtrees, merged. The root stands for the chosen groups. */
function calleesOf(tree, chosen) {
	const out = newTree(tree.n + 1);
	const nodeOf = new Int32Array(tree.n).fill(-1);
	for (const i of outermost(tree, chosen)) nodeOf[i] = 0;
	for (let i = 1; i < tree.n; i++) {
		const caller = nodeOf[tree.parent[i]];
		if (nodeOf[i] < 0 && caller >= 0) nodeOf[i] = callee(out, caller, tree.group[i]);
	}
	const add = (values) => {
		const sums = new Float64Array(out.n);
		for (let i = 1; i < tree.n; i++) if (nodeOf[i] >= 0) sums[nodeOf[i]] += values[i];
		return sums;
	};
	const made = { ...finished(out), groups: tree.groups, self: add(tree.self) };
	made.baseSelf = tree.baseSelf && add(tree.baseSelf);
	return layOut(made, tree.shares);
}

/**
 * What calls the chosen groups, from the inside to the outside. It is built level by level, and
 * callers with less than `least` of the whole are not followed: all callers of a large profile are
 * millions of nodes, of which a screen can show some thousand.
 */
function callersOf(tree, chosen, least = 1 / 4096) {
	const starts = outermost(tree, chosen);
	const out = newTree(tree.n + starts.length + 1);
	const sides = tree.baseTotal ? [tree.total, tree.baseTotal] : [tree.total];
	const sums = sides.map(() => new Float64Array(tree.n + starts.length + 1));
	for (const i of starts) {
		for (let s = 0; s < sides.length; s++) sums[s][0] += sides[s][i];
	}
	const floor = sums.map((sum) => Math.abs(sum[0]) * least);
	// Each call from outside: where it starts, the caller reached, and the node of this caller.
	let calls = starts;
	let at = starts;
	let nodes = starts.map(() => 0);
	while (calls.length > 0 && out.n < tree.n) {
		const next = { calls: [], at: [], nodes: [] };
		for (let c = 0; c < calls.length; c++) {
			const caller = tree.parent[at[c]];
			if (caller <= 0) continue;
			const node = callee(out, nodes[c], tree.group[caller]);
			for (let s = 0; s < sides.length; s++) sums[s][node] += sides[s][calls[c]];
			next.calls.push(calls[c]);
			next.at.push(caller);
			next.nodes.push(node);
		}
		const large = (node) => sums.some((sum, s) => Math.abs(sum[node]) > floor[s]);
		const keep = next.nodes.map(large);
		calls = next.calls.filter((_, c) => keep[c]);
		at = next.at.filter((_, c) => keep[c]);
		nodes = next.nodes.filter((_, c) => keep[c]);
	}
	const made = { ...finished(out), groups: tree.groups };
	const self = (total) => {
		const left = total.slice(0, made.n);
		for (let i = made.n - 1; i > 0; i--) left[made.parent[i]] -= total[i];
		return left;
	};
	made.self = self(sums[0]);
	made.baseSelf = sides.length > 1 ? self(sums[1]) : null;
	return layOut(made, tree.shares);
}
