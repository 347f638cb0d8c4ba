// Tests of what the page computes, without a browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode, heapKinds, INHERITED, inherited, joinPage, loadScripts, makeData } from './page.mjs';

const page = loadScripts();
const call = (name, ...given) => page(name)(...given);
const plain = (value) => JSON.parse(JSON.stringify(value, (_, v) => (ArrayBuffer.isView(v) ? [...v] : v)));

function luminance(rgb) {
	const [r, g, b] = rgb.map((value) => {
		const x = value / 255;
		return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** WCAG's contrast of two colours. */
function contrast(one, other) {
	const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
	return (high + 0.05) / (low + 0.05);
}

/** A path of a random walk among few functions, so that there is recursion. */
function randomSamples(seed, count) {
	let state = seed;
	const random = (n) => {
		state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
		return Math.floor((state / 0x80000000) * n);
	};
	const frame = () => {
		const name = ['f', 'g', 'h', 'lapply', 'FUN', '<GC>', '<copy>', null][random(8)];
		const line = random(4);
		return { name, file: ['', 'a.R', 'b.R'][random(3)], line, package: ['', 'base', 'own'][random(3)] };
	};
	return Array.from({ length: count }, () => ({
		stack: Array.from({ length: random(7) }, frame),
		source: random(2),
		values: [1 + random(3), random(5) * 8],
	}));
}

const twoTypes = {
	types: [
		{ name: 'samples', unit: 'count' },
		{ name: 'alloc_size', unit: 'bytes', allocated: true },
	],
	sources: [{ period: 1e7 }, { period: 2e7, base: true }],
};
const amount = (model, type = 0) => model.types[type];
const all = () => true;

test('data are decoded', async () => {
	const data = makeData([{ stack: ['f', 'g'] }, { stack: ['f'] }, { stack: [] }], { title: 'ünïcode' });
	const model = await call('decode', `\n${encode(data)}\n`);
	assert.equal(model.title, 'ünïcode');
	assert.equal(model.n, 3);
	assert.deepEqual([...model.parent], [-1, 0, 1]);
	assert.deepEqual([...call('selfByNode', model, amount(model), all, null)], [1, 1, 1]);
});

test('an unknown format is an error', () => {
	assert.throws(() => call('readModel', { ...makeData([]), format: 2 }), /format 2/);
});

test('a profile without samples has an empty tree', () => {
	const model = call('readModel', makeData([], { types: [] }));
	const tree = call('fold', model, call('groupFrames', model, 'function'), null);
	call('weigh', tree, new Float64Array(1), null, false);
	assert.equal(tree.n, 1);
	assert.equal(tree.width[0], 0);
});

test('time is there only if the period of each source with counts is known', () => {
	const names = (sources) =>
		call(
			'readModel',
			makeData([], { sources: sources.map((source) => ({ samples: 1, ...source })) }),
		).types.map((type) => type.name);
	const allocations = { period: null, samples: 0 };
	assert.deepEqual(plain(names([{ period: 1e7 }, allocations])), ['samples', 'time']);
	assert.deepEqual(plain(names([{ period: 1e7 }, { period: 5 }])), ['samples', 'time']);
	assert.deepEqual(plain(names([{ period: 1e7 }, { period: null }])), ['samples']);
});

test('bytes since the previous sample belong to the caller of native code and of copies', () => {
	const native = { name: 'memcpy', kind: 'native' };
	const samples = [['f', native, '<copy>'], ['f', 'g', '<copy>'], ['<copy>']];
	for (const since of [true, false]) {
		const types = [{ name: 'alloc_size', unit: 'bytes', allocated: true, since }];
		const data = makeData(
			samples.map((stack, i) => ({ stack, values: [8 << i] })),
			{ types },
		);
		const model = call('readModel', data);
		const groups = call('groupFrames', model, 'function');
		const self = call('selfByNode', model, amount(model), all, null);
		const [sums] = call('figuresByGroup', model, groups, null, [self], []).self;
		const found = Object.fromEntries(groups.names.map((name, i) => [name, sums[i]]));
		const expected = since
			? { f: 8, memcpy: 0, '<copy>': 32, g: 16 }
			: { f: 0, memcpy: 0, '<copy>': 56, g: 0 };
		assert.deepEqual(found, expected, `since ${since}`);
	}
});

for (const seed of [1, 2, 3, 4]) {
	const samples = randomSamples(seed, 60);
	const model = call('readModel', makeData(samples, twoTypes));
	const withStack = samples.filter((sample) => sample.stack.length > 0);
	const sum = (rows, type) => rows.reduce((total, row) => total + row.values[type], 0);

	test(`figures by function, line, file and package equal the sums of the samples, ${seed}`, () => {
		const keys = {
			function: (f) => (f.name === null ? '<unknown>' : f.name),
			file: (f) => (f.name !== null && f.file) || 'unknown file',
			package: (f) => (f.name !== null && f.package) || 'unknown package',
			place: (f) => (f.name !== null && f.file && f.line > 0 ? `${f.file}:${f.line}` : null),
		};
		for (const [by, key] of Object.entries(keys)) {
			const groups = call('groupFrames', model, by);
			const self = call('selfByNode', model, amount(model), all, null);
			const bytes = call('selfByNode', model, amount(model, 1), all, null);
			const figures = call('figuresByGroup', model, groups, null, [self], [bytes]);
			const expected = new Map();
			const row = (name) => {
				if (!expected.has(name)) expected.set(name, { self: 0, total: 0, bytes: 0 });
				return expected.get(name);
			};
			for (const { stack, values } of samples) {
				const named = stack.map(key);
				for (const name of new Set(named)) if (name !== null) row(name).total += values[0];
				const innermost = named.findLast((name) => name !== null);
				if (innermost !== undefined) row(innermost).self += values[0];
				// A garbage collection and what it calls allocate nothing, but its caller does.
				const collection = stack.findIndex((frame, i) => i > 0 && frame.name === '<GC>');
				const allocating = named.slice(0, collection < 0 ? undefined : collection);
				const owner = allocating.findLast((name) => name !== null);
				if (owner !== undefined) row(owner).bytes += values[1];
			}
			const ranges = model.orders.map((order) => ({ order, from: 0, to: order.samples }));
			assert.deepEqual(plain(call('selfByNode', model, amount(model, 1), all, ranges)), plain(bytes));
			assert.equal(groups.n, expected.size, by);
			for (let i = 0; i < groups.n; i++) {
				const found = { self: figures.self[0][i], total: figures.total[0][i], bytes: figures.own[0][i] };
				assert.deepEqual(found, expected.get(groups.names[i]), `${by} ${groups.names[i]}`);
			}
		}
	});

	test(`trees add up and callees fit in their callers, ${seed}`, () => {
		for (const by of ['function', 'line', 'file', 'package']) {
			for (const hide of [false, true]) {
				const groups = call('groupFrames', model, by);
				const shown = call('shownNodes', model, { hide, mine: false });
				const tree = call('fold', model, groups, shown);
				const side = (base) =>
					call('selfByNode', model, amount(model), (source) => (source === 1) === base, null);
				call('weigh', tree, side(false), side(true), false);
				assert.equal(
					tree.total[0],
					sum(
						withStack.filter((s) => s.source === 0),
						0,
					),
				);
				assert.equal(
					tree.baseTotal[0],
					sum(
						withStack.filter((s) => s.source === 1),
						0,
					),
				);
				assert.equal(call('misplaced', tree), 0);
				for (let i = 1; i < tree.n; i++) {
					assert.ok(tree.width[i] >= Math.max(tree.total[i], tree.baseTotal[i]));
					assert.ok(tree.parent[i] < i);
				}
			}
		}
	});

	test(`samples have the frames that filter_profile() keeps, ${seed}`, () => {
		const model = call('readModel', makeData(samples, { ...twoTypes, mine: ['a.R'] }));
		const isMine = (frame) => frame !== undefined && frame.name !== null && frame.file === 'a.R';
		const isPlumbing = ({ name }) => ['lapply', 'FUN'].includes(name);
		// If no frame is left, the outermost one remains.
		const kept = (stack, shows) => {
			const rest = stack.filter((frame, i) => shows(frame, stack[i - 1]));
			return rest.length > 0 ? rest : stack.slice(0, 1);
		};
		const groups = call('groupFrames', model, 'function');
		const self = call('selfByNode', model, amount(model), all, null);
		for (const [hide, mine] of [
			[false, true],
			[true, false],
			[true, true],
		]) {
			const shown = call('shownNodes', model, { hide, mine });
			const tree = call('fold', model, groups, shown);
			call('weigh', tree, self, null, false);
			const figures = call('figuresByGroup', model, groups, shown, [self], []);
			const expected = { paths: new Map(), self: new Map(), total: new Map() };
			const add = (sums, key, value) => sums.set(key, (sums.get(key) ?? 0) + value);
			for (const { stack, values } of withStack) {
				let rest = stack;
				if (hide) rest = kept(rest, (frame) => !isPlumbing(frame));
				if (mine) rest = kept(rest, (frame, caller) => isMine(frame) || isMine(caller));
				const names = rest.map((frame) => frame.name ?? '<unknown>');
				add(expected.paths, names.join(' > '), values[0]);
				add(expected.self, names.at(-1), values[0]);
				for (const name of new Set(names)) add(expected.total, name, values[0]);
			}
			const sorted = (sums) => [...sums].filter(([, sum]) => sum > 0).sort();
			const paths = [''];
			for (let i = 1; i < tree.n; i++) {
				const name = groups.names[tree.group[i]];
				paths[i] = tree.parent[i] > 0 ? `${paths[tree.parent[i]]} > ${name}` : name;
			}
			assert.deepEqual(sorted(paths.map((path, i) => [path, tree.self[i]])), sorted(expected.paths));
			for (const figure of ['self', 'total']) {
				const found = groups.names.map((name, row) => [name, figures[figure][0][row]]);
				assert.deepEqual(sorted(found), sorted(expected[figure]), figure);
			}
		}
	});

	test(`callers and callees add up to the total of the function, ${seed}`, () => {
		const groups = call('groupFrames', model, 'function');
		const tree = call('fold', model, groups, null);
		const self = call('selfByNode', model, amount(model), all, null);
		call('weigh', tree, self, null, false);
		const { total } = call('figuresByGroup', model, groups, null, [self], []);
		for (let row = 0; row < groups.n; row++) {
			const chosen = Uint8Array.from({ length: groups.n }, (_, i) => (i === row ? 1 : 0));
			const callers = call('callersOf', tree, chosen);
			const callees = call('calleesOf', tree, chosen);
			assert.equal(callers.total[0], total[0][row]);
			assert.equal(callees.total[0], total[0][row]);
			// By hand: the caller of the outermost occurrence.
			const expected = new Map();
			for (const { stack, values } of samples) {
				const names = stack.map((f) => (f.name === null ? '<unknown>' : f.name));
				const at = names.indexOf(groups.names[row]);
				if (at > 0) expected.set(names[at - 1], (expected.get(names[at - 1]) ?? 0) + values[0]);
			}
			const found = new Map();
			for (let i = 1; i < callers.n; i++) {
				if (callers.parent[i] === 0) found.set(groups.names[callers.group[i]], callers.total[i]);
			}
			assert.deepEqual([...found].sort(), [...expected].sort());
		}
	});

	test(`sums over any range equal the sums of its samples, ${seed}`, () => {
		for (const order of model.orders) {
			const own = samples.filter((sample) => sample.source === order.source);
			for (let from = 0; from <= own.length; from += 5) {
				for (let to = from; to <= own.length; to += 3) {
					for (const type of [0, 1]) {
						const values = call('selfByNode', model, amount(model, type), all, [{ order, from, to }]);
						assert.equal(
							values.reduce((a, b) => a + b),
							sum(own.slice(from, to), type),
						);
					}
				}
			}
		}
	});

	test(`search counts each sample once, ${seed}`, () => {
		const groups = call('groupFrames', model, 'function');
		const tree = call('fold', model, groups, null);
		const self = call('selfByNode', model, amount(model), all, null);
		call('weigh', tree, self, null, false);
		const matches = call('matchGroups', groups, call('searchExpression', '^[fg]$'));
		const expected = samples.filter((sample) => sample.stack.some((f) => f.name === 'f' || f.name === 'g'));
		assert.equal(call('matchedSum', tree, matches, tree.self), sum(expected, 0));
	});
}

test('the selftest has sums by source, and trees that add up', () => {
	const samples = randomSamples(6, 50);
	const result = plain(call('selftest', call('readModel', makeData(samples, twoTypes))));
	const sum = (source, type, wanted) =>
		samples.filter((s) => s.source === source && wanted(s)).reduce((total, s) => total + s.values[type], 0);
	const expected = (type) =>
		[0, 1].map((source) => ({
			sum: sum(source, type, (s) => s.stack.length > 0),
			leftOut: sum(source, type, (s) => s.stack.length === 0),
		}));
	for (const type of [0, 1]) {
		assert.deepEqual(result.types[type].sums, expected(type));
		assert.deepEqual(result.types[type].ordered, expected(type));
	}
	for (const tree of result.trees) {
		assert.equal(tree.total, expected(0)[0].sum);
		assert.equal(tree.base, expected(0)[1].sum);
		assert.equal(tree.misplaced, 0);
		assert.equal(tree.list.length, tree.nodes);
	}
});

test('a search ignores case unless it has capitals', () => {
	const matches = (text, name) => call('searchExpression', text).test(name);
	assert.ok(matches('data\\.frame', 'as.Data.Frame'));
	assert.ok(!matches('GC', '<gc>'));
	assert.ok(matches('\\<gc', '<GC>'));
	assert.equal(call('searchExpression', ''), null);
	assert.throws(() => call('searchExpression', '['));
});

test('time is value times period, by source', () => {
	const model = call('readModel', makeData(randomSamples(9, 40), twoTypes));
	const samples = randomSamples(9, 40);
	const time = model.types.findIndex((type) => type.factor);
	const values = call('selfByNode', model, amount(model, time), all, null);
	const expected = samples.reduce((total, s) => total + s.values[0] * [1e7, 2e7][s.source], 0);
	assert.equal(
		values.reduce((a, b) => a + b),
		expected,
	);
});

test('consecutive frames of one package are one node', () => {
	const frame = (name, pkg) => ({ name, package: pkg });
	const stack = [frame('a', 'x'), frame('b', 'x'), frame('c', 'y'), frame('d', 'x')];
	const model = call('readModel', makeData([{ stack }]));
	const tree = call('fold', model, call('groupFrames', model, 'package'), null);
	assert.equal(tree.n - 1, 3);
});

test('a stack of 50,000 frames is drawn without recursion', () => {
	const model = call('readModel', makeData([{ stack: Array(50000).fill('f') }, { stack: ['f'] }]));
	const groups = call('groupFrames', model, 'function');
	const tree = call('fold', model, groups, null);
	const self = call('selfByNode', model, amount(model), all, null);
	call('weigh', tree, self, null, false);
	assert.equal(tree.deepest, 50000);
	const { total } = call('figuresByGroup', model, groups, null, [self], []);
	assert.equal(total[0][0], 2);
	assert.equal(call('calleesOf', tree, Uint8Array.of(1)).n, 50000);
	assert.equal(call('callersOf', tree, Uint8Array.of(1)).n, 1);
});

test('few callers are followed where there are many', () => {
	const samples = [];
	for (let i = 0; i < 3000; i++) samples.push({ stack: ['top', `a${i}`, `b${i}`, 'f'] });
	for (let i = 0; i < 3000; i++) samples.push({ stack: ['top', 'big', 'f'] });
	const model = call('readModel', makeData(samples));
	const groups = call('groupFrames', model, 'function');
	const tree = call('fold', model, groups, null);
	call('weigh', tree, call('selfByNode', model, amount(model), all, null), null, false);
	const chosen = Uint8Array.from(groups.names, (name) => (name === 'f' ? 1 : 0));
	const callers = call('callersOf', tree, chosen);
	assert.equal(callers.total[0], 6000);
	// The direct callers are all there; of these, only the large one is followed.
	assert.equal(callers.n, 1 + 3001 + 1);
});

test('invisible characters are shown as escapes, and long texts are cut', () => {
	assert.equal(call('visible', 'a\nb\u2028c\u202ed\u0007\u200f'), 'a\\nb\\u2028c\\u202ed\\u0007\\u200f');
	assert.equal(call('visible', '</script>"\''), '</script>"\'');
	assert.equal(call('visible', 'x'.repeat(1e6)).length, 300);
	assert.equal(call('visible', 'größe 名前'), 'größe 名前');
});

test('amounts have units', () => {
	assert.equal(call('amountText', 1234567, 'count'), '1,234,567');
	assert.equal(call('amountText', 2.52e9, 'nanoseconds'), '2.52 s');
	assert.equal(call('amountText', 1536, 'bytes'), '1.50 kB');
	assert.equal(call('amountText', -2048, 'bytes'), '−2 kB');
	assert.equal(call('amountText', 7, 'widgets'), '7 widgets');
	assert.equal(call('amountText', 7, ''), '7');
	// In a file a unit can be any text.
	assert.equal(call('amountText', 7, '\u202ea\n'), '7 \\u202ea\\n');
	assert.equal(call('amountText', 7, 'x'.repeat(1e6)).length, 302);
	assert.equal(call('shareText', 1, 3), '33.3%');
	assert.equal(call('shareText', 1, 1e6), '<0.1%');
	assert.equal(call('shareText', 0, 0), '–');
	assert.equal(call('changeText', 3, 0), 'new');
	assert.equal(call('changeText', 0, 3), 'gone');
	assert.equal(call('changeText', 3, 2), '+50%');
});

test('text is legible on each colour', () => {
	for (const scheme of ['light', 'dark']) {
		const text = page('SCHEMES')[scheme].text;
		const legible = (colour) => assert.ok(contrast(text, colour) >= 4.5, `${scheme} ${colour}`);
		legible(call('categoryColour', scheme, null, page('SCHEMES')[scheme].gc));
		for (const shade of [0, 0.5, 1]) {
			legible(call('categoryColour', scheme, null, shade));
			for (let hue = 0; hue < 360; hue += 5) legible(call('categoryColour', scheme, hue, shade));
		}
		for (let ratio = 1 / 8; ratio < 9; ratio *= 1.3) legible(call('changeColour', scheme, ratio, 1));
		legible(call('changeColour', scheme, 1, 0));
		legible(call('changeColour', scheme, 0, 1));
	}
});

test('a kind of a heap snapshot has the same colour on all pages', () => {
	const kinds = heapKinds;
	const colourOf = (data) => {
		const model = call('readModel', { ...data, heap: kinds });
		const groups = call('groupFrames', model, 'function');
		const { rgb } = call('colourGroups', model, groups, 'kind', new Float64Array(groups.n), 'light');
		return new Map([...groups.names].map((name, row) => [name, plain(rgb[row])]));
	};
	const all = colourOf(makeData([{ stack: kinds.map((kind) => ({ name: kind, kind })) }]));
	assert.equal(new Set([...all.values()].map(String)).size, kinds.length);
	for (const kind of kinds) {
		const one = colourOf(
			makeData([
				{
					stack: [
						{ name: kind, kind },
						{ name: 'other', kind: 'native' },
					],
				},
			]),
		);
		assert.deepEqual(one.get(kind), all.get(kind));
	}
});

test('a package has one colour on all pages', () => {
	const of = (...packages) => {
		const data = makeData(packages.map((name) => ({ stack: [{ name: `${name}_f`, package: name }] })));
		const model = call('readModel', data);
		const groups = call('groupFrames', model, 'function');
		const weight = Float64Array.from(packages.keys());
		const { legend } = call('colourGroups', model, groups, 'package', weight, 'light');
		return Object.fromEntries(plain(legend).map(({ label, colour }) => [label, colour]));
	};
	const one = of('base', 'dplyr', 'own');
	const other = of('own', 'stats', 'vctrs', 'base', 'dplyr');
	for (const name of Object.keys(one)) assert.deepEqual(other[name], one[name], name);
	assert.equal(new Set(Object.values(other).map(String)).size, 5);
	// No other package is as blue as base.
	const hues = Array.from({ length: 500 }, (_, i) => call('hueOfPackage', `package${i}`));
	assert.ok(hues.every((hue) => hue >= 0 && hue < 360 && Math.abs(hue - 255) >= 30));
});

test('the outermost functions of two expressions are one function', () => {
	const data = makeData([{ stack: ['f_old', 'g'] }, { stack: ['f_new', 'g'] }]);
	data.comparison = { expression: ['f_old', 'f_new', 'f_old -> f_new'] };
	const model = call('readModel', data);
	const groups = call('groupFrames', model, 'function');
	assert.deepEqual([...groups.names].sort(), ['f_old -> f_new', 'g']);
	// Their callees are one, too: the root, the expression, and `g`.
	assert.equal(call('fold', model, groups, null).n, 3);
	data.comparison.expression = [];
	assert.equal(call('fold', model, call('groupFrames', call('readModel', data), 'function'), null).n, 5);
});

test('groups know for which functions a difference was found', () => {
	const data = makeData([{ stack: ['f', 'g'] }, { stack: ['h'] }]);
	assert.deepEqual(
		[...call('groupFrames', call('readModel', data), 'function').found],
		[undefined, undefined, undefined],
	);
	data.functions.found = data.functions.name.map((name) => Number(data.strings[name] === 'g'));
	for (const by of ['function', 'line']) {
		const groups = call('groupFrames', call('readModel', data), by);
		const found = [...groups.names].filter((_, row) => groups.found[row]);
		assert.deepEqual(found, ['g']);
	}
});

test('more than the base is red, less is blue', () => {
	const [red, , blue] = call('changeColour', 'light', 4, 1);
	assert.ok(red > blue);
	const [less, , more] = call('changeColour', 'light', 1, 4);
	assert.ok(more > less);
});

test('my code is what my files contain, and what they call directly', () => {
	const frames = (...names) =>
		names.map((name) => ({ name, file: name.startsWith('my') ? 'my.R' : '', line: 1 }));
	const data = makeData(
		[
			{ stack: frames('start', 'lapply', 'my_f', 'lapply', 'FUN', 'sort', 'order') },
			{ stack: frames('start', 'lapply', 'my_f', 'my_g', 'sort', 'order') },
			{ stack: frames('start', 'other') },
		],
		{ mine: ['my.R'] },
	);
	const model = call('readModel', data);
	const shown = (state) => {
		const nodes = call('shownNodes', model, state);
		const name = (node) => data.strings[data.functions.name[data.frames.function[model.frame[node]]]];
		return [...nodes.keys()].slice(1).flatMap((node) => (nodes[node] === node ? [name(node)] : []));
	};
	assert.deepEqual(shown({ hide: false, mine: true }), ['my_f', 'lapply', 'my_g', 'sort']);
	assert.deepEqual(shown({ hide: true, mine: true }), ['my_f', 'sort', 'my_g', 'sort']);
	assert.deepEqual(shown({ hide: true, mine: false }), [
		'start',
		'my_f',
		'sort',
		'order',
		'my_g',
		'sort',
		'order',
		'other',
	]);
	// Two of the first sample's frames are plumbing in the first call, and one in the second.
	assert.equal(call('meanPlumbing', model), (3 + 1 + 0) / 3);
	assert.equal(call('defaultState', model).hide, false);
	const deep = { stack: frames(...Array(11).fill('lapply'), 'my_f') };
	assert.equal(call('defaultState', call('readModel', makeData([deep]))).hide, true);
});

test('the state survives the address', () => {
	const model = call('readModel', makeData(randomSamples(5, 30), twoTypes));
	const defaults = call('defaultState', model);
	assert.equal(call('formatHash', defaults, defaults), '');
	const state = {
		...defaults,
		source: 1,
		by: 'line',
		hide: true,
		layout: 'flame',
		unit: 'shares',
		zoom: 3,
		q: 'a b&c=d#%',
		brush: [2, 9],
		sort: '-total',
		tab: 'calls',
		select: 2,
		file: 1,
		line: 12,
	};
	const hash = call('formatHash', state, defaults);
	assert.deepEqual(plain(call('parseHash', `#${hash}`, defaults, model)), plain(state));
});

test('what is invalid in an address is ignored', () => {
	const model = call('readModel', makeData([{ stack: ['f'] }]));
	const defaults = call('defaultState', model);
	const hash = '#type=99&by=x&zoom=1e9&brush=9-2&brush=a&tab=__proto__&select=-4&constructor=1&source=7';
	assert.deepEqual(plain(call('parseHash', hash, defaults, model)), plain(defaults));
});

test('a page begins with the colours of units of work, and what has no label is grey', () => {
	const labels = ['testthat.file', 'testthat.test'].map((key) => ({ key, value: 'a', set: [1] }));
	const model = call(
		'readModel',
		makeData(
			[{ stack: ['f', 'g'] }, { stack: ['f', 'g'] }, { stack: ['f', 'h'], set: 1 }].map((one) => ({
				set: 0,
				...one,
			})),
			{ labels },
		),
	);
	assert.equal(call('defaultState', model).colour, 'label testthat.test');
	const groups = call('groupFrames', model, 'function');
	assert.deepEqual(plain(groups.names), ['f', 'g', 'h']);
	assert.deepEqual(plain(call('mainLabels', model, groups, 'label testthat.test')), ['', '', 'a']);
	const others = call(
		'readModel',
		makeData([{ stack: ['f'], set: 0 }], { labels: [{ key: 'trace_id', value: 'a', set: [0] }] }),
	);
	assert.equal(call('defaultState', others).colour, 'package');
});

test('waits have the same colours on all pages, and samples what they wait for', () => {
	const label = (key, value, set) => ({ key, value, set });
	const labels = [label('waits_for', 'sleep', [1]), label('waits_for', 'network', [2]), label('a', 'b', [3])];
	const samples = [
		{ stack: ['f', 'g'], set: 1 },
		{ stack: ['f', 'g'], set: 1 },
		{ stack: ['f', 'h'], set: 2 },
		{ stack: ['f'], set: 3 },
	];
	const model = call('readModel', makeData(samples, { labels }));
	assert.deepEqual([...call('waitsBySet', model)].flat(), [1, 'sleep', 2, 'network']);
	const groups = call('groupFrames', model, 'function');
	const { legend } = call(
		'colourGroups',
		model,
		groups,
		'label waits_for',
		new Float64Array(groups.n),
		'light',
	);
	const colour = (name) => plain(legend.find(({ label }) => label === name).colour);
	const hued = (hue) => plain(call('categoryColour', 'light', hue));
	assert.deepEqual([colour('network'), colour('sleep')], [hued(255), hued(130)]);
	assert.equal(call('waitColour', 'light', 'network'), call('css', hued(255)));
	const order = { node: [1, 1, -1], set: [2, 0, 2] };
	const texts = [0, 1, 2].map((run) => plain(call('waitTexts', model, order, run)));
	assert.deepEqual(texts, [['waits for: network'], [], []]);
	assert.deepEqual(plain(call('waitTexts', model, { node: [1] }, 0)), []);
});

test('an address can name a label', () => {
	const labels = ['a', 'b=c&d'].map((value) => ({ key: 'trace_id', value, set: [] }));
	const model = call('readModel', makeData([{ stack: ['f'] }], { labels }));
	const defaults = call('defaultState', model);
	const label = (hash) => call('parseHash', hash, defaults, model).label;
	assert.equal(label('#label=trace_id=a'), 0);
	assert.equal(label('#label=trace_id%3Db%3Dc%26d'), 1);
	assert.equal(label('#label=1'), 1);
	// There is no such label, so there are no samples.
	assert.equal(label('#label=trace_id=e'), -2);
	assert.equal(label('#label=-2'), -2);
});

test('the page without data is at most 130 KB', () => {
	const bytes = Buffer.byteLength(joinPage(makeData([]))) - encode(makeData([])).length;
	assert.ok(bytes <= 130 * 1024, `${bytes} bytes`);
});

// ---- Names that objects inherit ----

test('names of inherited properties are names as any other', () => {
	const model = call('readModel', inherited);
	for (const by of ['function', 'line', 'file', 'package', 'place']) {
		const groups = call('groupFrames', model, by);
		assert.equal(groups.n, INHERITED.length);
		for (const colour of ['package', 'file', 'kind']) {
			// Files have several packages.
			if (by === 'package' && colour === 'file') continue;
			const weight = new Float64Array(groups.n).fill(1);
			const { css, legend } = call('colourGroups', model, groups, colour, weight, 'light');
			assert.deepEqual(new Set(plain(legend).map(({ label }) => label)), new Set(INHERITED));
			assert.ok(css.every((text) => /^rgb\(\d+,\d+,\d+\)$/.test(text)));
		}
		const tree = call('fold', model, groups, null);
		for (const [row, type] of model.types.entries()) {
			if (type.factor) continue;
			const self = call('selfByNode', model, type, all, null);
			call('weigh', tree, self, null, false);
			assert.equal(tree.total[0], INHERITED.length + 4, type.name);
			assert.equal(call('amountText', 5, type.unit), `5 ${INHERITED[row]}`);
		}
	}
	for (const name of INHERITED) {
		assert.equal(call('visible', name), name);
		const matches = call('matchGroups', call('groupFrames', model, 'function'), new RegExp(`^${name}$`));
		assert.equal([...matches].filter(Boolean).length, 1);
	}
});

test('an address with names of inherited properties is the address of the defaults', () => {
	const model = call('readModel', inherited);
	const defaults = call('defaultState', model);
	for (const name of INHERITED) {
		for (const hash of [`#${name}=1`, `#tab=${name}&by=${name}&colour=${name}&layout=${name}&unit=${name}`]) {
			assert.deepEqual(plain(call('parseHash', hash, defaults, model)), plain(defaults));
		}
	}
});

// ---- Differences, which have negative values ----

const difference = [
	{ stack: ['g', 'f'], values: [5] },
	{ stack: ['g'], values: [-5] },
	{ stack: ['h'], values: [10] },
];

test('shares of differences are relative to the sum of absolute values', () => {
	const data = makeData(difference, { timeline: false });
	data.values[0].whole = 20;
	const model = call('readModel', data);
	const sums = call('selfByNode', model, amount(model), all, null);
	assert.equal(call('wholeOf', model, amount(model), all, null, sums), 20);
	// The samples of the base may count alone.
	model.values[0].whole = 5;
	assert.equal(call('wholeOf', model, amount(model), all, null, sums), 5);
	// In other profiles it is the sum of all samples with a stack.
	const plainModel = call('readModel', makeData([{ stack: ['f'] }, { stack: [] }, { stack: ['f', 'g'] }]));
	const counts = call('selfByNode', plainModel, amount(plainModel), all, null);
	assert.equal(call('wholeOf', plainModel, amount(plainModel), all, null, counts), 2);
});

test('nodes of differences are as wide as the absolute values in them', () => {
	const model = call('readModel', makeData(difference));
	const groups = call('groupFrames', model, 'function');
	const tree = call('fold', model, groups, null);
	call('weigh', tree, call('selfByNode', model, amount(model), all, null), null, false);
	const nodes = call('listNodes', tree, 10).map(({ name, total, width }) => [name, total, width]);
	assert.deepEqual(plain(nodes), [
		['g', 0, 10],
		['f', 5, 5],
		['h', 10, 10],
	]);
	assert.equal(call('misplaced', tree), 0);
	assert.equal(tree.size[0], 20);
	// A sum of 0 does not make callers small.
	const chosen = Uint8Array.from(groups.names, (name) => (name === 'f' ? 1 : 0));
	const callers = call('callersOf', tree, chosen);
	assert.deepEqual([callers.n, callers.total[0]], [2, 5]);
});

test('frames without a symbol have an address by line', () => {
	const data = makeData([{ stack: ['[prog]', { name: '[prog]', line: 1 }] }]);
	data.strings.push('0x10', '0x20');
	data.frames.line.fill(0);
	data.frames.address = [data.strings.length - 2, data.strings.length - 1];
	const model = call('readModel', data);
	assert.deepEqual(plain(call('groupFrames', model, 'line').names), ['[prog] 0x10', '[prog] 0x20']);
	assert.deepEqual(plain(call('groupFrames', model, 'function').names), ['[prog]']);
});

// ---- The time layout -----------------------------------------------------------------

/** A run of samples with these nodes; `times` begins new segments. */
function orderOf(nodes, times) {
	const runs = [];
	for (const node of nodes) {
		if (runs.at(-1)?.[0] === node) runs.at(-1)[1]++;
		else runs.push([node, 1]);
	}
	let end = 0;
	return {
		source: 0,
		node: Int32Array.from(runs, ([node]) => node),
		ends: Float64Array.from(runs, ([, count]) => {
			end += count;
			return end;
		}),
		samples: nodes.length,
		times,
	};
}

/** The node at a time by looking at each sample: the last one that has begun and has not ended; -1 for none. */
function nodeAtTime(nodes, times, step, time) {
	let found = -1;
	nodes.forEach((node, i) => {
		const segment = times.sample.findLastIndex((first) => first <= i);
		const begin = times.at[segment] + (i - times.sample[segment]) * step;
		const next = times.at[segment + 1] ?? Infinity;
		if (begin <= time && time < Math.min(begin + step, next)) found = node;
	});
	return found;
}

for (const seed of [1, 2, 3, 4]) {
	test(`pieces of the time axis have the nodes of the samples, ${seed}`, () => {
		let state = seed;
		const random = (n) => {
			state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
			return Math.floor((state / 0x80000000) * n);
		};
		const nodes = Array.from({ length: 200 }, () => random(3));
		const step = 10;
		// Gaps of random lengths, and segments that begin a little earlier than expected.
		const times = { start: 1, step, sample: [0], at: [0] };
		for (let i = 1; i < nodes.length; i++) {
			if (random(12) > 0) continue;
			const expected = times.at.at(-1) + (i - times.sample.at(-1)) * step;
			times.sample.push(i);
			times.at.push(expected + (random(3) === 0 ? -random(9) : random(80)));
		}
		page(`app = { model: { sources: [{ period: ${step} }] } }`);
		for (const [given, of] of [
			[times, times],
			[undefined, { sample: [0], at: [0] }],
		]) {
			const lane = call('laneOf', orderOf(nodes, given), true);
			assert.equal(call('timeOf', lane, 0), 0);
			for (let i = 0; i < nodes.length; i++) {
				assert.equal(call('sampleAt', lane, call('timeOf', lane, i)), i);
			}
			for (const [from, to, columns] of [
				[0, lane.end, 50],
				[0, lane.end, 5000],
				[random(500), 500 + random(500), 400],
				[lane.end - 100, lane.end, 1000],
				[300, 340, 1000],
			]) {
				const pieces = [];
				call('eachPiece', lane, from, to, columns, (...piece) => pieces.push(piece));
				let reached = from;
				for (const [begin, end, node] of pieces) {
					assert.ok(begin >= reached - 1e-9 && end >= begin, `${begin} ${end} after ${reached}`);
					reached = end;
					const middle = (begin + end) / 2;
					if (end > begin) assert.equal(node, nodeAtTime(nodes, of, step, middle), `at ${middle}`);
				}
				// All samples in the window are there, if columns are narrower than samples.
				if ((to - from) / columns > step / 2) continue;
				for (let x = from + 0.5; x < to; x++) {
					const shown = pieces.find(([begin, end]) => begin <= x && x < end)?.[2] ?? -1;
					assert.equal(shown, nodeAtTime(nodes, of, step, x), `at ${x}`);
				}
			}
		}
	});
}

test('the strip has the times of samples, not their number times the interval', () => {
	// 4 samples at 100 Hz: two at once, and two after a second.
	const times = { start: 5, step: 1e7, sample: [0, 2], at: [0, 1e9] };
	const order = orderOf([1, 1, 1, 1], times);
	page('app = { model: { sources: [{ period: 1e7 }] } }');
	page(`strip.parts = [{ order: ${JSON.stringify(order)}, start: 0 }]; strip.samples = 4`);
	assert.match(call('rangeText', null), /^4 samples, 1.02 s[.]/);
	assert.match(call('rangeText', [1, 3]), /^samples 2 to 3 of 4, 10 ms to 1.01 s[.]/);
	const ticks = page(`{
		const texts = [];
		const context = { fillText: (text, x) => texts.push(\`\${text} at \${x - 4}\`), fillRect() {} };
		globalThis.themeColour = () => '';
		drawStripAxis(context, 360, 60);
		texts;
	}`);
	// Round times; nothing was recorded at half a second.
	assert.deepEqual([...ticks], ['0 s at 0', '1 s at 180']);
	// Without times, samples are counted.
	page('app = { model: { sources: [{ period: null }] } }');
	page(`delete strip.parts[0].order.times`);
	assert.match(call('rangeText', null), /^4 samples[.]/);
});

test('runs that overlap share the axis of time, others begin at 0', () => {
	page('app = { model: { sources: Array(5).fill({ period: 1e9 }) } }');
	const tree = { n: 2, parent: Int32Array.from([-1, 0]), nodeOf: Int32Array.from([0, 1]) };
	// Runs of 2 s.
	const parts = (...starts) =>
		starts.map((start) => ({ order: orderOf([1, 1], { start, step: 1e9, sample: [0], at: [0] }) }));
	const offsets = (...starts) =>
		Array.from(call('makeLanes', parts(...starts), tree).lanes, ({ offset }) => offset / 1e9);
	assert.deepEqual(offsets(7, 8), [0, 1]);
	assert.deepEqual(offsets(7, 9), [0, 0]);
	// A chain of runs that overlap, and two others.
	assert.deepEqual(offsets(21, 4, 3, 5, 20), [1, 1, 0, 2, 0]);
	assert.deepEqual(offsets(undefined, 4, 3, undefined), [0, 1, 0, 0]);
	const { rows, lanes } = call('makeLanes', parts(1, 3), tree);
	assert.deepEqual([rows, ...lanes.map(({ row }) => row)], [7, 1, 4]);
});

test('processes that worked together are on one clock, with gaps where they have no samples', () => {
	// The master was recorded for 9 s, without times; a worker has samples of 1 s at 2, 3 and 6 s, another one at 8 s.
	const samples = [0, 1, 1, 1, 2].map((source) => ({ stack: ['f'], source, values: [1e9] }));
	const of = (name, given) => ({ name, period: 1e9, start: 100, seconds: 9, ...given });
	const sources = [
		of('master, pid 1'),
		of('worker 1 of 2, pid 2', { start: 99 }),
		of('worker 2 of 2, pid 3'),
	];
	const data = makeData(samples, { sources, types: [{ name: 'cpu', unit: 'nanoseconds' }] });
	data.order[1].times = { start: 102, step: 1e9, sample: [0, 2], at: [0, 4e9] };
	data.order[2].times = { start: 108, step: 1e9, sample: [0], at: [0] };
	const model = call('readModel', data);
	assert.equal(call('defaultState', model).layout, 'time');
	page(
		`app = { model: readModel(${JSON.stringify(data)}), state: defaultState(readModel(${JSON.stringify(data)})) }`,
	);
	page(`globalThis.isWanted ??= () => true; globalThis.byId = () => ({}); globalThis.hasLabel = () => true`);
	page(
		`app.amount = app.model.types[0]; app.tree = fold(app.model, groupFrames(app.model, 'function'), null)`,
	);
	page('arrangeStrip()');
	const { lanes, end } = page('strip.clock');
	assert.deepEqual(
		Array.from(lanes, ({ offset }) => offset / 1e9),
		[0, 2, 8],
	);
	assert.equal(end, 9e9);
	const gaps = (lane) => [0.5, 1.5, 2.5, 5, 6.5, 7.5, 8.5].map((at) => plain(call('gapAt', lane, at * 1e9)));
	const [one, two] = [
		[0, 2e9],
		[4e9, 6e9],
	];
	assert.deepEqual(gaps(lanes[1]), [one, one, null, two, null, [7e9, 8e9], null]);
	assert.deepEqual(gaps(lanes[2]), [...Array(6).fill([0, 8e9]), null]);
	// The brush selects a part of the clock.
	const ranges = (brush) => {
		page(`app.state.brush = ${JSON.stringify(brush)}`);
		return Array.from(call('brushedRanges'), ({ from, to }) => [from, to]);
	};
	assert.deepEqual(ranges([0, 9e9]), [
		[0, 1],
		[0, 3],
		[0, 1],
	]);
	assert.deepEqual(ranges([2.5e9, 6.5e9]), [
		[1, 1],
		[1, 3],
		[0, 0],
	]);
	assert.match(call('rangeText', null), /^5 samples, 9 s, 3 processes[.]/);
	assert.match(call('rangeText', [2e9, 6e9]), /^5 samples, 2 s to 6 s of 9 s, 3 processes[.]/);
	assert.deepEqual([...call('describePlace', 5e9, 0.5)], ['no samples', 'at 5 s', 'worker 1 of 2, pid 2']);
	page('strip.clock = null');
	// Without roles, or with one process, the page begins with the flame graph.
	const layout = (given) =>
		call('defaultState', call('readModel', makeData(samples, { sources: given }))).layout;
	assert.equal(layout(sources.map(({ seconds, ...source }) => source)), 'icicle');
	assert.equal(layout(sources), 'time');
	assert.equal(layout(sources.map((source, i) => ({ ...source, base: i > 0 }))), 'icicle');
});

/** An order in slices of four samples, sorted by node, with 5 bytes for each sample, at the first sample of a run. */
function slicedOrder(given) {
	const node = [1, 2, 1, 3, 1, 3, 2];
	const run = [3, 1, 2, 2, 1, 3, 2];
	const first = run.map((_, i) => run.slice(0, i).reduce((sum, n) => sum + n, 0));
	return call('readOrder', {
		source: 0,
		node: node.map((n, i) => n - (node[i - 1] ?? 0)),
		run,
		slices: { samples: 4, first: [0, 4, 4, 4] },
		values: [
			{
				type: 0,
				constant: 0,
				sample: first.map((n, i) => n - (first[i - 1] ?? 0)),
				value: run.map((n) => 5 * n),
			},
		],
		...given,
	});
}

/** The strip with this order, of 14 samples. */
function showSliced(order) {
	page('app = { model: { sources: [{ period: 1e9 }] }, state: { brush: null } }');
	page('strip.clock = null; strip.samples = 14');
	page(`strip.parts = [{ order: (${JSON.stringify(plain(order))}), start: 0 }]`);
}

test('a selection of sliced samples consists of whole slices, with exact sums', () => {
	const order = slicedOrder();
	assert.deepEqual([...order.slices.first], [0, 4, 8, 12]);
	showSliced(order);
	assert.deepEqual(plain(call('wholeSlices', [5, 9])), [4, 12]);
	assert.deepEqual(plain(call('wholeSlices', [4, 8])), [4, 8]);
	assert.deepEqual(plain(call('wholeSlices', [13, 14])), [12, 14]);
	assert.deepEqual(plain(call('wholeSlices', [0, 14])), [0, 14]);
	assert.equal(call('wholeSlices', null), null);
	const sums = (from, to) => {
		const found = new Float64Array(4);
		call('addSamples', order, 0, 1, from, to, found);
		return [...found];
	};
	assert.deepEqual(sums(4, 12), [0, 15, 0, 25]);
	assert.deepEqual(sums(12, 14), [0, 0, 10, 0]);
	assert.deepEqual(sums(0, 14), [0, 30, 15, 25]);
	assert.match(
		call('rangeText', null),
		/^14 samples, 14 s[.] Resolution: parts of 4 samples [(]4 s[)], .* Drag to select parts[.]$/,
	);
	assert.match(call('rangeText', [4, 8]), /^samples 5 to 8 of 14, 4 s to 8 s[.] Resolution: /);
	// An exact order has no resolution.
	delete order.slices;
	showSliced(order);
	assert.deepEqual(plain(call('wholeSlices', [5, 9])), [5, 9]);
	assert.doesNotMatch(call('rangeText', null), /Resolution/);
});

test('a slice that is narrower than a pixel is shown by one of its samples', () => {
	const order = slicedOrder();
	for (let sample = 0; sample < 14; sample++) {
		const slice = call('sliceOf', order, sample);
		assert.ok(slice.from <= sample && sample < slice.to);
		assert.equal(call('shownSample', order, sample, 2), sample);
		const shown = call('shownSample', order, sample, 10);
		assert.ok(slice.from <= shown && shown < slice.to);
	}
	// In many slices of a stack that takes a quarter of each, it is shown in a quarter of them.
	const first = Array.from({ length: 1000 }, (_, i) => 100 * i);
	const many = { samples: 1e5, slices: { first } };
	const places = first.map((at) => call('shownSample', many, at, 1000) - at);
	const quarter = places.filter((place) => place < 25).length;
	assert.ok(quarter >= 245 && quarter <= 255, `${quarter}`);
});

test('sliced samples with times are selected by the slices that begin in a range', () => {
	// Slices of 4 s: the second one has its samples in half of the time, and there is a gap before the last one.
	const times = {
		start: 5,
		step: 1e9,
		sample: [0, 4, 8, 12],
		at: [0, 4e9, 6e9, 20e9],
		each: [1e9, 5e8, 1e9, 1e9],
	};
	const order = slicedOrder({
		slices: { nanoseconds: 4e9, first: [0, 4, 4, 4] },
		times: { ...times, sample: [0, 4, 4, 4] },
	});
	page('app = { model: { sources: [{ period: 1e9 }] } }');
	const lane = call('laneOf', order, true);
	assert.equal(lane.end, 22e9);
	const at = (seconds) => call('sampleAt', lane, seconds * 1e9);
	assert.deepEqual([0, 3.5, 4, 4.6, 5.9, 6, 9.5, 10, 20, 21.5].map(at), [0, 3, 4, 5, 7, 8, 11, -1, 12, 13]);
	for (let i = 0; i < 14; i++) assert.equal(call('sampleAt', lane, call('timeOf', lane, i)), i);
	const before = (seconds) => call('slicesBefore', lane, seconds * 1e9);
	assert.deepEqual([0, 1, 4, 5, 6, 9, 15, 20, 21, 22].map(before), [0, 4, 4, 8, 8, 12, 12, 12, 14, 14]);
	page('strip.parts = []; strip.samples = 14');
	const clock = { lanes: [lane], end: lane.end };
	page(
		'globalThis.showClock = (clock) => { strip.clock = clock; strip.parts = [{ order: clock.lanes[0].order, start: 0 }]; }',
	);
	call('showClock', clock);
	assert.deepEqual(plain(call('wholeSlices', [5e9, 7e9])), [4e9, 20e9]);
	assert.deepEqual(plain(call('wholeSlices', [4e9, 6e9])), [4e9, 6e9]);
	assert.deepEqual(plain(call('wholeSlices', [21e9, 22e9])), [20e9, 22e9]);
	page('strip.clock = null');
});

test('ticks are at 1, 2 and 5', () => {
	assert.deepEqual(
		[100, 101, 201, 501, 0.3].map((length) => call('tickStep', length, 10)),
		[10, 20, 50, 100, 0.05].map((step, i) => (i === 4 ? call('tickStep', 0.3, 10) : step)),
	);
	assert.ok(Math.abs(call('tickStep', 0.3, 10) - 0.05) < 1e-12);
});
