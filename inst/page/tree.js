// Call trees: frames are grouped by function, line, file or package, and paths with the same groups become
// one node. A tree has two sides, the profile and the base that it is compared with; without a base,
// the second side is zero. There is no recursion, since stacks may be thousands of frames deep. A node
// always comes after its caller, so a loop over the nodes is sufficient.
'use strict';

/** Groups of functions; calls within one of them are one node. */
const CONTAINERS = ['file', 'package'];

/**
 * The groups of frames. `ofFrame` has the group of each frame. By 'function', a group is a name: a
 * function can appear with several files, since it evaluates arguments that were written elsewhere. Siblings
 * in a heap snapshot that differ in a key only have a common name, such as `$key* (20)`; by 'name' each has its own. By
 * 'line' it is a name, a file and a line or an address. By 'place' it is a file and a line, and frames
 * without a file and a line have no group (-1).
 */
function groupFrames(model, by) {
	const { functions, frames, strings } = model;
	const n = frames.function.length;
	const groups = {
		by,
		n: 0,
		names: [],
		file: [],
		line: [],
		package: [],
		kind: [],
		found: [],
		ofFrame: new Int32Array(n),
	};
	const byLine = by === 'line' || by === 'place';
	const rows = new Map();
	for (let i = 0; i < n; i++) {
		const f = frames.function[i];
		const [name, file, pkg] = ['name', 'file', 'package'].map((column) => (f < 0 ? 0 : functions[column][f]));
		const line = frames.line[i];
		const alike = (by === 'function' && frames.alike?.[i]) || 0;
		const text = f < 0 ? UNKNOWN : strings[alike || name];
		// Frames without a symbol have an address.
		const address = frames.address?.[i] ?? 0;
		const where = line > 0 ? `:${line}` : address > 0 && address !== name ? ` ${strings[address]}` : '';
		const [key, label] = {
			function: [f < 0 ? -1 : alike || name, text],
			name: [f < 0 ? -1 : name, text],
			line: [`${f < 0 ? -1 : name} ${file} ${line} ${address}`, text + where],
			file: [file, strings[file] || 'unknown file'],
			package: [pkg, strings[pkg] || 'unknown package'],
			place: [file && line > 0 ? `${file} ${line}` : null, `${strings[file]}:${line}`],
		}[by];
		if (key === null) {
			groups.ofFrame[i] = -1;
			continue;
		}
		if (!rows.has(key)) {
			rows.set(key, groups.n++);
			groups.names.push(label);
		}
		const row = rows.get(key);
		groups.ofFrame[i] = row;
		groups.line[row] = byLine ? line : 0;
		groups.file[row] ||= by === 'package' ? 0 : file;
		groups.package[row] ||= by === 'file' ? 0 : pkg;
		groups.kind[row] ||= frames.kind[i];
		groups.found[row] ||= functions.found?.[f];
	}
	// The rank of each name in alphabetical order.
	const { names } = groups;
	const order = Array.from(names.keys());
	order.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
	groups.rank = new Int32Array(groups.n);
	order.forEach((row, place) => {
		groups.rank[row] = place;
	});
	return groups;
}

/**
 * The nodes of a tree that is being built; there are at most `size`, with the root. Nodes are found by
 * caller and group in a table with open addressing: Map takes five times as long.
 */
function newTree(size) {
	let mask = 1023;
	while (mask < 2 * size) mask = 2 * mask + 1;
	const slots = new Int32Array(mask + 1).fill(-1);
	const tree = { n: 1, parent: new Int32Array(size), group: new Int32Array(size), slots, mask };
	tree.parent[0] = -1;
	tree.group[0] = -1;
	return tree;
}

/** The callee of a node in this group, which is added if it is new. */
function callee(tree, node, group) {
	const { slots, mask } = tree;
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

/** Removes data that is needed only while a tree is built. */
function finished(tree) {
	return { n: tree.n, parent: tree.parent.slice(0, tree.n), group: tree.group.slice(0, tree.n) };
}

/**
 * What is shown of each node, as in `filter_profile()`: itself, or 0 for those that frameworks add, and for all but the
 * user's frames and what they call directly. If none on its path is shown, it is the negative of the outermost one, which
 * stands for the samples that end here.
 */
function shownNodes(model, { hide, mine }) {
	const shown = new Int32Array(model.n);
	const isMine = (node) => model.mine[model.frame[node]];
	const isPlumbing = (node) => hide && model.plumbing[node];
	// The innermost frame on the path that is not plumbing.
	const caller = new Int32Array(model.n);
	for (let i = 1; i < model.n; i++) {
		const parent = model.parent[i];
		const above = caller[parent];
		caller[i] = isPlumbing(i) ? above : i;
		if (!isPlumbing(i) && (!mine || isMine(i) || isMine(above))) shown[i] = i;
		else if (parent === 0 || (isPlumbing(-shown[parent]) && !isPlumbing(i))) shown[i] = -i;
		else if (shown[parent] < 0) shown[i] = shown[parent];
	}
	return shown;
}

/** How many nodes that frameworks add are on the paths of an average sample. */
function meanPlumbing(model) {
	const self = selfByNode(model, model.types[model.type], () => true, null);
	const above = new Uint32Array(model.n);
	let [sum, whole] = [0, 0];
	for (let i = 1; i < model.n; i++) {
		above[i] = above[model.parent[i]] + model.plumbing[i];
		sum += above[i] * abs(self[i]);
		whole += abs(self[i]);
	}
	return whole > 0 ? sum / whole : 0;
}

/**
 * The tree by group. Callees of nodes that `shown` leaves out (null: none) become callees of their caller. Consecutive
 * frames of one file or package are one node. `nodeOf` has the node to which the samples of each node of the model
 * belong.
 */
function fold(model, groups, shown) {
	const tree = newTree(model.n);
	const nodeOf = new Int32Array(model.n);
	const merges = CONTAINERS.includes(groups.by);
	// The node of the innermost frame that is shown.
	const inner = new Int32Array(model.n);
	for (let i = 1; i < model.n; i++) {
		const caller = inner[model.parent[i]];
		const group = groups.ofFrame[model.frame[i]];
		const same = (shown && shown[i] !== i) || (merges && tree.group[caller] === group);
		inner[i] = same ? caller : callee(tree, caller, group);
		nodeOf[i] = inner[i] || callee(tree, 0, groups.ofFrame[model.frame[-shown[i]]]);
	}
	return { ...finished(tree), groups, nodeOf };
}

/** Sums of values by the node that each belongs to; -1 for none. */
function sumByNode(n, nodeOf, values) {
	const sums = new Float64Array(n);
	// The samples of node 0 have no stack.
	for (let i = 1; i < values.length; i++) if (nodeOf[i] >= 0) sums[nodeOf[i]] += values[i];
	return sums;
}

/** Sets the sums of a tree from the sums of the model's nodes. */
function weigh(tree, ours, base, shares) {
	tree.self = sumByNode(tree.n, tree.nodeOf, ours);
	tree.baseSelf = base && sumByNode(tree.n, tree.nodeOf, base);
	return layOut(tree, shares);
}

/** The values of nodes and of everything that they call. */
function totals(tree, self) {
	const total = self.slice();
	for (let i = tree.n - 1; i > 0; i--) total[tree.parent[i]] += total[i];
	return total;
}

/**
 * Sets totals, widths and positions, and sorts callees by width. The size of a side is its total, or, if there are
 * negative values, the sum of the absolute self values in it. A node is as wide as its larger side, and at least as wide
 * as its callees. For `shares`, sides are divided by the size of the root.
 */
function layOut(tree, shares) {
	const { n, parent } = tree;
	tree.total = totals(tree, tree.self);
	tree.baseTotal = tree.baseSelf && totals(tree, tree.baseSelf);
	const sizes = (self, total) => (self.some((value) => value < 0) ? totals(tree, self.map(abs)) : total);
	tree.size = sizes(tree.self, tree.total);
	const baseSize = tree.baseSelf && sizes(tree.baseSelf, tree.baseTotal);
	const scale = (size) => (shares && size[0] !== 0 ? 1 / size[0] : 1);
	const ours = scale(tree.size);
	const base = baseSize ? scale(baseSize) : 0;
	const inner = new Float64Array(n);
	const width = new Float64Array(n);
	for (let i = n - 1; i >= 0; i--) {
		const larger = max(tree.size[i] * ours, baseSize ? baseSize[i] * base : 0);
		width[i] = max(larger, inner[i]);
		if (i > 0) inner[parent[i]] += width[i];
	}
	Object.assign(tree, { width, shares });
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
	const callees = new Int32Array(max(n - 1, 0));
	for (let i = 1; i < n; i++) callees[next[parent[i]]++] = i;
	const { rank } = groups;
	const order = (a, b) => width[b] - width[a] || rank[group[a]] - rank[group[b]];
	for (let i = 0; i < n; i++) {
		if (first[i + 1] > first[i] + 1) callees.subarray(first[i], first[i + 1]).sort(order);
	}
	Object.assign(tree, { first, callees });
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

/** The callees of the chosen groups: their subtrees, merged. The root represents the chosen groups. */
function calleesOf(tree, chosen) {
	const out = newTree(tree.n + 1);
	const nodeOf = new Int32Array(tree.n).fill(-1);
	for (const i of outermost(tree, chosen)) nodeOf[i] = 0;
	for (let i = 1; i < tree.n; i++) {
		const caller = nodeOf[tree.parent[i]];
		if (nodeOf[i] < 0 && caller >= 0) nodeOf[i] = callee(out, caller, tree.group[i]);
	}
	const made = { ...finished(out), groups: tree.groups, self: sumByNode(out.n, nodeOf, tree.self) };
	made.baseSelf = tree.baseSelf && sumByNode(out.n, nodeOf, tree.baseSelf);
	return layOut(made, tree.shares);
}

/**
 * The callers of the chosen groups, from the inside to the outside. The tree is built level by level.
 * Callers with less than `least` of the whole are not followed: all callers in a large profile are
 * millions of nodes, and a screen can show some thousand.
 */
function callersOf(tree, chosen, least = 1 / 4096) {
	// For each call from outside: its start, the current caller, and the node of this caller.
	const starts = Int32Array.from(outermost(tree, chosen));
	const at = starts.slice();
	const nodes = new Int32Array(starts.length);
	let calls = starts.length;
	const most = tree.n + calls + 1;
	const out = newTree(most);
	const sides = tree.baseTotal ? [tree.total, tree.baseTotal] : [tree.total];
	// A caller of a difference is not small because of negative values.
	const all = [...sides, ...sides.map((total) => total.map(abs))];
	const sums = all.map((total) => {
		const sum = new Float64Array(most);
		for (const i of starts) sum[0] += total[i];
		return sum;
	});
	const sizes = sums.splice(sides.length);
	const isLarge = (node) => sizes.some((size) => size[node] > least * size[0]);
	// Keeps the calls for which `keep` is true.
	const filterCalls = (keep) => {
		let kept = 0;
		for (let c = 0; c < calls; c++) {
			if (keep(c)) [starts[kept], at[kept], nodes[kept++]] = [starts[c], at[c], nodes[c]];
		}
		calls = kept;
	};
	while (calls > 0 && out.n < tree.n) {
		filterCalls((c) => {
			at[c] = tree.parent[at[c]];
			return at[c] > 0;
		});
		for (let c = 0; c < calls; c++) {
			nodes[c] = callee(out, nodes[c], tree.group[at[c]]);
			[...sums, ...sizes].forEach((sum, s) => {
				sum[nodes[c]] += all[s][starts[c]];
			});
		}
		filterCalls((c) => isLarge(nodes[c]));
	}
	const made = { ...finished(out), groups: tree.groups };
	const self = (total) => {
		const left = total.slice(0, made.n);
		for (let i = made.n - 1; i > 0; i--) left[made.parent[i]] -= total[i];
		return left;
	};
	[made.self, made.baseSelf = null] = sums.map(self);
	return layOut(made, tree.shares);
}
