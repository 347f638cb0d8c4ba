// A browser with pages of small profiles, for tests. CHROMIUM is the path of the browser, and NODE_MODULES has the
// directory node_modules of puppeteer-core and axe-core.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { pathToFileURL } from 'node:url';
import { heapKinds, joinPage, makeData } from './page.mjs';

const require = createRequire(join(process.env.NODE_MODULES ?? '.', 'index.js'));
const puppeteer = require('puppeteer-core');
export const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

// For what never happens: nothing is expected within a time.
const LIMIT = 300_000;

const folder = mkdtempSync(join(tmpdir(), 'page-'));
export let browser;
before(async () => {
	const executablePath = process.env.CHROMIUM;
	browser = await puppeteer.launch({ executablePath, args: ['--no-sandbox'], timeout: LIMIT });
});
after(async () => {
	await browser?.close();
	rmSync(folder, { recursive: true });
});

export const frame = (name, line, more) => ({ name, file: '/home/me/work.R', line, package: 'own', ...more });
const base = (name) => ({ name, package: 'base' });
export const stacks = [
	[frame('main', 1), frame('load', 2), base('lapply'), base('FUN'), base('paste')],
	[frame('main', 1), frame('load', 2), base('lapply'), base('FUN'), base('paste')],
	[frame('main', 1), frame('load', 3), base('lapply'), base('FUN'), base('sub')],
	[frame('main', 2), frame('fit', 5), base('paste')],
	[frame('main', 2), frame('fit', 5), base('paste'), '<GC>'],
	[frame('main', 2), frame('fit', 6), { name: 'solve_in_c', kind: 'native' }],
	[frame('main', 2), frame('fit', 6), { name: 'solve_in_c', kind: 'native' }],
	[],
];
const text = Array.from({ length: 8 }, (_, i) => `line ${i + 1}`).join('\n');
export const profile = {
	title: 'work.out',
	types: [
		{ name: 'samples', unit: 'count' },
		{ name: 'alloc_size', unit: 'bytes' },
	],
	texts: [{ file: '/home/me/work.R', text }],
};
export const samples = stacks.map((stack, i) => ({ stack, values: [1, 1024 * i] }));
export const small = makeData(samples, profile);
export const runs = makeData(
	stacks.flatMap((stack, i) => [
		{ stack, source: 0, values: [1, 10] },
		...(i < 4 ? [{ stack, source: 1, values: [1, 20] }] : []),
	]),
	{ ...profile, sources: [{}, {}] },
);
/** A worker computes for 2 s, then another one for 1 s, on the clock of a master that was recorded without times. */
export const processes = makeData(
	[0, 1, 1, 2].map((source) => ({ stack: stacks[source], source, values: [1e9] })),
	{
		...profile,
		types: [{ name: 'cpu', unit: 'nanoseconds' }],
		sources: ['master, pid 1', 'worker 1 of 2, pid 2', 'worker 2 of 2, pid 3'].map((name) => ({
			name,
			period: 1e9,
			start: 100,
			seconds: 4,
		})),
	},
);
for (const [source, start] of [
	[1, 101],
	[2, 103],
])
	processes.order[source].times = { start, step: 1e9, sample: [0], at: [0] };
processes.parallel = {
	sentence: '2 workers were busy 75% of 4 s.',
	columns: ['what the workers did', 'share', 'time'],
	cells: ['busy: computed in tasks', '75.0%', '6s'],
	notes: ['On average, 1.5 of at most 2 were busy.'],
};
export const change = makeData(
	[
		...stacks.slice(0, 6).map((stack) => ({ stack, source: 0, values: [2, 0] })),
		...stacks.slice(3).map((stack) => ({ stack, source: 1, values: [1, 0] })),
		{ stack: [frame('main', 1), frame('old', 9)], source: 1, values: [4, 0] },
	],
	{ ...profile, sources: [{ period: 1e7 }, { period: 2e7, base: true }] },
);
const run = (source, name, n) => ({ stack: [frame('report', 1), { name }], source, values: [n] });
/** A comparison of two runs with one, with its result. */
export const compared = makeData(
	[
		run(0, 'gsub', 6),
		run(1, 'gsub', 8),
		run(2, 'sub', 4),
		run(0, 'keep', 10),
		run(1, 'keep', 12),
		run(2, 'keep', 3),
	],
	{ sources: [{ period: 1e7 }, { period: 1e7 }, { period: 1e7, base: true }] },
);
compared.comparison = {
	head: 'time per run, 1 run of base and 2 of new',
	whole: '70ms -> 180ms, +157%: more',
	verdict: 'more',
	notes: ['And 1 more.'],
	columns: ['name', 'base', 'new', 'change', 'verdict'],
	cells: ['gsub', '0', '70ms', 'new', 'more', 'sub', '40ms', '0', '-100%', 'less'],
	expression: [],
};
compared.functions.found = compared.functions.name.map((name) =>
	Number(['gsub', 'sub'].includes(compared.strings[name])),
);
/** Heap snapshots, by source: a path has the kinds and names of its frames, and bytes and objects. */
const snapshots = (sources, ...paths) => ({
	...makeData(
		paths.map(([source, bytes, objects, ...frames]) => ({
			stack: frames.map((text) => {
				const [kind, name, alike] = text.split(': ');
				return { name, kind, alike };
			}),
			source,
			values: [bytes, objects],
		})),
		{
			title: 'pid:123',
			types: [
				{ name: 'inuse_space', unit: 'bytes' },
				{ name: 'inuse_objects', unit: 'count' },
			],
			sources: sources.map((source) => ({ type: 'heap', period: null, ...source })),
			timeline: false,
		},
	),
	counts: -1,
	bytes: -1,
	plumbing: [],
	heap: heapKinds,
});
const held = (source, fits, cache) => [
	[source, fits, 1000, 'root: globalenv', 'binding: $fits <list>', 'element: [[*]] <lm>', 'type: numeric'],
	[source, 2000, 2, 'root: globalenv', 'binding: $f()', 'environment: closure env', 'type: environment'],
	[source, cache, 50, 'root: namespace:own', 'binding: $cache [shared]', 'type: character'],
	[source, 500, 1, 'root: free cells of R', 'type: cells'],
];
export const heap = snapshots([{}], ...held(0, 6000, 1500));
export const cache = snapshots(
	[{}],
	...Array.from({ length: 6 }, (_, i) => [
		0,
		100 * (i + 1),
		1,
		'root: globalenv',
		'binding: $cache',
		`binding: $key${i}: $key* (6)`,
		'binding: $value',
		...Array.from({ length: 5 }, (_, level) => `element: [[*]] <a class with a long name, number ${level}>`),
		'type: numeric',
	]),
	[0, 50, 1, 'root: globalenv', 'binding: $key1', 'type: numeric'],
);
export const growth = snapshots([{}, { base: true }], ...held(0, 6000, 1500), ...held(1, 3000, 1600));

let files = 0;
/** Opens the page of these data, by default with the table and the first type. */
export async function open(
	data,
	{ hash = '#tab=table&type=0', scheme = 'light', width = 1200, height = 800 } = {},
) {
	const file = join(folder, `${files++}.html`);
	writeFileSync(file, joinPage(data));
	const page = await browser.newPage();
	page.setDefaultTimeout(LIMIT);
	page.problems = [];
	page.requests = [];
	page.on('pageerror', (error) => page.problems.push(error.message));
	page.on('console', (message) => page.problems.push(message.text()));
	page.on('request', (request) => page.requests.push(request.url()));
	await page.setViewport({ width, height });
	await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
	await page.goto(pathToFileURL(file).href + hash);
	await page.waitForSelector('body.ready');
	return page;
}

/** Checks what holds for every page, and closes it. */
export async function finish(page) {
	const elements = await page.evaluate(() => document.querySelectorAll('*').length);
	assert.ok(elements <= 3000, `${elements} elements`);
	assert.deepEqual(page.problems, []);
	assert.equal(page.requests.filter((url) => !url.startsWith('file:') || !url.includes('.html')).length, 0);
	await page.close();
}

export const textOf = (page, selector) => page.$eval(selector, (found) => found.textContent);
export const rows = (page) =>
	page.$$eval('#figures tbody tr', (all) =>
		all.map((row) => {
			const cells = [...row.querySelectorAll('td')].map((cell) => [
				cell.dataset.column,
				Number(cell.dataset.value),
			]);
			return { name: row.querySelector('th').dataset.name, ...Object.fromEntries(cells) };
		}),
	);
export const row = async (page, name) => (await rows(page)).find((found) => found.name === name);
