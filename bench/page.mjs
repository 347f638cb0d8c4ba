// What pages take in Chromium; called by bench/page with the paths of two pages, of a file for speedscope, and of
// profvis's page or "".

import { appendFileSync, existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.NODE_MODULES ?? '.', 'index.js'));
const puppeteer = require('puppeteer-core');
const [small, tiled, speedscope, profvis] = process.argv.slice(2);
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const patience = 300000;

// speedscope draws with WebGL, here without a graphics card.
const WEBGL = ['--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'];

/** Opens an address in a new browser, and runs a function with the page. */
async function visit(address, measure, args = []) {
	const browser = await puppeteer.launch({
		executablePath,
		args: ['--no-sandbox', ...args],
		protocolTimeout: patience,
	});
	const page = await browser.newPage();
	await page.setViewport({ width: 1400, height: 900 });
	await page.goto(address, { timeout: patience });
	try {
		return await measure(page);
	} finally {
		await browser.close();
	}
}

const load = () => (existsSync('/proc/loadavg') ? readFileSync('/proc/loadavg', 'utf8').split(' ')[0] : '');
const loadAtStart = load();
let subject = '';

function about(title) {
	console.log(title);
	subject = title;
}

/** Prints a figure and adds it to the table of bench/all, as record() in measure.R does. */
function show(what, value, unit = 'ms', target = '', n = 1, interval = '') {
	const number = unit === 'ms' ? value.toFixed(value < 20 ? 1 : 0) : value.toLocaleString('en');
	console.log(`  ${what.padEnd(42)} ${number.padStart(8)} ${unit.padEnd(3)} ${target}`);
	const table = process.env.PROFILE_BENCH_TABLE;
	const fields = ['page', `${subject}: ${what}`, number, unit, n, interval, '', loadAtStart, load()];
	if (table) appendFileSync(table, `${fields.join('\t')}\n`);
}

/** The median of some times. */
function showMedian(what, times, target) {
	const sorted = [...times].sort((a, b) => a - b);
	const range = `range: ${sorted[0].toFixed(1)} to ${sorted.at(-1).toFixed(1)}`;
	show(`${what}, median`, sorted[sorted.length >> 1], 'ms', target, sorted.length, range);
}

const megabytes = (file) => Number((statSync(file).size / 1e6).toFixed(2));
const elements = (page) => page.evaluate(() => document.querySelectorAll('*').length);
const heap = async (page) => Math.round((await page.metrics()).JSHeapUsedSize / 1e6);

async function ourPage(file, targets) {
	about(`${targets ? 'tiled' : 'page'} of this package`);
	await visit(pathToFileURL(file).href, async (page) => {
		await page.waitForSelector('body.ready', { timeout: patience });
		const found = await page.evaluate(() => {
			const time = (action) => {
				const start = performance.now();
				action();
				return performance.now() - start;
			};
			// The whole, and the widest nodes, as a user zooms.
			const { tree } = app;
			const context = byId('canvas').getContext('2d');
			const elements = document.querySelectorAll('*').length;
			const nodes = [...tree.width.keys()]
				.filter((node) => tree.width[node] > 0.02 * tree.width[0])
				.slice(0, 100);
			const redraws = nodes.map((node) => {
				picture.layers[0].focus = node;
				// Reading a pixel waits until everything is drawn.
				return time(() => {
					drawPicture();
					context.getImageData(0, 0, 1, 1);
				});
			});
			picture.layers[0].focus = 0;
			// The time layout, from all samples to a few, each time in the rows that take longest.
			app.state.layout = 'time';
			update('layout');
			const { end } = timeline.shown;
			const stage = byId('stage');
			const overTime = [1, 0.5, 0.1, 0.01, 0.001].flatMap((share) =>
				[0.1, 0.3, 0.5, 0.7].map((at) => {
					app.state.view = share < 1 ? [at * end * (1 - share), at * end * (1 - share) + share * end] : null;
					const times = [];
					for (let top = 0; top < stage.scrollHeight; top += stage.clientHeight / 2) {
						stage.scrollTop = top;
						const once = () => {
							drawPicture();
							context.getImageData(0, 0, 1, 1);
						};
						times.push(Math.min(time(once), time(once), time(once)));
					}
					return Math.max(...times);
				}),
			);
			app.state.view = null;
			app.state.layout = 'icicle';
			update('layout');
			const part = Math.floor(strip.samples / 10);
			const brushes = [0, 1, 2, 3, 4].map((start) =>
				time(() => setBrush([start * part, (start + 5) * part])),
			);
			setBrush(null);
			app.state.q = 'apply';
			const search = time(() => update('search'));
			app.state.q = '';
			app.state.by = 'line';
			const line = time(() => update('tree'));
			return {
				elements,
				samples: strip.samples,
				nodes: app.model.n - 1,
				first: performance.getEntriesByName('picture')[0].startTime,
				redraws,
				overTime,
				brushes,
				search,
				line,
			};
		});
		show('samples', found.samples, '');
		show('nodes', found.nodes, '');
		show('file', megabytes(file), 'MB', targets ? 'at most 2.5' : '');
		show('first picture', found.first, 'ms', targets ? 'at most 1500' : 'at most 1000');
		showMedian('redraw', found.redraws, targets ? 'at most 8' : '');
		showMedian('redraw over time', found.overTime, targets ? 'at most 8' : '');
		showMedian('brush of half the samples', found.brushes, targets ? 'at most 200' : '');
		show('search', found.search);
		show('by line', found.line);
		show('elements', found.elements, '', 'at most 3000');
		show('heap', await heap(page), 'MB');
	});
}

async function speedscopePage(file) {
	about('speedscope, samples in order');
	const index = join(dirname(require.resolve('speedscope/package.json')), 'dist/release/index.html');
	// With this hash speedscope waits for a script to pass the profile.
	await visit(
		`${pathToFileURL(index).href}#localProfilePath=none`,
		async (page) => {
			await page.waitForFunction(() => window.speedscope, { timeout: patience });
			const content = readFileSync(file).toString('base64');
			const time = await page.evaluate(async (text) => {
				const start = performance.now();
				await window.speedscope.loadFileFromBase64('profile.speedscope.json', text);
				while (document.querySelectorAll('canvas').length < 2) await new Promise(requestAnimationFrame);
				// Until two frames in a row are drawn quickly.
				for (let last = performance.now(), quick = 0; quick < 2; ) {
					await new Promise(requestAnimationFrame);
					const now = performance.now();
					quick = now - last < 100 ? quick + 1 : 0;
					last = now;
				}
				return performance.now() - start;
			}, content);
			show('file', megabytes(file), 'MB');
			show('first picture', time);
			show('elements', await elements(page), '');
			show('heap', await heap(page), 'MB');
		},
		WEBGL,
	);
}

async function profvisPage(file) {
	about('profvis');
	await visit('about:blank', async (page) => {
		const start = performance.now();
		await page.goto(pathToFileURL(file).href, { waitUntil: 'load', timeout: patience });
		await page.waitForSelector('.profvis-flamegraph svg rect', { timeout: patience });
		await page.evaluate(() => new Promise(requestAnimationFrame));
		show('file, without its libraries', megabytes(file), 'MB');
		show('first picture', performance.now() - start);
		show('elements', await elements(page), '');
		show('heap', await heap(page), 'MB');
	});
}

async function tried(action) {
	try {
		await action();
	} catch (error) {
		console.log(`  not measured: ${error.message}`);
	}
}

await ourPage(small, false);
await ourPage(tiled, true);
await tried(() => speedscopePage(speedscope));
if (profvis) await tried(() => profvisPage(profvis));
