// Self and total values by function, line, file or package: the figures of the table.
//
// As in summary() of the R package, a function that occurs several times in a stack is counted once,
// and the self value of a line is the value of the stacks in which it is the innermost known line.
'use strict';

/**
 * Sums by group. `sides` are sums for each node of the model; `own` are further sums, of which only
 * self values are needed. `shown`: see shownNodes(), null for all.
 */
function figuresByGroup(model, groups, shown, sides, own) {
	const { n, parent, depth, frame } = model;
	const totalOf = sides.map((values) => totals(model, values));
	const sums = (from) => from.map(() => new Float64Array(groups.n));
	const out = { self: sums(sides), total: sums(sides), own: sums(own), gc: sums(sides) };
	const add = (sums, row, values, i) => {
		for (let s = 0; row >= 0 && s < sums.length; s++) sums[s][row] += values[s][i];
	};
	const gcFrames = framesOfGc(model);
	// The group to which a node's own values are attributed, -1 for none.
	const selfGroup = new Int32Array(n).fill(-1);
	const open = new Int32Array(groups.n);
	const path = new Int32Array(model.deepest + 1).fill(-1);
	let length = 1;
	for (let i = 1; i < n; i++) {
		while (length > depth[i]) {
			length--;
			if (path[length] >= 0) open[path[length]]--;
		}
		const group = shown && shown[i] !== i ? -1 : groups.ofFrame[frame[i]];
		selfGroup[i] = group >= 0 ? group : selfGroup[parent[i]];
		// A group that stands for a path without one.
		const other = shown?.[i] < 0 ? groups.ofFrame[frame[-shown[i]]] : -1;
		path[length++] = group;
		if (group >= 0 && open[group]++ === 0) add(out.total, group, totalOf, i);
		add(out.total, other, sides, i);
		add(out.self, max(selfGroup[i], other), sides, i);
		add(out.own, max(selfGroup[i], other), own, i);
		if (gcFrames[frame[i]]) add(out.gc, max(selfGroup[parent[i]], other), totalOf, i);
	}
	return out;
}

/** 1 for each frame of a function whose name passes the test. */
function framesNamed(model, test) {
	const { strings, functions, frames } = model;
	const passes = functions.name.map((name) => test(strings[name]));
	return Uint8Array.from(frames.function, (f) => (f >= 0 && passes[f] ? 1 : 0));
}

function framesOfGc(model) {
	return framesNamed(model, (name) => name === GC);
}

/** 1 for each frame of native code, and for copies. */
function framesOfNative(model) {
	const { kind } = model.frames;
	return framesNamed(model, (name) => name === '<copy>').map(
		(is, i) => is || model.strings[kind[i]] === 'native',
	);
}

/** The sum of samples with a stack. */
function sumWithStack(self) {
	let sum = 0;
	for (let i = 1; i < self.length; i++) sum += self[i];
	return sum;
}

/**
 * The sum of the samples with a node of a matching group in their stack. Each sample is counted once,
 * even if several of its frames match.
 */
function matchedSum(tree, matches, self) {
	const inside = new Uint8Array(tree.n);
	let sum = 0;
	for (let i = 1; i < tree.n; i++) {
		inside[i] = inside[tree.parent[i]] | matches[tree.group[i]];
		if (inside[i]) sum += self[i];
	}
	return sum;
}
