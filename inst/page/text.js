// Text for display: names without control characters, and numbers with units.
'use strict';

/** Control characters, characters without a width, and characters that change the direction of text. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu;
const ESCAPES = { '\n': '\\n', '\t': '\\t', '\r': '\\r' };

/** Shortens a text, and shows invisible characters as escape sequences. */
function visible(text, length = 300) {
	const cut = text.length > length ? `${text.slice(0, length - 1)}…` : text;
	return cut.replace(INVISIBLE, (char) => {
		const code = char.codePointAt(0).toString(16).padStart(4, '0');
		return ESCAPES[char] ?? (code.length > 4 ? `\\u{${code}}` : `\\u${code}`);
	});
}

/** The file name of a path. */
function baseName(path) {
	return path.slice(max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1);
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

/** Units of the same kind, as multiples of the first unit. */
const TIME = [
	['ns', 1],
	['µs', 1e3],
	['ms', 1e6],
	['s', 1e9],
	['min', 60e9],
	['h', 3600e9],
];
const BYTES = [
	['B', 1],
	['kB', 1024],
	['MB', 1024 ** 2],
	['GB', 1024 ** 3],
	['TB', 1024 ** 4],
];
const UNITS = new Map([
	['nanoseconds', [TIME, 1]],
	['microseconds', [TIME, 1e3]],
	['milliseconds', [TIME, 1e6]],
	['seconds', [TIME, 1e9]],
	['bytes', [BYTES, 1]],
	['kilobytes', [BYTES, 1024]],
	['megabytes', [BYTES, 1024 ** 2]],
]);

/** A value with its unit; counts are written out, and 0 needs no unit. */
function amountText(value, unit) {
	if (value === 0) return '0';
	const known = UNITS.get(unit);
	if (!known) {
		const text = abs(value) < 1000 ? short.format(value) : whole.format(value);
		return /^(count)?$/.test(unit) ? text : `${text} ${visible(unit)}`;
	}
	const [steps, factor] = known;
	const size = abs(value * factor);
	let step = steps[0];
	for (const candidate of steps) if (size >= candidate[1]) step = candidate;
	const scaled = (value * factor) / step[1];
	// Three significant digits, as pprof shows them.
	const digits = abs(scaled) >= 100 ? 0 : abs(scaled) >= 10 ? 1 : 2;
	const text = Number.isInteger(scaled) ? String(scaled) : scaled.toFixed(digits);
	return `${text.replace('-', '−')} ${step[0]}`;
}

function shareText(value, all) {
	if (all === 0) return '–';
	const percent = (100 * value) / all;
	if (percent !== 0 && abs(percent) < 0.05) return `${percent < 0 ? '−' : ''}<0.1%`;
	return `${percent.toFixed(1).replace('-', '−')}%`;
}

/** The change from `base`, such as +12% or ×3.1. */
function changeText(value, base) {
	if (base === 0) return value === 0 ? '±0' : 'new';
	if (value === 0) return 'gone';
	const ratio = value / base;
	if (ratio >= 10) return `×${whole.format(ratio)}`;
	const percent = round(100 * (ratio - 1));
	return percent === 0 ? '±0%' : `${percent > 0 ? '+' : '−'}${whole.format(abs(percent))}%`;
}

/** One of two texts: for a profile of functions, or for a heap snapshot. */
function word(ofFunctions, ofHeap) {
	return app.model.heap ? ofHeap : ofFunctions;
}

/** What follows the name of an amount that is a lower bound. */
function atLeast(type) {
	return type?.bound ? ', at least' : '';
}

/** A count and its noun: "1 sample", "2,000 samples". */
function plural(n, noun, nouns = `${noun}s`) {
	return `${whole.format(n)} ${n === 1 ? noun : nouns}`;
}
