// Draws call trees on a canvas: which boxes are visible, their colours and their texts. Only visible
// boxes are collected: boxes of half a pixel or more, in the rows on the screen. They are kept, to find
// the box under the pointer.
'use strict';

const ROW = 20;
const LEAST = 0.5;
const FONTS = ['12px system-ui, sans-serif', 'italic 12px system-ui, sans-serif'];

/** Node -1 stands for callees that are too narrow to be shown. */
function addBox(boxes, x, w, row, node, layer) {
	const i = boxes.n++;
	boxes.x[i] = x;
	boxes.w[i] = w;
	boxes.row[i] = row;
	boxes.node[i] = node;
	boxes.layer[i] = layer;
}

/**
 * A layer is a tree with the node that fills the width (`focus`), the row of its root (`origin`) and
 * the direction of its callees (`down`, 1 or -1); `shared` if another layer has the
 * same root. Adds its visible boxes in rows `first` to `last`.
 */
function collectBoxes(boxes, layer, number, width, first, last) {
	const { tree, focus, origin, down } = layer;
	const row = (node) => origin + down * tree.depth[node];
	const shown = (at) => at >= first && at <= last;
	for (let node = tree.parent[focus]; node >= 0; node = tree.parent[node]) {
		if (shown(row(node))) addBox(boxes, 0, width, row(node), node, number);
	}
	if (tree.width[focus] === 0) return;
	const scale = width / tree.width[focus];
	const left = tree.x[focus];
	const open = [focus];
	while (open.length > 0) {
		const node = open.pop();
		const at = row(node);
		// The trees of callers and callees have one root, which is drawn once.
		if (shown(at) && (node > 0 || down > 0 || !layer.shared))
			addBox(boxes, (tree.x[node] - left) * scale, tree.width[node] * scale, at, node, number);
		const below = at + down;
		if (down > 0 ? below > last : below < first) continue;
		// Callees are in descending order of width.
		let narrow = -1;
		let rest = 0;
		for (let i = tree.first[node]; i < tree.first[node + 1]; i++) {
			const child = tree.callees[i];
			const w = tree.width[child] * scale;
			if (w === 0) break;
			if (w >= LEAST) open.push(child);
			else {
				if (narrow < 0) narrow = (tree.x[child] - left) * scale;
				rest += w;
			}
		}
		if (rest >= LEAST && shown(below)) addBox(boxes, narrow, rest, below, -1, number);
	}
}

function boxColour(style, tree, node) {
	const group = tree.group[node];
	return style.isFaded(group) ? style.faded : style.fill(tree, node, group);
}

/** The box at a point, -1 if there is none. */
function boxAt(boxes, x, row) {
	for (let i = boxes.n - 1; i >= 0; i--) {
		if (boxes.row[i] === row && x >= boxes.x[i] && x < boxes.x[i] + max(boxes.w[i], 1)) return i;
	}
	return -1;
}

/**
 * Functions that cut texts to a width in pixels: for upright and for italic text. Each character is
 * measured once; texts are not measured.
 */
function textFitters(context) {
	return FONTS.map((font) => {
		const widths = new Map();
		const widthOf = (char) => {
			if (!widths.has(char)) {
				context.font = font;
				widths.set(char, context.measureText(char).width);
			}
			return widths.get(char);
		};
		const ellipsis = widthOf('…');
		return (text, room) => {
			let used = 0;
			let fits = 0;
			for (const char of text) {
				used += widthOf(char);
				if (used > room) return fits > 1 ? `${text.slice(0, fits)}…` : '';
				if (used + ellipsis <= room) fits += char.length;
			}
			return text;
		};
	});
}

/** Diagonal lines, which mark native frames. */
function hatching(context, colour) {
	const tile = element('canvas', { width: 6, height: 6 });
	const draw = tile.getContext('2d');
	draw.strokeStyle = colour;
	draw.globalAlpha = 0.22;
	draw.beginPath();
	for (const at of [-3, 3, 9]) {
		draw.moveTo(at - 3, 6 + 3);
		draw.lineTo(at + 6, 0);
	}
	draw.stroke();
	return context.createPattern(tile, 'repeat');
}

/**
 * Draws boxes in a style of stylePicture(). `top` is the first pixel of the picture that is on the
 * screen.
 */
function drawBoxes(context, boxes, layers, style, top, width, height) {
	context.fillStyle = style.background;
	context.fillRect(0, 0, width, height);
	const texts = [];
	for (let i = 0; i < boxes.n; i++) {
		const node = boxes.node[i];
		const { tree } = layers[boxes.layer[i]];
		const group = tree.group[node];
		const y = boxes.row[i] * ROW - top;
		const w = boxes.w[i];
		const inner = max(w > 3 ? w - 1 : w * 0.9, LEAST);
		const fill = (colour) => {
			context.fillStyle = colour;
			context.fillRect(boxes.x[i], y, inner, ROW - 1);
		};
		if (node < 0) {
			fill(style.rest);
			continue;
		}
		fill(boxColour(style, tree, node));
		if (w > 4 && style.isNative(group)) fill(style.hatch);
		if (w > 2 && style.isChosen(group, node)) {
			context.strokeStyle = style.accent;
			context.lineWidth = 1.5;
			context.strokeRect(boxes.x[i] + 0.75, y + 0.75, inner - 1.5, ROW - 2.5);
		}
		if (w >= 26) texts.push(i);
		if (style.cursor?.node === node && style.cursor.layer === boxes.layer[i]) texts.cursor = i;
	}
	drawTexts(context, boxes, layers, style, top, texts);
	if (texts.cursor === undefined) return;
	context.strokeStyle = style.foreground;
	context.lineWidth = 2;
	const y = boxes.row[texts.cursor] * ROW - top;
	context.strokeRect(boxes.x[texts.cursor] + 1, y + 1, max(boxes.w[texts.cursor] - 3, 1), ROW - 3);
}

/** Upright and italic texts one after the other, since changing the font is slow. */
function drawTexts(context, boxes, layers, style, top, texts) {
	context.textBaseline = 'middle';
	for (const italic of [0, 1]) {
		context.font = FONTS[italic];
		for (const i of texts) {
			const node = boxes.node[i];
			const { tree } = layers[boxes.layer[i]];
			const group = tree.group[node];
			if (Number(style.isNative(group)) !== italic) continue;
			const text = style.fit[italic](style.label(tree, node, group), boxes.w[i] - 9);
			context.fillStyle = style.isFaded(group) ? style.muted : style.text(group);
			if (text) context.fillText(text, boxes.x[i] + 4, boxes.row[i] * ROW - top + ROW / 2);
		}
	}
}
