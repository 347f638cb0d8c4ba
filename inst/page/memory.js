// The memory in use over the samples, as a curve below the time strip: what R's objects took at each sample, garbage
// included.
'use strict';

const MEMORY_HEIGHT = 34;

/** The height of the curve, 0 if there is none. Processes on one clock have no curve. */
function memoryHeight() {
	return !strip.clock && strip.parts.some(({ order }) => order.memory) ? MEMORY_HEIGHT : 0;
}

/** The most memory at the samples `from` to `to` (exclusive) of the strip, and its sample; 0 bytes if it is unknown. */
function mostMemory(from, to) {
	let most = { bytes: 0, at: from };
	for (const { order, start } of strip.parts) {
		const { samples, bytes } = order.memory ?? {};
		if (!bytes) continue;
		const first = max(from - start, 0);
		const end = min(to - start, order.samples);
		for (let part = floor(first / samples); part * samples < end; part++) {
			if (bytes[part] > most.bytes) most = { bytes: bytes[part], at: start + max(part * samples, first) };
		}
	}
	return most;
}

/** The memory in use in a part of the strip as text, empty if it is unknown. */
function memoryText(from, to) {
	const { bytes } = mostMemory(from, to);
	return bytes > 0 ? `${amountText(bytes, 'bytes')} in use` : '';
}

/** Draws the curve, `top` pixels below the upper edge of the strip, and marks its peak. */
function drawMemory(context, width, top) {
	const height = memoryHeight();
	if (height === 0) return;
	const peak = mostMemory(0, strip.samples);
	const bottom = top + height;
	const yOf = (bytes) => bottom - (bytes / peak.bytes) * (height - 4);
	const each = strip.samples / width;
	context.beginPath();
	context.moveTo(0, bottom);
	for (let x = 0; x < width; x++) {
		const { bytes } = mostMemory(floor(x * each), max(ceil((x + 1) * each), 1));
		context.lineTo(x, yOf(bytes));
		context.lineTo(x + 1, yOf(bytes));
	}
	context.lineTo(width, bottom);
	context.fillStyle = themeColour('--bar');
	context.fill();
	const x = ((peak.at + 0.5) / strip.samples) * width;
	context.fillStyle = themeColour('--text');
	context.fillRect(round(x), top, 1, height);
	context.font = '10px system-ui, sans-serif';
	context.textBaseline = 'top';
	const text = `memory: at most ${memoryText(0, strip.samples)}`;
	const isRight = x > width / 2;
	context.textAlign = isRight ? 'right' : 'left';
	context.fillText(text, isRight ? x - 4 : x + 5, top + 3);
	context.textAlign = 'left';
}
