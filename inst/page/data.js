// Reads the data of the page: base64 of gzip of JSON, in the element #data. The model consists of typed
// arrays with an entry for each node of the prefix tree of all stacks, since an object for each of
// 100,000 nodes would be slow. Nodes are in preorder: a node comes after its caller, and node 0 is the
// root.
'use strict';

const { abs, ceil, floor, max, min, round } = Math;

const UNKNOWN = '<unknown>';
const GC = '<GC>';

function base64ToBytes(text) {
	const binary = atob(text.trim());
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	return bytes;
}

async function gunzip(bytes) {
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
	return new Response(stream).text();
}

/** Restores numbers that are stored as differences. */
function undelta(differences, Type = Int32Array) {
	const out = new Type(differences.length);
	let sum = 0;
	for (let i = 0; i < differences.length; i++) {
		sum += differences[i];
		out[i] = sum;
	}
	return out;
}

async function decode(text) {
	return readModel(JSON.parse(await gunzip(base64ToBytes(text))));
}

function readModel(data) {
	if (data.format !== 1) throw new Error(`format ${data.format} of the data is not supported`);
	const { strings, functions } = withCommonExpression(data);
	const depth = undelta(data.nodes.depth);
	const n = depth.length;
	const parent = new Int32Array(n).fill(-1);
	const frame = Int32Array.from(data.nodes.frame);
	const path = [];
	let deepest = 0;
	for (let i = 0; i < n; i++) {
		const d = depth[i];
		path[d] = i;
		if (d > 0) parent[i] = path[d - 1];
		if (d > deepest) deepest = d;
	}
	return {
		title: data.title,
		generator: data.generator,
		options: data.options,
		strings,
		functions,
		frames: data.frames,
		n,
		depth,
		deepest,
		parent,
		frame,
		sources: data.sources,
		types: amounts(data),
		type: data.type,
		counts: data.counts,
		bytes: data.bytes,
		labels: data.labels.map((label) => ({ ...label, sets: new Set(undelta(label.set)) })),
		values: data.values.map((v) => ({ ...v, node: undelta(v.node) })),
		orders: data.order.map(readOrder),
		hasBase: data.sources.some((source) => source.base),
		/** The number of processes that worked together. */
		processes: data.sources.filter(isProcess).length,
		// The kinds of a heap snapshot, whose frames are what holds memory, the innermost ones types of objects.
		heap: data.heap,
		// The CPU time that R's thread used in seconds, if the time of the samples differs from it.
		used: data.used,
		// The CPU time of all threads, if there are others than R's.
		threads: data.threads,
		// The result of the comparison with the base as text, if there are runs to compare.
		comparison: data.comparison,
		// What the workers of parallel work did, if that is known.
		parallel: data.parallel,
		// 1 for nodes that frameworks add.
		plumbing: marked(n, undelta(data.plumbing)),
		hasPlumbing: data.plumbing.length > 0,
		// 1 for frames of the user's source files.
		mine: ofFiles(data, new Set(data.mine)),
		texts: data.texts,
	};
}

/** Strings and functions, in which the outermost functions of two expressions that are compared have a common name. */
function withCommonExpression({ comparison, strings, functions }) {
	const [base, ours, both] = comparison?.expression ?? [];
	if (both === undefined) return { strings, functions };
	const names = [base, ours];
	const name = functions.name.map((row) => (names.includes(strings[row]) ? strings.length : row));
	return { strings: [...strings, both], functions: { ...functions, name } };
}

/** 1 for each of these rows. */
function marked(n, rows) {
	const marks = new Uint8Array(n);
	for (const row of rows) marks[row] = 1;
	return marks;
}

/** 1 for each frame of a function in one of these files. */
function ofFiles({ functions, frames }, files) {
	return Uint8Array.from(frames.function, (f) => (f >= 0 && files.has(functions.file[f]) ? 1 : 0));
}

/**
 * The amounts that can be shown: the sample types, and time, if the period of each source is known.
 * `factor` has a number for each source, `type` is a row of the types of the data.
 */
function amounts(data) {
	const types = data.types.map((given, type) => ({ ...given, type, factor: null }));
	const factor = data.sources.map((source) => source.period);
	const counted = data.sources.filter((source) => source.samples > 0);
	if (data.counts >= 0 && factor.length > 0 && counted.every((source) => source.period > 0)) {
		types.push({ name: 'time', unit: 'nanoseconds', type: data.counts, factor });
	}
	return types;
}

/** Whether a source is one of several processes that worked together, whose recordings have a length. */
function isProcess(source) {
	return source.seconds !== undefined;
}

/** Samples as recorded: runs of samples with the same node, and where each run ends. */
function readOrder(order) {
	const ends = new Float64Array(order.run.length);
	let samples = 0;
	for (let i = 0; i < ends.length; i++) {
		samples += order.run[i];
		ends[i] = samples;
	}
	return {
		source: order.source,
		node: undelta(order.node),
		set: order.set,
		ends,
		samples,
		slices: order.slices && { ...order.slices, first: undelta(order.slices.first) },
		memory: order.memory,
		times: order.times && { ...order.times, sample: undelta(order.times.sample) },
		values: order.values.map((v) => ({ ...v, sample: undelta(v.sample ?? []), value: v.value ?? [] })),
	};
}

/** The first index with a value greater than `limit`; values are ascending. */
function firstAbove(values, limit) {
	let low = 0;
	let high = values.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (values[middle] > limit) high = middle;
		else low = middle + 1;
	}
	return low;
}

/** Adds the values of the samples `from` to `to` (exclusive) of an order to their nodes. */
function addSamples(order, type, factor, from, to, sums) {
	const values = order.values.find((v) => v.type === type);
	if (!values || from >= to) return;
	const { node, ends } = order;
	const constant = values.constant;
	const first = firstAbove(ends, from);
	if (constant !== 0) {
		let start = from;
		for (let run = first; start < to; run++) {
			const end = min(ends[run], to);
			if (node[run] >= 0) sums[node[run]] += (end - start) * constant * factor;
			start = end;
		}
	}
	let run = first;
	for (let i = firstAbove(values.sample, from - 1); i < values.sample.length; i++) {
		const sample = values.sample[i];
		if (sample >= to) break;
		while (ends[run] <= sample) run++;
		if (node[run] >= 0) sums[node[run]] += (values.value[i] - constant) * factor;
	}
}

/**
 * The sum of an amount for each node (self), over the sources and sets of labels for which `wanted` is true;
 * with `ranges` ({order, from, to}), only over the samples in these ranges that have a node. A garbage collection allocates nothing:
 * its bytes belong to its caller, as do those of native code and copies, if measured since the previous sample.
 */
function selfByNode(model, amount, wanted, ranges) {
	const sums = new Float64Array(model.n);
	if (amount) addSamplesOf(model, amount, wanted, ranges, sums);
	if (!amount?.allocated) return sums;
	const { parent, frame } = model;
	const gcFrames = framesOfGc(model);
	const nativeFrames = amount.since ? framesOfNative(model) : null;
	// For nodes in a collection, the node of its caller, otherwise -1.
	const caller = new Int32Array(model.n).fill(-1);
	// The innermost node of other code on the path to a node, -1 if there is none.
	const other = new Int32Array(model.n).fill(-1);
	for (let i = 1; i < model.n; i++) {
		const from = parent[i];
		caller[i] = caller[from] < 0 && gcFrames[frame[i]] && from > 0 ? from : caller[from];
		other[i] = nativeFrames?.[frame[i]] ? other[from] : i;
		const allocating = caller[i] < 0 ? i : caller[i];
		const to = other[allocating] < 0 ? allocating : other[allocating];
		if (to === i) continue;
		sums[to] += sums[i];
		sums[i] = 0;
	}
	return sums;
}

function addSamplesOf(model, amount, wanted, ranges, sums) {
	const factor = (source) => (amount.factor ? amount.factor[source] : 1);
	if (ranges) {
		for (const { order, from, to } of ranges) {
			if (wanted(order.source)) {
				addSamples(order, amount.type, factor(order.source), from, to, sums);
			}
		}
		return;
	}
	for (const { source, set, type, node, value } of model.values) {
		if (type !== amount.type || !wanted(source, set)) continue;
		const by = factor(source);
		for (let i = 0; i < node.length; i++) sums[node[i]] += value[i] * by;
	}
}

/**
 * The sum of the absolute values of samples with a stack. Shares are relative to it. For differences,
 * which have negative values, it is part of the data; otherwise it is computed from the sums, which are per run.
 */
function wholeOf(model, { type, factor }, wanted, ranges, sums, runs = 1) {
	const sized = model.values.filter((v) => !ranges && v.type === type && v.whole >= 0 && wanted(v.source));
	if (sized.length === 0) return sumWithStack(sums.map(abs));
	return sized.reduce((sum, { source, whole }) => sum + whole * (factor?.[source] ?? 1), 0) / runs;
}
