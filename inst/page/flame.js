// Draws call trees on a canvas: which boxes are visible, their colours and their texts.
//
// Only what is visible is collected: boxes of half a pixel or more, in the rows on the screen. The
// boxes are kept to find the one under the pointer.
'use strict';

const ROW = 20;
const LEAST = 0.5;

function newBoxes() {
	const size = 4096;
	return {
		n: 0,
		x: new Float32Array(size),
		w: new Float32Array(size),
		row: new Int32Array(size),
		node: new Int32Array(size),
		layer: new Uint8Array(size),
	};
}

function grown(column) {
	const larger = new column.constructor(2 * column.length);
	larger.set(column);
	return larger;
}

/** Node -1 stands for callees that are too narrow to be shown. */
function addBox(boxes, x, w, row, node, layer) {
	if (boxes.n === boxes.x.length) {
		for (const key of ['x', 'w', 'row', 'node', 'layer']) boxes[key] = grown(boxes[key]);
	}
	const i = boxes.n++;
	boxes.x[i] = x;
	boxes.w[i] = w;
	boxes.row[i] = row;
	boxes.node[i] = node;
	boxes.layer[i] = layer;
}

/**
 * A layer is a tree with the node that fills the width (`focus`), the row of its root (`origin`) and
 * the direction of its callees (`down`, 1 or -1); `shared` if its root is that of another layer. Adds its visible boxes in rows `first` to `last`.
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

/** The box at a point, -1 if there is none. */
function boxAt(boxes, x, row) {
	for (let i = boxes.n - 1; i >= 0; i--) {
		if (boxes.row[i] === row && x >= boxes.x[i] && x < boxes.x[i] + Math.max(boxes.w[i], 1)) return i;
	}
	return -1;
}

/** Cuts texts to a width in pixels. Widths of characters are measured once, not those of texts. */
function textFitter(context) {
	const widths = new Map();
	const widthOf = (char) => {
		let width = widths.get(char);
		if (width === undefined) {
			width = context.measureText(char).width;
			widths.set(char, width);
		}
		return width;
	};
	return (text, room) => {
		const ellipsis = widthOf('…');
		let used = 0;
		let fits = 0;
		for (const char of text) {
			used += widthOf(char);
			if (used > room) return fits > 1 ? `${text.slice(0, fits)}…` : '';
			if (used + ellipsis <= room) fits += char.length;
		}
		return text;
	};
}

/** Diagonal lines, which mark native frames. */
function hatching(context, colour) {
	const tile = document.createElement('canvas');
	tile.width = 6;
	tile.height = 6;
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
 * Draws boxes. `style` has the colours of the theme, and functions that give what differs between
 * boxes: fill(layer, node), label(layer, node), isNative(layer, node), isFaded, isMatched, isChosen,
 * and `cursor`, {layer, node}. `top` is the first pixel that is shown.
 */
function drawBoxes(context, boxes, style, top, width, height) {
	context.fillStyle = style.background;
	context.fillRect(0, 0, width, height);
	context.textBaseline = 'middle';
	const texts = [];
	for (let i = 0; i < boxes.n; i++) {
		const node = boxes.node[i];
		const layer = boxes.layer[i];
		const y = boxes.row[i] * ROW - top;
		const w = boxes.w[i];
		const inner = Math.max(w > 3 ? w - 1 : w * 0.9, LEAST);
		if (node < 0) {
			context.fillStyle = style.rest;
			context.fillRect(boxes.x[i], y, inner, ROW - 1);
			continue;
		}
		const faded = style.isFaded(layer, node);
		context.fillStyle = faded ? style.faded : style.fill(layer, node);
		context.fillRect(boxes.x[i], y, inner, ROW - 1);
		if (w > 4 && style.isNative(layer, node)) {
			context.fillStyle = style.hatch;
			context.fillRect(boxes.x[i], y, inner, ROW - 1);
		}
		if (style.isChosen(layer, node) && w > 2) {
			context.strokeStyle = style.accent;
			context.lineWidth = 1.5;
			context.strokeRect(boxes.x[i] + 0.75, y + 0.75, inner - 1.5, ROW - 2.5);
		}
		if (w >= 26) texts.push(i);
	}
	drawTexts(context, boxes, style, top, width, texts);
	drawCursor(context, boxes, style, top);
}

/** Upright and italic texts one after the other, since changing the font is slow. */
function drawTexts(context, boxes, style, top, width, texts) {
	for (const italic of [false, true]) {
		context.font = `${italic ? 'italic ' : ''}12px system-ui, sans-serif`;
		const fit = style.fit[italic ? 1 : 0];
		for (const i of texts) {
			const layer = boxes.layer[i];
			const node = boxes.node[i];
			if (style.isNative(layer, node) !== italic) continue;
			const x = Math.max(boxes.x[i], 0);
			const text = fit(style.label(layer, node), Math.min(boxes.w[i], width - x) - 9);
			if (!text) continue;
			context.fillStyle = style.isFaded(layer, node) ? style.muted : style.text(layer, node);
			context.fillText(text, x + 4, boxes.row[i] * ROW - top + ROW / 2);
		}
	}
}

function drawCursor(context, boxes, style, top) {
	if (!style.cursor) return;
	for (let i = 0; i < boxes.n; i++) {
		if (boxes.node[i] !== style.cursor.node || boxes.layer[i] !== style.cursor.layer) continue;
		context.strokeStyle = style.foreground;
		context.lineWidth = 2;
		const y = boxes.row[i] * ROW - top;
		context.strokeRect(boxes.x[i] + 1, y + 1, Math.max(boxes.w[i] - 3, 1), ROW - 3);
		return;
	}
}
