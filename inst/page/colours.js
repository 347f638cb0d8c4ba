// Colours of frames: by package, by file, by kind of frame, by label, and by change from a base. Colours are
// computed in OKLCH, in which colours of equal lightness look equally light, so that text is legible on all
// of them.
'use strict';

/** The colour as [red, green, blue], 0 to 255. */
function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos((hue * Math.PI) / 180);
	const b = chroma * Math.sin((hue * Math.PI) / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const channel = (linear) => {
		const x = min(max(linear, 0), 1);
		return round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
	};
	return [
		channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
		channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
		channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
	];
}

const SCHEMES = {
	light: { lightness: 0.85, spread: 0.05, chroma: 0.09, grey: 0.9, text: [24, 26, 32], gc: -2 },
	dark: { lightness: 0.46, spread: 0.05, chroma: 0.1, grey: 0.37, text: [244, 245, 248], gc: 3 },
};

/** The hues of packages that are on most pages. */
const PACKAGE_HUES = new Map([
	['base', 255],
	['stats', 155],
	['utils', 310],
]);

/** The hue of a package, the same on all pages. It depends on the name, and is not near the hue of base. */
function hueOfPackage(name) {
	return PACKAGE_HUES.get(name) ?? (285 + (hash(name) % 300)) % 360;
}

/** Hues of other categories. The first hues differ most from each other. */
const HUES = [255, 55, 155, 310, 95, 200, 20, 280, 130, 345, 75, 225, 180];

/** The FNV-1a hash of a text. */
function hash(text) {
	let h = 2166136261;
	const n = min(text.length, 200);
	for (let i = 0; i < n; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return h >>> 0;
}

function css([r, g, b]) {
	return `rgb(${r},${g},${b})`;
}

const PACKED = new Map();

/** A colour of css() as a pixel of an image. */
function packed(text) {
	if (!PACKED.has(text)) {
		const [r, g, b] = text.match(/\d+/g);
		PACKED.set(text, ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
	}
	return PACKED.get(text);
}

/** The colour of a category; `shade` from 0 to 1 varies its lightness. */
function categoryColour(scheme, hue, shade = 0.5) {
	const { lightness, spread, chroma, grey } = SCHEMES[scheme];
	const by = (shade - 0.5) * spread;
	return hue === null ? oklch(grey + by, 0.008, 270) : oklch(lightness + by, chroma, hue);
}

/** Red for more than the base, blue for less, grey for the same; a factor of 4 is the extreme. */
function changeColour(scheme, value, base) {
	const { lightness, chroma, grey } = SCHEMES[scheme];
	let log = 0;
	if (value > 0 && base > 0) log = Math.log2(value / base);
	else if (value !== base) log = value > base ? 2 : -2;
	const strength = min(abs(log) / 2, 1);
	const [strong, vivid] = scheme === 'light' ? [lightness - 0.1, 1.6] : [lightness, 1.2];
	return oklch(grey + (strong - grey) * strength, vivid * chroma * strength, log > 0 ? 25 : 255);
}

const KINDS = new Map([
	['r', 'R'],
	['gc', 'garbage collection'],
]);

/**
 * The category of each group, as text: its package, its file, its kind of frame or its main label; '' if unknown.
 * Code outside of packages, such as a script, is categorised by its file also if `by` is 'package'.
 */
function categories(model, groups, by) {
	const { strings } = model;
	const labels = by.startsWith('label') && mainLabels(model, groups, by);
	return Array.from({ length: groups.n }, (_, row) => {
		if (groups.names[row] === GC) return GC;
		if (labels) return labels[row];
		if (by === 'file') return strings[groups.file[row]];
		if (by === 'kind') return strings[groups.kind[row]];
		// Functions of a user may evaluate code of packages, such as `<stats::lm>`.
		return strings[groups.package[row]] || strings[groups.file[row]].replace(/^<[\w.]+::.*/, '');
	});
}

/** For each group, the value of a label that most of its total has; '' if most of it has none. */
function mainLabels(model, groups, key) {
	const most = new Float64Array(groups.n);
	const out = Array(groups.n).fill('');
	const labels = model.labels.filter((label) => `label ${label.key}` === key);
	const none = { value: '', sets: { has: (set) => !labels.some(({ sets }) => sets.has(set)) } };
	for (const label of [none, ...labels]) {
		const self = selfByNode(model, model.types[model.type], (_, set) => label.sets.has(set), null);
		const [total] = figuresByGroup(model, groups, null, [self], []).total;
		for (let row = 0; row < groups.n; row++)
			if (total[row] > most[row]) [most[row], out[row]] = [total[row], label.value];
	}
	return out;
}

/**
 * The hues of categories: the heaviest categories get the first hues, which differ most. Garbage
 * collection and unknown categories are grey. `fixed`: categories that have the same hues on all pages, as packages
 * have, if `isPackage`.
 */
function huesOf(category, weight, fixed, isPackage) {
	const sums = new Map();
	for (let row = 0; row < category.length; row++) {
		sums.set(category[row], (sums.get(category[row]) ?? 0) + weight[row]);
	}
	sums.delete('');
	sums.delete(GC);
	const place = (key) => fixed.indexOf(key);
	const ordered = [...sums].sort(
		(a, b) => place(a[0]) - place(b[0]) || b[1] - a[1] || (a[0] < b[0] ? -1 : 1),
	);
	const hues = new Map();
	for (let i = 0; i < ordered.length; i++) {
		const key = ordered[i][0];
		const at = place(key);
		hues.set(key, isPackage ? hueOfPackage(key) : (HUES[at < 0 ? i : at] ?? hash(key) % 360));
	}
	return hues;
}

/** Colours of all groups, for one scheme, and the legend: categories, heaviest first. */
function colourGroups(model, groups, by, weight, scheme) {
	const category = categories(model, groups, by);
	const fixed = (by === 'kind' && model.heap) || (by === `label ${WAITS}` && WAIT_CLASSES) || [];
	const hues = huesOf(category, weight, fixed, by === 'package');
	const { gc } = SCHEMES[scheme];
	const rgb = category.map((key, row) => {
		const shade = (hash(groups.names[row]) % 64) / 63;
		return categoryColour(scheme, hues.get(key) ?? null, key === GC ? gc : shade);
	});
	const named = (key) =>
		by === 'kind' ? (KINDS.get(key) ?? key) : by.startsWith('label') ? key : baseName(key);
	const legend = [...hues].map(([key, hue]) => ({ label: named(key), colour: categoryColour(scheme, hue) }));
	if (category.includes(GC))
		legend.push({ label: KINDS.get('gc'), colour: categoryColour(scheme, null, gc) });
	if (category.includes(''))
		legend.push({
			label: `${by.startsWith('label') ? 'no' : 'unknown'} ${by}`,
			colour: categoryColour(scheme, null),
		});
	return { css: rgb.map(css), rgb, legend };
}
