// Shared by the tests: loads the scripts of the page, makes its data from lists of samples, and
// joins a page as the package does.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';

const folder = new URL('../../inst/page/', import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), 'utf8');
const template = read('page.html').replace(/^\t+/gm, '');
const SCRIPT = /<script src="(.*)"><\/script>\n/g;
const STYLE = /<link rel="stylesheet" href="(.*)">\n/g;

const scripts = [...template.matchAll(SCRIPT)].map((match) => match[1]);

/** The functions of the scripts that do not need a document. */
export function loadScripts() {
	const context = createContext({ atob, Blob, Response, DecompressionStream, URLSearchParams, Intl });
	for (const name of [
		'data',
		'tree',
		'figures',
		'text',
		'colours',
		'waits',
		'state',
		'search',
		'lanes',
		'slices',
		'memory',
		'strip',
		'timeline',
	]) {
		runInContext(read(`${name}.js`), context, { filename: `${name}.js` });
	}
	const selftest = new URL('../testthat/page/selftest.js', import.meta.url);
	runInContext(readFileSync(selftest, 'utf8'), context, { filename: 'selftest.js' });
	return (expression) => runInContext(expression, context);
}

function delta(values) {
	return values.map((value, i) => value - (i > 0 ? values[i - 1] : 0));
}

/** The kinds of frames of heap snapshots. */
export const heapKinds = ['root', 'binding', 'element', 'environment', 'type', 'attribute', 'code'];

/**
 * Data as the core writes them. A sample is {stack, source, values}: frames outermost first, as names or
 * as {name, file, line, start, package, kind}, a value for each of the types, and with `options.labels` the `set` of its
 * labels.
 */
export function makeData(samples, options = {}) {
	const types = options.types ?? [{ name: 'samples', unit: 'count' }];
	const sources = options.sources ?? [{}];
	const strings = [''];
	const text = (value = '') => {
		if (!strings.includes(value)) strings.push(value);
		return strings.indexOf(value);
	};
	const functions = { name: [], file: [], line: [], package: [] };
	const frames = { function: [], line: [], kind: [] };
	if (samples.some(({ stack }) => stack.some((frame) => frame?.alike))) frames.alike = [];
	const rows = new Map();
	const row = (table, key, columns) => {
		if (!rows.has(key)) {
			rows.set(key, Object.values(table)[0].length);
			for (const [name, value] of Object.entries(columns)) table[name].push(value);
		}
		return rows.get(key);
	};
	const frameRow = (given) => {
		const frame = typeof given === 'string' ? { name: given } : given;
		const { name, file, line = 0, start = 0, kind, alike } = frame;
		const f =
			name === null
				? -1
				: row(functions, `f ${name} ${file} ${start} ${frame.package}`, {
						name: text(name),
						file: text(file),
						line: start,
						package: text(frame.package),
					});
		const columns = { function: f, line, kind: text(kind) };
		if (frames.alike) columns.alike = text(alike);
		return row(frames, `r ${f} ${line} ${kind} ${alike}`, columns);
	};
	const root = { children: new Map(), frame: -1, depth: 0 };
	const leaves = samples.map(({ stack }) => {
		let node = root;
		for (const frame of stack.map(frameRow)) {
			if (!node.children.has(frame))
				node.children.set(frame, { children: new Map(), frame, depth: node.depth + 1 });
			node = node.children.get(frame);
		}
		return node;
	});
	const nodes = [];
	const open = [root];
	while (open.length > 0) {
		const node = open.pop();
		node.id = nodes.length;
		nodes.push(node);
		open.push(...[...node.children.values()].reverse());
	}
	const values = [];
	const order = [];
	sources.forEach((_, source) => {
		const own = samples
			.map((sample, i) => ({ ...sample, node: leaves[i].id }))
			.filter((s) => (s.source ?? 0) === source);
		const amountOf = (sample, type) => (sample.values ?? [1])[type] ?? 0;
		const sets = options.labels ? [...new Set(own.map(({ set }) => set))].sort() : [undefined];
		for (const set of sets) {
			types.forEach((_, type) => {
				const sums = new Map();
				for (const sample of own.filter((one) => one.set === set || !options.labels))
					sums.set(sample.node, (sums.get(sample.node) ?? 0) + amountOf(sample, type));
				const used = [...sums].filter(([, sum]) => sum !== 0).sort((a, b) => a[0] - b[0]);
				values.push({
					source,
					set,
					type,
					node: delta(used.map(([node]) => node)),
					value: used.map(([, sum]) => sum),
				});
			});
		}
		const runs = [];
		for (const { node, set } of own) {
			const last = runs.at(-1);
			if (last?.[0] === node && last[2] === set) last[1]++;
			else runs.push([node, 1, set]);
		}
		const ordered = types.map((_, type) => {
			const constant = type === 0 && own.every((sample) => amountOf(sample, 0) === 1) ? 1 : 0;
			const other = own
				.map((sample, i) => [i, amountOf(sample, type)])
				.filter(([, value]) => value !== constant);
			return { type, constant, sample: delta(other.map(([i]) => i)), value: other.map(([, value]) => value) };
		});
		if (options.timeline !== false)
			order.push({
				source,
				node: delta(runs.map(([node]) => node)),
				run: runs.map(([, n]) => n),
				...(options.labels ? { set: runs.map(([, , set]) => set) } : {}),
				values: ordered,
			});
	});
	const isPlumbing = (frame) =>
		frame >= 0 && /^(lapply|FUN|tryCatch)$/.test(strings[functions.name[frames.function[frame]]]);
	return {
		format: 1,
		generator: 'profile 2.0.0',
		title: options.title ?? 'test',
		options: { timeline: options.timeline !== false, labels: true },
		functions,
		frames,
		nodes: { depth: delta(nodes.map((node) => node.depth)), frame: nodes.map((node) => node.frame) },
		types,
		type: types.length > 0 ? 0 : -1,
		counts: types.findIndex((type) => type.unit === 'count'),
		bytes: types.findIndex((type) => type.unit === 'bytes'),
		labels: options.labels ?? [],
		sources: sources.map((source, i) => ({
			name: `run ${i + 1}`,
			type: 'rprof',
			period: 1e7,
			start: null,
			samples: samples.filter((sample) => (sample.source ?? 0) === i).length,
			base: false,
			...source,
		})),
		values,
		order,
		plumbing: delta(nodes.flatMap(({ frame }, node) => (isPlumbing(frame) ? [node] : []))),
		mine: (options.mine ?? []).map(text),
		texts: (options.texts ?? []).map(({ file, text: lines }) => ({ file: text(file), text: lines })),
		strings,
	};
}

/** The names of properties that all objects inherit. */
export const INHERITED = Object.getOwnPropertyNames(Object.prototype);
/** A profile in which everything has these names. */
export const inherited = makeData(
	INHERITED.map((name, i) => ({
		stack: [{ name, file: name, package: name, kind: name, line: 1 + i }],
		values: INHERITED.map((_, type) => (type === i ? 5 : 1)),
	})),
	{
		title: '__proto__',
		types: INHERITED.map((name) => ({ name, unit: name })),
		sources: [{ name: 'constructor', type: 'constructor', period: null }],
		texts: INHERITED.map((name) => ({ file: name, text: name })),
	},
);

export const encode = (data) => gzipSync(JSON.stringify(data)).toString('base64');

/** As the package joins files, see R/page.R: without indentation, empty lines, comments, and repeated directives. */
function joined(names) {
	const lines = names.flatMap((name) => read(name).split('\n')).map((line) => line.replace(/^\t+/, ''));
	return lines
		.filter((line) => !/^(\/\/|\/\*| \*|$)/.test(line))
		.filter((line, i, all) => line !== "'use strict';" || all.indexOf(line) === i)
		.map((line) => `${line}\n`)
		.join('');
}

export function joinPage(data) {
	const style = joined([...template.matchAll(STYLE)].map((match) => match[1]));
	const script = joined(scripts);
	const hash = (content) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
	const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}`;
	const parts = [
		['<meta charset="utf-8">', `$&<meta http-equiv="Content-Security-Policy" content="${policy}">`],
		['</head>', () => `<style>${style}</style></head>`],
		['application/octet-stream">', `$&${encode(data)}`],
		['</body>', () => `<script>${script}</script></body>`],
	];
	const html = template.replace(STYLE, '').replace(SCRIPT, '');
	return parts.reduce((page, [mark, content]) => page.replace(mark, content), html);
}
