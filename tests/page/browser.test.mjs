// Tests of what users do with the page, with mouse and keyboard.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
	axe,
	browser,
	cache,
	change,
	compared,
	finish,
	growth,
	heap,
	open,
	processes,
	profile,
	row,
	rows,
	runs,
	samples,
	small,
	textOf,
} from './browser.mjs';
import { joinPage, makeData } from './page.mjs';

const hash = async (page, expected) => {
	await page.waitForFunction((wanted) => location.hash.includes(wanted), {}, expected);
};
/** Waits for a text: the page searches a little after the last key. */
const shows = (page, selector, text) =>
	page.waitForFunction((id, wanted) => document.querySelector(id).textContent === wanted, {}, selector, text);
const pressIn = async (page, selector, ...keys) => {
	await page.focus(selector);
	for (const key of keys) await page.keyboard.press(key);
};

/** The place of the box of a function in the flame graph, drawn now: after scrolling, a page draws its next frame. */
async function boxOf(page, name) {
	const at = await page.evaluate((wanted) => {
		drawPicture();
		const { boxes, layers } = picture;
		const area = document.getElementById('stage').getBoundingClientRect();
		for (let i = boxes.n - 1; i >= 0; i--) {
			const { tree } = layers[boxes.layer[i]];
			if (tree.groups.names[tree.group[boxes.node[i]]] !== wanted) continue;
			const y = (boxes.row[i] + 0.5) * ROW - document.getElementById('stage').scrollTop + picture.offset;
			return [area.left + boxes.x[i] + boxes.w[i] / 2, area.top + y];
		}
		return null;
	}, name);
	assert.ok(at, `${name} is not in the picture`);
	return at;
}
const clickBox = async (page, name, count = 1) => page.mouse.click(...(await boxOf(page, name)), { count });
// biome-ignore lint/performance/useDomNodeTextContent: textContent has the texts that are hidden, too.
const visibleText = (page, selector) => page.$eval(selector, (found) => found.innerText);
const stateOf = (page, ...keys) => page.evaluate((wanted) => wanted.map((key) => app.state[key]), keys);

test('the flame graph scrolls to what is chosen or found', async () => {
	const calls = (name, depth) => Array.from({ length: depth }, (_, i) => `${name}${i}`);
	const deep = [...calls('deep', 200), 'inner'];
	const page = await open(makeData([{ stack: deep }, { stack: [...calls('deep', 100), 'middle'] }]));
	const top = () => page.$eval('#stage', (stage) => stage.scrollTop);
	const isVisible = (name) => boxOf(page, name).then(([, y]) => y > 0);
	assert.equal(await top(), 0);
	await page.type('#search', 'inner');
	await hash(page, 'q=inner');
	assert.ok((await top()) > 3000);
	assert.ok(await isVisible('inner'));
	// Chosen in the table.
	await page.evaluate(() => choose(app.items.names.indexOf('middle')));
	assert.ok((await top()) < 2500);
	assert.ok(await isVisible('middle'));
	// What is visible stays where it is.
	const before = await top();
	await page.evaluate(() => choose(app.items.names.indexOf('deep99')));
	assert.equal(await top(), before);
	await page.evaluate(() => choose(app.items.names.indexOf('deep0')));
	assert.equal(await top(), 0);
	await finish(page);
});

test('the table has self, total, bytes and garbage collection', async () => {
	const page = await open(small);
	const expected = { name: 'paste', self: 3, selfAmount: 3, total: 4, totalAmount: 4, bytes: 4096, gc: 1 };
	assert.deepEqual(await row(page, 'paste'), expected);
	assert.equal((await row(page, 'main')).total, 7);
	assert.match(await textOf(page, '#left-out'), /without a stack \(no function was recorded\): 1\.$/);
	assert.match(await textOf(page, '#contents'), /source text of 1 file\. It contains paths/);
	await finish(page);
});

test('a click chooses, a double click zooms, Escape goes back, and the address follows', async () => {
	const page = await open(small);
	const item = await page.evaluate(() => app.items.names.indexOf('load'));
	await clickBox(page, 'load');
	assert.match(await textOf(page, '#detail'), /^load · work\.R:2–3 · own · total 42\.9% \(3\)/);
	assert.deepEqual(await stateOf(page, 'select', 'zoom'), [item, 0]);
	assert.equal(await textOf(page, '#figures tr.chosen th bdi'), 'load');
	await clickBox(page, 'load', 2);
	const zoom = await page.evaluate(() => app.state.zoom);
	assert.ok(zoom > 0);
	const width = await page.evaluate(() => picture.boxes.w[picture.boxes.node.indexOf(app.state.zoom)]);
	assert.ok(width > 500);
	await hash(page, `zoom=${zoom}`);
	await page.keyboard.press('Escape');
	assert.deepEqual(await stateOf(page, 'select', 'zoom'), [item, 0]);
	await page.keyboard.press('Escape');
	assert.deepEqual(await stateOf(page, 'select', 'zoom'), [-1, 0]);
	// An empty part of the picture.
	await clickBox(page, 'load');
	const { x, y, height } = await (await page.$('#stage')).boundingBox();
	await page.mouse.click(x + 5, y + height - 5);
	assert.deepEqual(await stateOf(page, 'select'), [-1]);
	await finish(page);
});

test('a tooltip describes the box or the row at the pointer', async () => {
	const page = await open(small);
	await page.mouse.move(...(await boxOf(page, 'load')));
	const lines = () => page.$$eval('#tooltip div', (all) => all.map((line) => line.textContent));
	assert.deepEqual(await lines(), ['load', 'work.R:2–3', 'own', 'total 42.9% (3)', 'self 0.0% (0)']);
	const inside = await page.$eval('#tooltip', (tip) => {
		const { left, right, top, bottom } = tip.getBoundingClientRect();
		return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight;
	});
	assert.ok(inside);
	await page.mouse.move(5, 5);
	assert.ok(await page.$eval('#tooltip', (tip) => tip.hidden));
	await page.hover('#figures tbody tr:nth-child(2) th');
	assert.equal((await lines())[0], await textOf(page, '#figures tbody tr:nth-child(2) th bdi'));
	await finish(page);
});

test('a click anywhere in a row chooses it, and nothing moves', async () => {
	const page = await open(small, { hash: '#tab=table&type=0', height: 500 });
	await page.$eval('#panel-table', (panel) => {
		panel.scrollTop = 40;
	});
	const name = await textOf(page, '#figures tbody tr:nth-child(5) th bdi');
	await page.click('#figures tbody tr:nth-child(5) td:last-child');
	assert.equal(await textOf(page, '#figures tr.chosen th bdi'), name);
	assert.equal(await page.$eval('#panel-table', (panel) => panel.scrollTop), 40);
	assert.equal(await textOf(page, '#figures tbody tr:nth-child(5) th bdi'), name);
	await finish(page);
});

test('the flame graph is used with the keyboard', async () => {
	const page = await open(small);
	await pressIn(page, '#stage', 'ArrowDown', 'ArrowDown');
	assert.match(await textOf(page, '#detail'), /^fit/);
	await page.keyboard.press('ArrowRight');
	assert.match(await textOf(page, '#detail'), /^load/);
	await page.keyboard.press('ArrowLeft');
	await page.keyboard.press(' ');
	assert.equal(await textOf(page, '#figures tr.chosen th bdi'), 'fit');
	await page.keyboard.press('Enter');
	assert.match(await textOf(page, '#detail'), /^fit/);
	assert.ok((await page.evaluate(() => app.state.zoom)) > 0);
	await page.keyboard.press('c');
	assert.equal(await page.evaluate(() => app.state.tab), 'calls');
	await page.keyboard.press('Escape');
	await page.keyboard.press('?');
	assert.ok(await page.$eval('#help', (help) => help.open));
	await page.keyboard.press('Escape');
	assert.ok(!(await page.$eval('#help', (help) => help.open)));
	await page.keyboard.press('/');
	assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
	await finish(page);
});

test('search gives the share that matches, and keeps matching rows', async () => {
	const page = await open(small);
	await page.type('#search', '^(paste|lapply)$');
	// Five of seven: three with lapply and two others with paste.
	await shows(page, '#matched', '71.4% match (5)');
	assert.deepEqual((await rows(page)).map((found) => found.name).sort(), ['lapply', 'paste']);
	await page.type('#search', '(');
	await shows(page, '#matched', 'invalid expression');
	assert.ok(await page.$('#search[aria-invalid]'));
	await finish(page);
});

test('the brush selects samples, by mouse and by keyboard', async () => {
	const page = await open(small);
	const { x, y, width } = await (await page.$('#strip')).boundingBox();
	await page.mouse.move(x + 1, y + 20);
	await page.mouse.down();
	await page.mouse.move(x + width * 0.2, y + 20);
	await page.mouse.move(x + width * 0.375, y + 20, { steps: 4 });
	await page.mouse.up();
	assert.deepEqual(await page.evaluate(() => app.state.brush), [0, 3]);
	assert.equal((await row(page, 'main')).total, 3);
	assert.equal((await row(page, 'paste')).bytes, 1024);
	assert.match(await textOf(page, '#range'), /samples 1 to 3 of 8, 0 to 30 ms/);
	await pressIn(page, '#strip', 'ArrowRight');
	assert.deepEqual(await page.evaluate(() => app.state.brush), [1, 4]);
	await page.keyboard.down('Shift');
	await page.keyboard.press('ArrowRight');
	await page.keyboard.up('Shift');
	assert.deepEqual(await page.evaluate(() => app.state.brush), [1, 5]);
	await hash(page, 'brush=1-5');
	await page.keyboard.press('Escape');
	assert.equal((await row(page, 'main')).total, 7);
	await finish(page);
});

test('callers and callees of a function', async () => {
	const page = await open(small);
	await page.click('#figures button[data-item]');
	assert.match(await textOf(page, '#detail'), /^paste/);
	await page.click('#go-calls');
	const lists = await page.$$eval('#panel-calls table', (tables) =>
		tables.map((table) =>
			[...table.querySelectorAll('tbody tr')].map((tr) => [
				tr.querySelector('th').textContent,
				Number(tr.querySelector('[data-value]').dataset.value),
			]),
		),
	);
	assert.deepEqual(lists, [
		[
			['FUN', 2],
			['fit', 2],
		],
		[
			['(itself)', 3],
			['<GC>', 1],
		],
	]);
	assert.equal(await page.evaluate(() => picture.layers.length), 2);
	await clickBox(page, 'FUN');
	assert.equal(await textOf(page, '#panel-calls h3'), 'paste');
	assert.match(await textOf(page, '#detail'), /^FUN/);
	await clickBox(page, 'FUN', 2);
	assert.equal(await textOf(page, '#panel-calls h3'), 'FUN');
	await finish(page);
});

test('the page begins with the code: lines with the largest values, and the source text', async () => {
	const page = await open(small, { hash: '' });
	assert.deepEqual(await stateOf(page, 'tab', 'type'), ['code', 2]);
	const hot = () =>
		page.$$eval('.hot-lines tbody tr', (all) =>
			all.map((row) => [
				row.querySelector('th').textContent,
				row.querySelector('button').textContent,
				Number(row.querySelector('[data-value]').dataset.value),
			]),
		);
	// Self of a line is the self of stacks whose innermost frame with a line is in it.
	assert.deepEqual(await hot(), [
		['line 2', 'work.R:2', 2e7],
		['line 5', 'work.R:5', 2e7],
		['line 6', 'work.R:6', 2e7],
		['line 3', 'work.R:3', 1e7],
	]);
	await page.select('#type', '0');
	const line = (number) =>
		page.$$eval(`#text tr[data-line="${number}"] [data-value]`, (cells) =>
			cells.map((cell) => Number(cell.dataset.value)),
		);
	assert.deepEqual(await line(2), [2, 6, 6, 1024]);
	assert.deepEqual(await line(5), [2, 2, 2, 7168]);
	assert.deepEqual(await line(4), []);
	assert.equal(await textOf(page, '#text tr[data-line="4"] .code'), 'line 4');
	// A click on a line chooses it, and marks the boxes on it.
	await page.click('.hot-lines tbody tr:nth-child(2) th');
	assert.deepEqual(await stateOf(page, 'line', 'select'), [5, -1]);
	assert.equal(await page.$eval('#text tr.chosen', (row) => row.dataset.line), '5');
	const marked = await page.evaluate(() =>
		Array.from(app.onLine.keys())
			.filter((node) => app.onLine[node])
			.map((node) => app.labels[app.tree.group[node]]),
	);
	assert.deepEqual(marked, ['fit']);
	await page.keyboard.press('Escape');
	assert.deepEqual(await stateOf(page, 'line'), [0]);
	await finish(page);
});

test('for a function without source text, the code shows the lines that call it', async () => {
	const page = await open(small, { hash: '#type=0' });
	await clickBox(page, 'paste');
	assert.match(await textOf(page, '.hot-lines caption'), /^paste has no source text here/);
	const calls = await page.$$eval('.hot-lines tbody tr', (all) =>
		all.map((row) => [
			row.querySelector('button').textContent,
			Number(row.querySelector('td').dataset.value),
		]),
	);
	assert.deepEqual(calls, [
		['work.R:2', 2],
		['work.R:5', 2],
	]);
	// The text around the first of them.
	assert.equal(await page.$eval('#text tr.chosen', (row) => row.dataset.line), '2');
	await clickBox(page, 'fit');
	assert.equal(await page.$eval('#text tr.chosen', (row) => row.dataset.line), '5');
	await finish(page);
});

test('code of 80 characters and all columns of the table fit at 1400 pixels', async () => {
	const page = await open(small, { hash: '', width: 1400, height: 900 });
	await page.evaluate(() => {
		app.files = null;
		app.model.texts[0].text = Array(8).fill('x'.repeat(80)).join('\n');
		drawCode();
	});
	const overflows = (id) => page.$eval(id, (box) => box.scrollWidth - box.clientWidth);
	assert.equal(await overflows('#text'), 0);
	await page.evaluate(() => showTab('table'));
	assert.equal(await overflows('#panel-table'), 0);
	await finish(page);
});

test('in a narrow window the panes are one above the other, as wide as the window', async () => {
	for (const width of [600, 420]) {
		const page = await open(small, { hash: '', width, height: 600 });
		const boxes = await page.$$eval('#picture, #side', (all) =>
			all.map((box) => {
				const { left, top, width, height } = box.getBoundingClientRect();
				return { left, top, width, height };
			}),
		);
		assert.equal(boxes[0].left, boxes[1].left);
		// The code is first.
		assert.ok(boxes[0].top >= boxes[1].top + boxes[1].height);
		for (const box of boxes) assert.ok(box.width > width - 40 && box.height >= 320, JSON.stringify(box));
		await finish(page);
	}
});

test('selectors of type, run, grouping, colour and layout', async () => {
	const page = await open(runs);
	assert.equal((await row(page, 'main')).total, 11);
	await page.select('#source', '1');
	assert.equal((await row(page, 'main')).total, 4);
	await page.select('#type', '1');
	assert.equal((await row(page, 'main')).total, 80);
	await page.select('#type', '2');
	assert.equal((await row(page, 'main')).total, 4e7);
	await page.select('#source', '-1');
	await page.select('#type', '0');
	await page.select('#by', 'line');
	assert.equal((await row(page, '/home/me/work.R:5')).self, 3);
	await page.select('#by', 'package');
	assert.deepEqual(
		await rows(page),
		[
			{ name: 'base', self: 8, selfAmount: 8, total: 9, totalAmount: 9, bytes: 120 },
			{ name: 'unknown package', self: 3, selfAmount: 3, total: 3, totalAmount: 3, bytes: 30 },
			{ name: 'own', self: 0, selfAmount: 0, total: 11, totalAmount: 11, bytes: 0 },
		].map((found) => ({ ...found, gc: { base: 1 }[found.name] ?? 0 })),
	);
	await page.select('#by', 'file');
	assert.deepEqual(
		(await rows(page)).map(({ name, self, total }) => [name, self, total]),
		[
			['unknown file', 11, 11],
			['/home/me/work.R', 0, 11],
		],
	);
	await page.select('#by', 'function');
	for (const colour of ['kind', 'file', 'package']) await page.select('#colour', colour);
	await page.select('#layout', 'flame');
	assert.equal(await page.evaluate(() => picture.layers[0].down), -1);
	await page.click('#hide');
	assert.equal(await row(page, 'lapply'), undefined);
	assert.equal((await row(page, 'main')).total, 11);
	await hash(page, 'hide=1&layout=flame');
	await finish(page);
});

test('plumbing of more than ten rows is hidden at first, and the page says so', async () => {
	const frames = (...names) => names.map((name) => ({ name, file: name === 'main' ? 'app.R' : '', line: 1 }));
	const data = makeData([{ stack: frames('start', ...Array(12).fill('lapply'), 'main', 'sort', 'order') }], {
		mine: ['app.R'],
	});
	const page = await open(data);
	const names = async () => (await rows(page)).map((found) => found.name).sort();
	const said = () => page.$eval('#hidden-rows', (line) => line.textContent);
	await page.click('#tab-table');
	assert.deepEqual(await names(), ['main', 'order', 'sort', 'start']);
	assert.equal(await said(), 'Hidden: about 12 rows of plumbing');
	await page.click('#mine');
	assert.deepEqual(await names(), ['main', 'sort']);
	await page.click('#hide');
	assert.deepEqual(await names(), ['main', 'sort']);
	await page.click('#mine');
	assert.deepEqual(await names(), ['lapply', 'main', 'order', 'sort', 'start']);
	assert.equal(await said(), '');
	// A sample without code of the user keeps its outermost frame.
	const other = await open(
		makeData([{ stack: frames('start', 'main') }, { stack: frames('start', 'wait') }], { mine: ['app.R'] }),
	);
	await other.click('#tab-table');
	await other.click('#mine');
	assert.deepEqual(
		(await rows(other)).map(({ name, total }) => [name, total]),
		[
			['main', 1],
			['start', 1],
		],
	);
	await other.close();
	await finish(page);
});

test('the table is sorted by any column', async () => {
	const page = await open(small);
	const names = async () => (await rows(page)).map((found) => found.name);
	await page.click('th[data-column="name"] button');
	assert.deepEqual(await names(), [...(await names())].sort());
	await page.click('th[data-column="total"] button');
	assert.equal((await names())[0], 'main');
	assert.equal(await page.$eval('th[data-column="total"]', (head) => head.ariaSort), 'descending');
	await page.click('th[data-column="total"] button');
	assert.notEqual((await names())[0], 'main');
	await finish(page);
});

test('a comparison has both sides, the change, and what is gone', async () => {
	const page = await open(change, { hash: '#tab=table' });
	// Amounts are times: samples times the interval of their run.
	assert.deepEqual(await row(page, 'main'), {
		name: 'main',
		totalBase: 16e7,
		total: 12e7,
		totalChange: -4e7,
		selfChange: 0,
	});
	assert.equal((await row(page, 'old')).totalBase, 8e7);
	assert.equal((await row(page, 'old')).total, 0);
	const old = await page.evaluate(() => {
		const { tree } = picture.layers[0];
		const node = [...tree.group].findIndex((group) => tree.groups.names[group] === 'old');
		return [tree.width[node], picture.boxes.node.slice(0, picture.boxes.n).includes(node)];
	});
	assert.deepEqual(old, [8e7, true]);
	await page.select('#unit', 'shares');
	assert.equal((await row(page, 'old')).totalBase, 0.5);
	assert.equal((await row(page, 'main')).totalChange, 0);
	await finish(page);
});

test('a comparison begins with its result, and has values per run', async () => {
	const page = await open(compared, { hash: '' });
	assert.equal(await textOf(page, '#answer-whole'), 'Whole run: 70ms -> 180ms, +157%: more');
	assert.equal(await textOf(page, '#answer-head'), 'time per run, 1 run of base and 2 of new');
	const cells = await page.$$eval('#answer-rows tbody tr', (all) =>
		all.map((one) => [...one.children].map((cell) => cell.textContent)),
	);
	assert.deepEqual(cells, [
		['gsub', '0', '70ms', 'new', 'more'],
		['sub', '40ms', '0', '-100%', 'less'],
	]);
	assert.equal(await textOf(page, '#answer-notes'), 'And 1 more.');
	// The functions come next: what was found first, then by the size of the change, per run.
	assert.deepEqual(
		(await rows(page)).map(({ name, totalBase, total }) => [name, totalBase, total]),
		[
			['gsub', 0, 7e7],
			['sub', 4e7, 0],
			['report', 7e7, 18e7],
			['keep', 3e7, 11e7],
		],
	);
	assert.equal(await page.$eval('#type', (select) => select.selectedOptions[0].textContent), 'time per run');
	await page.click('#answer-rows tr:nth-child(2) button');
	assert.equal(await textOf(page, '#figures tr.chosen th bdi'), 'sub');
	// A single run is compared with all runs of the other side.
	await page.select('#source', '1');
	assert.equal((await row(page, 'gsub')).total, 8e7);
	// All columns fit beside the picture.
	await page.setViewport({ width: 1400, height: 900 });
	assert.ok(await page.$eval('#panel-table', (panel) => panel.scrollWidth <= panel.clientWidth));
	await finish(page);
});

test('the address restores the view', async () => {
	const page = await open(small, {
		hash: '#by=line&hide=1&layout=flame&q=fit&brush=1-6&sort=total&tab=calls&select=2&zoom=3',
	});
	assert.equal(await page.$eval('#by', (select) => select.value), 'line');
	assert.ok(await page.$eval('#hide', (box) => box.checked));
	assert.deepEqual(await page.evaluate(() => [app.state.brush, app.state.q, app.state.zoom]), [
		[1, 6],
		'fit',
		3,
	]);
	assert.match(await textOf(page, '#matched'), /match/);
	await page.evaluate(() => {
		location.hash = '#by=package';
	});
	await page.waitForFunction(() => document.getElementById('by').value === 'package');
	assert.equal(await page.evaluate(() => app.state.q), '');
	await finish(page);
});

test('the page works in a frame without an address', async () => {
	const page = await browser.newPage();
	const problems = [];
	page.on('pageerror', (error) => problems.push(error.message));
	await page.setContent('<iframe width="900" height="600"></iframe>');
	await page.evaluate((html) => {
		document.querySelector('iframe').srcdoc = html;
	}, joinPage(small));
	const inner = await (await page.waitForSelector('iframe')).contentFrame();
	await inner.waitForSelector('body.ready');
	await inner.select('#by', 'line');
	// The page changes its address after 150 ms, which fails in this frame: a timer that was set later fires later.
	await inner.evaluate(() => new Promise((resolve) => setTimeout(resolve, 150)));
	assert.equal(await inner.$eval('#by', (select) => select.value), 'line');
	assert.deepEqual(problems, []);
	await page.close();
});

test('the time layout shows the samples in their order, and zooms and moves', async () => {
	const page = await open(small, { hash: '#layout=time&tab=table&type=0' });
	const boxes = () =>
		page.evaluate(() => {
			const { boxes, layers } = picture;
			return Array.from({ length: boxes.n }, (_, i) => [
				layers[0].tree.groups.names[layers[0].tree.group[boxes.node[i]]],
				boxes.row[i],
				Math.round((8 * boxes.x[i]) / document.getElementById('stage').clientWidth),
				Math.round((8 * boxes.w[i]) / document.getElementById('stage').clientWidth),
			]).filter(([, row]) => row <= 3);
		});
	// [name, row, first sample, samples]
	assert.deepEqual((await boxes()).sort(), [
		['fit', 3, 3, 4],
		['load', 3, 0, 3],
		['main', 2, 0, 7],
	]);
	assert.equal(await textOf(page, '#picture-title'), 'Samples over time');
	await page.mouse.move(...(await boxOf(page, 'load')));
	const lines = () => page.$$eval('#tooltip div', (all) => all.map((line) => line.textContent));
	assert.deepEqual((await lines()).slice(0, 2), ['load', 'at 10 ms, sample 2']);
	await page.mouse.move(...(await boxOf(page, 'fit')));
	assert.deepEqual((await lines()).slice(0, 2), ['fit', 'at 50 ms, sample 6, 40 ms long']);
	await page.mouse.move(...(await boxOf(page, 'load')));
	await clickBox(page, 'load');
	assert.equal(await textOf(page, '#figures tr.chosen th bdi'), 'load');
	// The wheel zooms around the pointer.
	await page.mouse.wheel({ deltaY: -400 });
	const [[from, to]] = await stateOf(page, 'view');
	assert.ok(from > 0 && to < 8e7 && to - from < 5e7, `${from} ${to}`);
	await hash(page, `view=${Math.round(from)}-${Math.round(to)}`);
	// A drag moves, and chooses nothing.
	const [x, y] = await boxOf(page, 'load');
	await page.mouse.move(x, y);
	await page.mouse.down();
	await page.mouse.move(x - 100, y, { steps: 3 });
	await page.mouse.up();
	const [[moved], select] = await stateOf(page, 'view', 'select');
	assert.ok(moved > from);
	assert.equal(select, await page.evaluate(() => app.items.names.indexOf('load')));
	await page.keyboard.press('Escape');
	assert.deepEqual(await stateOf(page, 'view'), [null]);
	// A double click zooms to a box.
	await clickBox(page, 'fit', 2);
	assert.deepEqual((await stateOf(page, 'view'))[0].map(Math.round), [3e7, 7e7]);
	await pressIn(page, '#stage', 'ArrowLeft');
	assert.deepEqual((await stateOf(page, 'view'))[0].map(Math.round), [2.6e7, 6.6e7]);
	await pressIn(page, '#stage', '-', '-', '-');
	assert.deepEqual(await stateOf(page, 'view'), [null]);
	await page.evaluate(axe);
	const { violations } = await page.evaluate(() => axe.run());
	assert.deepEqual(violations, []);
	await finish(page);
});

test('the time layout shows what runs in each column of pixels, also in boxes of a pixel', async () => {
	let state = 7;
	const random = (n) => {
		state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
		return Math.floor((state / 0x80000000) * n);
	};
	const path = () => Array.from({ length: 1 + random(3) }, () => `f${random(5)}`);
	const stacks = Array.from({ length: 30_000 }, (_, i) => (i < 6000 ? ['wide', 'f1'] : path()));
	const frames = stacks.map((names) => ({
		stack: names.map((name) => ({ name, file: `${name}.R`, line: 1 })),
	}));
	const page = await open(makeData(frames, { sources: [{ period: 1e6 }] }), { hash: '#layout=time' });
	const { pixels, colours, boxes, width } = await page.evaluate(() => {
		const { tree } = app;
		const { width } = canvas;
		const { row } = timeline.shown.lanes[0];
		const read = canvas.getContext('2d').getImageData(0, row * ROW, width, 5 * ROW);
		const all = new Uint32Array(read.data.buffer);
		const nodes = [...tree.group.keys()];
		return {
			width,
			pixels: [1, 2, 3, 4].map((d) => Array.from(all.subarray((d * ROW + 1) * width, (d * ROW + 2) * width))),
			boxes: picture.boxes.n,
			colours: Object.fromEntries([
				...nodes.map((node) => [
					tree.groups.names[tree.group[node]],
					packed(boxColour(picture.style, tree, node)),
				]),
				['', packed('rgb(255,255,255)')],
			]),
		};
	});
	assert.ok(boxes < 600, `${boxes} boxes`);
	assert.equal(new Set(['', 'wide', 'f0', 'f1', 'f2', 'f3', 'f4'].map((name) => colours[name])).size, 7);
	const shown = Array.from(
		{ length: width },
		(_, x) => stacks[Math.floor(((x + 0.5) * stacks.length) / width)],
	);
	// The last row has only the lines of the axis, which are above the others as well.
	const lines = pixels.pop().map((pixel) => pixel !== colours['']);
	assert.ok(lines.filter(Boolean).length < 15);
	const wrong = pixels.flatMap((row, d) => {
		const boxOf = (x) => shown[x]?.slice(0, d + 1).join();
		// Wide boxes end a pixel earlier.
		const isLast = (x) => boxOf(x - 1) === boxOf(x) && boxOf(x + 1) !== boxOf(x);
		const isRight = (name, x) => row[x] === colours[name] || lines[x] || isLast(x);
		return shown.flatMap((path, x) => (isRight(path[d] ?? '', x) ? [] : [[d, x, path]]));
	});
	assert.deepEqual(wrong, []);
	// A double click on a pixel zooms around it.
	const area = await (await page.$('#stage')).boundingBox();
	const y = await page.evaluate(() => (timeline.shown.lanes[0].row + 1.5) * ROW);
	await page.mouse.click(area.x + 700, area.y + y, { count: 2 });
	const [[from, to]] = await stateOf(page, 'view');
	const middle = ((700.5 / area.width) * 30_000 - from / 1e6) / ((to - from) / 1e6);
	assert.ok(Math.abs(middle - 0.5) < 0.05, `${middle}`);
	await finish(page);
});

test('the wheel scrolls up before it zooms out of the time layout', async () => {
	const deep = Array.from({ length: 40 }, (_, i) => `f${i}`);
	const page = await open(makeData(Array(9).fill({ stack: deep })), { hash: '#layout=time' });
	await page.mouse.move(...(await boxOf(page, 'f0')));
	const top = () => page.$eval('#stage', (stage) => stage.scrollTop);
	await page.mouse.wheel({ deltaY: 300 });
	await page.waitForFunction(() => document.getElementById('stage').scrollTop > 0);
	assert.deepEqual(await stateOf(page, 'view'), [null]);
	await page.mouse.wheel({ deltaY: -400 });
	await page.waitForFunction(() => document.getElementById('stage').scrollTop === 0);
	assert.deepEqual(await stateOf(page, 'view'), [null]);
	await page.mouse.wheel({ deltaY: -400 });
	assert.notDeepEqual(await stateOf(page, 'view'), [null]);
	assert.equal(await top(), 0);
	await finish(page);
});

test('a label selects samples and colours them, in all views', async () => {
	const code = (...names) => names.map((name) => ({ name, file: `${name}.R`, line: 1 }));
	const served = [
		...Array(4).fill({ stack: code('serve', 'read'), set: 0 }),
		...Array(6).fill({ stack: code('serve', 'fit'), set: 1 }),
		{ stack: code('serve', 'read'), set: 2 },
	];
	const labels = [
		{ key: 'route', value: '/a/read', set: [0, 2] },
		{ key: 'route', value: '/b', set: [1] },
		// Most samples of `read` have no user.
		{ key: 'user', value: '__proto__', set: [1, 2] },
	];
	const page = await open(makeData(served, { labels, sources: [{ period: 1e9 }] }));
	assert.deepEqual(await page.$$eval('#label option', (all) => all.map((one) => one.textContent)), [
		'all',
		'route = /a/read',
		'route = /b',
		'user = __proto__',
	]);
	await page.select('#label', '0');
	assert.deepEqual(
		(await rows(page)).map(({ name, selfAmount }) => [name, selfAmount]),
		[
			['read', 5],
			['serve', 0],
		],
	);
	await hash(page, 'label=0');
	// The strip and the time layout show the same samples.
	await page.select('#layout', 'time');
	const shown = () =>
		page.evaluate(() =>
			Array.from({ length: picture.boxes.n }, (_, i) => {
				const { tree } = app;
				const { width } = canvas;
				const samples = Math.round((11 * picture.boxes.w[i]) / width);
				return `${tree.groups.names[tree.group[picture.boxes.node[i]]]} ${samples}`;
			}).sort(),
		);
	assert.deepEqual(await shown(), ['read 1', 'read 4', 'serve 1', 'serve 4']);
	const strip = await (await page.$('#strip')).boundingBox();
	const texts = [];
	for (const sample of [0, 5]) {
		await page.mouse.move(strip.x + (strip.width * (sample + 0.5)) / 11, strip.y + 20);
		texts.push(await textOf(page, '#tooltip div'));
	}
	assert.deepEqual(texts, ['read', 'another label']);
	// With a part of the time: the last two samples.
	await page.evaluate(() => setBrush([9, 11]));
	assert.deepEqual(
		(await rows(page)).map(({ name, selfAmount }) => [name, selfAmount]),
		[
			['read', 1],
			['serve', 0],
		],
	);
	await page.evaluate(() => setBrush(null));
	await page.select('#label', '-1');
	await page.select('#layout', 'icicle');
	await page.select('#colour', 'label route');
	assert.deepEqual(await page.$$eval('#legend li', (all) => all.map((one) => one.textContent)), [
		'/b',
		'/a/read',
	]);
	const colours = await page.evaluate(() =>
		Object.fromEntries(app.tree.groups.names.map((name, row) => [name, app.colours.css[row]])),
	);
	assert.notEqual(colours.read, colours.fit);
	await page.select('#colour', 'label user');
	assert.deepEqual(await page.$$eval('#legend li', (all) => all.map((one) => one.textContent)), [
		'__proto__',
		'no label user',
	]);
	await page.evaluate(axe);
	const { violations } = await page.evaluate(() => axe.run());
	assert.deepEqual(violations, []);
	await page.reload();
	await page.waitForSelector('body.ready');
	assert.equal(await page.$eval('#colour', (select) => select.value), 'label user');
	await finish(page);
});

test('a link shows the samples of one trace', async () => {
	const served = [
		{ stack: ['serve', 'read'], set: 1 },
		{ stack: ['serve', 'fit'], set: 0 },
		{ stack: ['serve', 'read'], set: 0 },
	];
	const labels = [{ key: 'trace_id', value: '4bf9', set: [1] }];
	const shown = async (hash) => {
		const page = await open(makeData(served, { labels }), { hash });
		const amounts = (await rows(page)).map(({ name, selfAmount }) => [name, selfAmount]);
		const chosen = await page.$eval('#label', (select) => select.value);
		await finish(page);
		return [amounts, chosen];
	};
	const one = [
		['read', 1e7],
		['serve', 0],
	];
	assert.deepEqual(await shown('#label=trace_id=4bf9'), [one, '0']);
	// Another trace has no samples here.
	assert.deepEqual(await shown('#label=trace_id=4bf8'), [[], '']);
});

test('without labels there is no menu of labels', async () => {
	const page = await open(small);
	assert.equal(await page.$eval('#label', (select) => select.parentElement.hidden), true);
	await finish(page);
});

test('the time layout has a lane for each run, gaps, and garbage collections', async () => {
	const data = structuredClone(runs);
	data.order[0].times = { start: 100, step: 1e7, sample: [0, 4], at: [0, 1e9] };
	const page = await open(data, { hash: '#layout=time' });
	const shown = await page.evaluate(() => ({
		names: timeline.shown.lanes.map(laneName),
		ends: timeline.shown.lanes.map(({ end }) => end),
		gaps: timeline.gaps.length,
		gc: timeline.gc.length,
	}));
	assert.deepEqual(shown.names, ['run 1', 'run 2']);
	assert.deepEqual(shown.ends, [1.04e9, 4e7]);
	assert.ok(shown.gaps > 0 && shown.gc > 0);
	const { x, y, width } = await (await page.$('#stage')).boundingBox();
	await page.mouse.move(x + width / 2, y + 50);
	assert.equal(await textOf(page, '#tooltip div'), 'No samples for 960 ms');
	await finish(page);
});

test('processes that worked together have lanes on one clock, in the strip too', async () => {
	const page = await open(processes, { height: 1400 });
	assert.equal(await page.$eval('#layout', ({ value }) => value), 'time');
	assert.match(await textOf(page, '#facts'), /3 processes/);
	assert.equal(await textOf(page, '#parallel-sentence'), '2 workers were busy 75% of 4 s.');
	assert.equal(await textOf(page, '#parallel-rows tbody'), 'busy: computed in tasks75.0%6s');
	assert.equal(await textOf(page, '#parallel-notes'), 'On average, 1.5 of at most 2 were busy.');
	assert.match(await textOf(page, '#range'), /^4 samples, 4 s, 3 processes/);
	const shown = () =>
		page.evaluate(() => ({
			names: timeline.shown.lanes.map(laneName),
			sums: timeline.shown.lanes.map(({ sum }) => sum / 1e9),
			offsets: timeline.shown.lanes.map(({ offset }) => offset / 1e9),
			gaps: timeline.gaps.length,
		}));
	const names = ['master, pid 1', 'worker 1 of 2, pid 2', 'worker 2 of 2, pid 3'];
	// Gaps are after the master, around the first worker, and before the second one.
	assert.deepEqual(await shown(), { names, sums: [1, 2, 1], offsets: [0, 1, 3], gaps: 4 });
	const { x, y, width } = await (await page.$('#strip')).boundingBox();
	await page.mouse.move(x + width / 2, y + 30);
	assert.deepEqual(await page.$$eval('#tooltip div', (lines) => lines.map((line) => line.textContent)), [
		'paste',
		'at 2 s',
		names[1],
	]);
	await page.mouse.move(x + width / 2, y + 65);
	assert.equal(await textOf(page, '#tooltip div'), 'no samples');
	// The names are above the samples, which begin on the left.
	const [above, below] = await page.evaluate(() => {
		const canvas = byId('strip-canvas');
		const context = canvas.getContext('2d');
		const column = [...context.getImageData(1, 0, 1, (BAND_NAME + 8) * devicePixelRatio).data];
		return [0, column.length / 4 - 1].map((row) => column.slice(4 * row, 4 * row + 3).join());
	});
	assert.notEqual(below, above);
	// A part of the clock has the samples of all processes in it.
	await page.mouse.move(x + width * 0.7, y + 5);
	await page.mouse.down();
	await page.mouse.move(x + width, y + 5);
	await page.mouse.up();
	assert.match(await textOf(page, '#range'), /^4 samples, 2[.]80 s to 4 s of 4 s, 3 processes/);
	assert.equal(await page.evaluate(() => app.wholes[0]), 1e9);
	await page.keyboard.press('Escape');
	assert.equal(await page.evaluate(() => app.wholes[0]), 4e9);
	// A single process has an axis of its own.
	await page.select('#source', '1');
	assert.match(await textOf(page, '#range'), /^2 samples, 2 s[.]/);
	await page.select('#layout', 'icicle');
	assert.match(await page.evaluate(() => formatHash(app.state, app.defaults)), /layout=icicle/);
	await finish(page);
});

test('a long name is cut, and does not cover its file', async () => {
	const page = await open(
		makeData(
			[{ stack: [{ name: 'a_long_name_of_a_function_'.repeat(4), file: 'work.R', line: 1 }] }],
			profile,
		),
	);
	const [name, file, cell] = await page.evaluate(() =>
		['#figures tbody th button', '#figures tbody th small', '#figures tbody th'].map((selector) => {
			const { left, right } = document.querySelector(selector).getBoundingClientRect();
			return { left, right };
		}),
	);
	assert.ok(name.right <= file.left, `${name.right} ${file.left}`);
	assert.ok(name.left >= cell.left && name.right <= cell.right);
	const isCut = await page.$eval('#figures tbody th button', (made) => {
		const text = made.querySelector('bdi').getBoundingClientRect();
		return getComputedStyle(made).overflowX === 'hidden' && text.right > made.getBoundingClientRect().right;
	});
	assert.ok(isCut);
	await finish(page);
});

test('without an order there is no time layout', async () => {
	const page = await open(makeData(samples, { ...profile, timeline: false }), { hash: '#layout=time' });
	assert.deepEqual(await page.$$eval('#layout option', (all) => all.map(({ value }) => value)), [
		'icicle',
		'flame',
	]);
	assert.equal(await textOf(page, '#picture-title'), 'Flame graph');
	assert.equal(await page.$eval('#layout', ({ value }) => value), 'icicle');
	assert.ok(await page.$eval('#side', ({ clientHeight }) => clientHeight > 200));
	await finish(page);
});

test('without lines, the code says how to get them', async () => {
	const page = await open(makeData([{ stack: ['f', 'g'] }]), { hash: '#tab=code' });
	assert.match(await textOf(page, '#panel-code'), /^No lines were recorded\..*keep\.source[^.]*\.?$/);
	await finish(page);
});

test('the strip has a time axis, and describes the sample at the pointer', async () => {
	const page = await open(small);
	const { x, y, width } = await (await page.$('#strip')).boundingBox();
	await page.mouse.move(x + 0.3 * width, y + 20);
	const lines = await page.$$eval('#tooltip div', (all) => all.map((line) => line.textContent));
	assert.deepEqual(lines, ['sub', 'at 20 ms']);
	await finish(page);
});

test('a heap snapshot is coloured by kind, and speaks of holders and memory', async () => {
	const page = await open(heap, { hash: '' });
	assert.equal(await textOf(page, '#facts'), '4 paths · 12 holders');
	assert.match(await textOf(page, '#detail'), /^All memory · total 100\.0% \(9\.77 kB\)$/);
	const legend = await page.$$eval('#legend li', (all) => all.map((one) => one.textContent));
	assert.deepEqual(legend.sort(), ['binding', 'element', 'environment', 'root', 'type']);
	await page.mouse.move(...(await boxOf(page, '$fits <list>')));
	const tooltip = await page.$$eval('#tooltip div', (all) => all.map((line) => line.textContent));
	assert.deepEqual(tooltip, ['globalenv > $fits <list>', 'binding', 'total 60.0% (5.86 kB)']);
	// The largest first; only types have a value of their own.
	const [first, second] = await rows(page);
	assert.deepEqual(first, { name: 'globalenv', total: 8000, totalAmount: 8000 });
	assert.equal(second.total, 6000);
	assert.match(await textOf(page, '#figures caption'), /^Holders: 12$/);
	// What is about functions, lines and time is hidden, as are menus with one option.
	for (const id of ['time', 'tab-code', 'go-code', 'hide', 'by', 'colour', 'source'])
		assert.ok(!(await page.$eval(`#${id}`, (found) => found.checkVisibility())), id);
	await page.keyboard.press('s');
	assert.deepEqual(await stateOf(page, 'tab'), ['table']);
	await clickBox(page, '$fits <list>');
	await page.click('#go-calls');
	assert.match(await textOf(page, '#panel-calls'), /Held by.*globalenv.*Holds.*\[\[\*\]\] <lm>/);
	const main = await visibleText(page, 'main');
	assert.doesNotMatch(main, /\b(function|calle[er]|called|self|sample|code|time|run)s?\b/i);
	await page.evaluate(() => showHelp());
	const help = await visibleText(page, '#help');
	assert.doesNotMatch(help, /function|callee|self|sample|native|\bruns?\b/i);
	assert.match(help, /types of objects/);
	await finish(page);
});

test('names that differ in a key are one box, and each is shown on demand', async () => {
	const page = await open(cache, { hash: '' });
	const names = async () => (await rows(page)).map(({ name }) => name).filter((name) => /key/.test(name));
	assert.deepEqual(await names(), ['$key* (6)', '$key1']);
	assert.equal((await row(page, '$key* (6)')).total, 2100);
	assert.equal(await page.$eval('#by', (select) => select.parentElement.textContent.split(' ')[0]), 'Names');
	const tooltipOf = async (name) => {
		await page.mouse.move(...(await boxOf(page, name)));
		return page.$eval('#tooltip div', (line) => line.textContent);
	};
	// The last name and what is inside of it remain, and the middle is left out.
	assert.equal(await tooltipOf('$value'), 'globalenv > $cache > $key* (6) > $value');
	assert.equal(
		await tooltipOf('[[*]] <a class with a long name, number 4>'),
		'globalenv > $cache > $key* (6) > $value > … > [[*]] <a class with a long name, number 4>',
	);
	await clickBox(page, '$key* (6)');
	await page.select('#by', 'name');
	assert.deepEqual(await names(), ['$key5', '$key4', '$key3', '$key2', '$key1', '$key0']);
	assert.equal((await row(page, '$key1')).total, 250);
	assert.equal(await tooltipOf('$key5'), 'globalenv > $cache > $key5');
	await hash(page, 'by=name');
	await finish(page);
});

test('two heap snapshots show what has grown first', async () => {
	const page = await open(growth, { hash: '' });
	const [first, second, third] = await rows(page);
	assert.deepEqual(first, { name: 'globalenv', total: 8000, totalBase: 5000, totalChange: 3000 });
	assert.deepEqual([second.totalChange, third.totalChange], [3000, 3000]);
	assert.equal((await row(page, 'namespace:own')).totalChange, -100);
	assert.match(await textOf(page, '#facts'), /2 snapshots$/);
	assert.equal(
		await page.$eval('#source', (select) => select.parentElement.textContent.split(' ')[0]),
		'Snapshot',
	);
	const legend = await page.$$eval('#legend li', (all) => all.map((one) => one.textContent));
	assert.deepEqual(legend, ['less than base', 'same', 'more than base']);
	await page.mouse.move(...(await boxOf(page, '$fits <list>')));
	const tooltip = await page.$$eval('#tooltip div', (all) => all.map((line) => line.textContent));
	assert.match(tooltip.at(-1), /^total 60\.0% \(5\.86 kB\), base 42\.3% \(2\.93 kB\), \+100%$/);
	await finish(page);
});
