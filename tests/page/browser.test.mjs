// Tests of what users do with the page, with mouse and keyboard.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { browser, change, finish, open, row, rows, runs, small, textOf } from './browser.mjs';
import { joinPage } from './page.mjs';

const hash = async (page, expected) => {
	await page.waitForFunction((wanted) => location.hash === wanted, {}, expected);
};
/** Waits for a text: the page searches a little after the last key. */
const shows = (page, selector, text) =>
	page.waitForFunction((id, wanted) => document.querySelector(id).textContent === wanted, {}, selector, text);
const pressIn = async (page, selector, ...keys) => {
	await page.focus(selector);
	for (const key of keys) await page.keyboard.press(key);
};

/** Clicks the box of a function in the flame graph. */
async function clickBox(page, name) {
	const at = await page.evaluate((wanted) => {
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
	await page.mouse.click(...at);
}

test('the table has self, total, bytes and garbage collection', async () => {
	const page = await open(small);
	const expected = { name: 'paste', self: 3, selfAmount: 3, total: 4, totalAmount: 4, bytes: 4096, gc: 1 };
	assert.deepEqual(await row(page, 'paste'), expected);
	assert.equal((await row(page, 'main')).total, 7);
	assert.match(await textOf(page, '#left-out'), /without a stack: 1$/);
	assert.match(await textOf(page, '#contents'), /source text of 1 file\. It contains paths/);
	await finish(page);
});

test('a click zooms, Escape goes back, and the address follows', async () => {
	const page = await open(small);
	await clickBox(page, 'load');
	assert.match(await textOf(page, '#detail'), /^load · work\.R · own · total 42\.9% \(3\)/);
	const zoom = await page.evaluate(() => app.state.zoom);
	assert.ok(zoom > 0);
	const width = await page.evaluate(() => picture.boxes.w[picture.boxes.node.indexOf(app.state.zoom)]);
	assert.ok(width > 500);
	await page.waitForFunction(() => location.hash.includes('zoom='));
	await page.keyboard.press('Escape');
	assert.equal(await page.evaluate(() => app.state.zoom), 0);
	await finish(page);
});

test('the flame graph is used with the keyboard', async () => {
	const page = await open(small);
	await pressIn(page, '#stage', 'ArrowDown', 'ArrowDown');
	assert.match(await textOf(page, '#detail'), /^fit/);
	await page.keyboard.press('ArrowRight');
	assert.match(await textOf(page, '#detail'), /^load/);
	await page.keyboard.press('ArrowLeft');
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
	assert.match(await textOf(page, '#range'), /samples 1 to 3 of 8, 0 ns to 30 ms/);
	await pressIn(page, '#strip', 'ArrowRight');
	assert.deepEqual(await page.evaluate(() => app.state.brush), [1, 4]);
	await page.keyboard.down('Shift');
	await page.keyboard.press('ArrowRight');
	await page.keyboard.up('Shift');
	assert.deepEqual(await page.evaluate(() => app.state.brush), [1, 5]);
	await hash(page, '#brush=1-5');
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
	assert.equal(await textOf(page, '#panel-calls h3'), 'FUN');
	await finish(page);
});

test('the source pane has figures of lines', async () => {
	const page = await open(small, { hash: '#tab=source' });
	const line = (number) =>
		page.$$eval(`tr[data-line="${number}"] [data-value]`, (cells) =>
			cells.map((cell) => Number(cell.dataset.value)),
		);
	// Self of a line is the self of stacks whose innermost frame with a line is in it.
	assert.deepEqual(await line(2), [2, 6, 1024]);
	assert.deepEqual(await line(5), [2, 2, 7168]);
	assert.deepEqual(await line(4), []);
	assert.equal(await textOf(page, 'tr[data-line="4"] .code'), 'line 4');
	await finish(page);
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
	await page.select('#by', 'function');
	for (const colour of ['kind', 'file', 'package']) await page.select('#colour', colour);
	await page.select('#layout', 'flame');
	assert.equal(await page.evaluate(() => picture.layers[0].down), -1);
	await page.click('#hide');
	assert.equal(await row(page, 'lapply'), undefined);
	assert.equal((await row(page, 'main')).total, 11);
	await hash(page, '#hide=1&layout=flame');
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
	const page = await open(change);
	// Amounts are times: samples times the interval of their run.
	assert.deepEqual(await row(page, 'main'), {
		name: 'main',
		self: 0,
		selfBase: 0,
		selfChange: 0,
		total: 12e7,
		totalBase: 16e7,
		totalChange: -4e7,
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
