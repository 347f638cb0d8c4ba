// Tests of what assistive technology sees, and of pages of irregular and hostile profiles.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
	axe,
	cache,
	change,
	compared,
	finish,
	growth,
	heap,
	open,
	profile,
	rows,
	runs,
	samples,
	textOf,
} from './browser.mjs';
import { INHERITED, inherited, makeData } from './page.mjs';

const hostile = [
	'</script><script>document.title="bad"</script>',
	'<img src=x onerror=alert(1)>',
	'"\' onmouseover="alert(1)',
	'a\u2028b\u2029c',
	'\u202egnp.exe\u202c',
	'שלום עולם',
	'line\nfeed\ttab\u0007',
	'x'.repeat(1e6),
	'',
	'constructor',
	'__proto__',
];

test('hostile names, paths and texts are text', async () => {
	const stackOf = (name) => [
		{ name, file: `/tmp/${name.slice(0, 100)}`, line: 1, package: name.slice(0, 50) },
		'f',
	];
	const data = makeData(
		hostile.map((name) => ({ stack: stackOf(name) })),
		{
			title: hostile[0],
			texts: hostile.slice(0, 8).map((name) => ({ file: `/tmp/${name}`, text: `${name}\n${name}` })),
			sources: [{ name: hostile[1] }],
		},
	);
	const page = await open(data);
	const names = (await rows(page)).map((found) => found.name);
	assert.deepEqual(names.sort(), ['f', ...hostile].sort());
	for (const by of ['line', 'package', 'function']) await page.select('#by', by);
	for (const colour of ['file', 'kind', 'package']) await page.select('#colour', colour);
	for (let item = 0; item < hostile.length; item++) {
		await page.evaluate((chosen) => choose(chosen), item);
		for (const tab of ['calls', 'code', 'table']) await page.evaluate((chosen) => showTab(chosen), tab);
	}
	await page.evaluate(() => showTab('code'));
	assert.equal(await page.evaluate(() => document.title), hostile[0]);
	assert.equal(await page.evaluate(() => document.querySelectorAll('img, iframe, script').length), 3);
	const shown = await textOf(page, 'main');
	for (const char of ['\u2028', '\u202e', '\u0007']) assert.ok(!shown.includes(char));
	await finish(page);
});

test('names of inherited properties are names as any other', async () => {
	const page = await open(inherited);
	assert.deepEqual((await rows(page)).map((found) => found.name).sort(), [...INHERITED].sort());
	for (let type = 0; type < INHERITED.length; type++) await page.select('#type', String(type));
	for (const by of ['line', 'package', 'function']) await page.select('#by', by);
	for (const colour of ['file', 'package', 'kind']) await page.select('#colour', colour);
	const legend = await page.evaluate(() =>
		[...document.querySelectorAll('#legend li')].map((li) => li.textContent),
	);
	assert.deepEqual(legend.sort(), [...INHERITED].sort());
	// The picture has all boxes.
	assert.equal(await page.evaluate(() => picture.boxes.n), INHERITED.length + 1);
	for (let item = 0; item < INHERITED.length; item++) {
		await page.evaluate((chosen) => choose(chosen), item);
		for (const tab of ['calls', 'code', 'table']) await page.evaluate((chosen) => showTab(chosen), tab);
	}
	await finish(page);
});

test('a difference shows what has become less, and a type without values says so', async () => {
	const values = [
		[5, 0],
		[-5, 0],
		[10, 0],
	];
	const stackOf = [['g', 'f'], ['g'], ['h']];
	const data = makeData(
		stackOf.map((stack, i) => ({ stack, values: values[i] })),
		{
			types: [
				{ name: 'alloc_space', unit: 'bytes' },
				{ name: 'inuse_space', unit: 'bytes' },
			],
			timeline: false,
		},
	);
	data.values[0].whole = 20;
	const page = await open(data);
	assert.deepEqual(
		(await rows(page)).map(({ name, self, total }) => [name, self, total]),
		[
			['h', 10, 10],
			['f', 5, 5],
			['g', -5, 0],
		],
	);
	assert.match(await textOf(page, '#figures tbody tr:last-child'), /−25\.0%/);
	assert.match(await textOf(page, '#legend'), /less.*more/);
	await page.evaluate(() => choose(app.items.names.indexOf('g')));
	assert.match(await textOf(page, '#detail'), /^g · total 0\.0% \(0\) · self −25\.0% \(−5 B\)/);
	await page.select('#type', '1');
	await page.evaluate(() => choose(-1));
	assert.equal(await textOf(page, '#detail'), 'All values of inuse_space are 0. Choose alloc_space.');
	await finish(page);
});

for (const [name, data] of Object.entries({
	'no samples': makeData([], { types: [] }),
	'samples without a stack': makeData([{ stack: [] }]),
	'one sample': makeData([{ stack: ['f'] }]),
	'memory only': makeData([{ stack: ['f'], values: [512] }], {
		types: [{ name: 'alloc_space', unit: 'bytes' }],
	}),
	'no timeline': makeData(samples, { ...profile, timeline: false }),
	'frames without functions': makeData([{ stack: [{ name: null }, { name: null }] }]),
	'deep recursion': makeData([{ stack: Array(20000).fill('f') }, { stack: ['f', 'g'] }]),
	'negative values': makeData([
		{ stack: ['f'], values: [-3] },
		{ stack: ['f', 'g'], values: [5] },
	]),
})) {
	test(`a profile with ${name}`, async () => {
		const page = await open(data);
		for (const tab of ['calls', 'code', 'table']) await page.evaluate((chosen) => showTab(chosen), tab);
		for (const by of ['line', 'package', 'function']) await page.select('#by', by);
		await page.select('#layout', 'flame');
		await page.evaluate(() => {
			choose(app.items.n > 0 ? 0 : -1);
			showTab('calls');
			document.getElementById('stage').scrollTop = 1e6;
		});
		// What was scrolled to is drawn in the next frame.
		await page.evaluate(
			() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
		);
		if (name === 'no timeline') assert.ok(await page.$eval('#time', (time) => time.hidden));
		await finish(page);
	});
}

for (const scheme of ['light', 'dark']) {
	for (const width of [1400, 600, 420]) {
		test(`axe finds nothing, ${scheme}, ${width} pixels`, async () => {
			const page = await open(runs, { scheme, width });
			await page.evaluate(axe);
			const check = async (what) => {
				const { violations } = await page.evaluate(() => axe.run());
				const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
				assert.deepEqual(found, [], what);
			};
			await check('table');
			await page.evaluate(() => showTab('code'));
			await check('code');
			await page.evaluate(() => choose(1));
			for (const tab of ['calls', 'code']) {
				await page.evaluate((chosen) => showTab(chosen), tab);
				await check(tab);
			}
			await page.evaluate(() => showHelp());
			await check('help');
			await finish(page);
		});
	}
}

for (const [name, data] of Object.entries({
	comparison: change,
	compared,
	'heap snapshot': heap,
	cache,
	growth,
})) {
	test(`the page is accessible, too: ${name}`, async () => {
		const page = await open(data);
		await page.evaluate(axe);
		const check = async () => {
			const { violations } = await page.evaluate(() => axe.run());
			assert.deepEqual(
				violations.map(({ id }) => id),
				[],
			);
		};
		await check();
		await page.evaluate(() => showHelp());
		await check();
		await finish(page);
	});
}
