// What samples wait for: a line below the stacks in the time strip, in the colours of the classes.
'use strict';

const WAITS = 'waits_for';
const WAIT_LINE = 5;

/** The classes. Each has the same hue on all pages. */
const WAIT_CLASSES = [
	'network',
	'file',
	'child',
	'pipe',
	'lock',
	'threads',
	'processor',
	'page fault',
	'sleep',
	'idle',
	'unknown',
];

/** The class of each set of labels in which samples wait. */
function waitsBySet({ labels }) {
	const waits = new Map();
	for (const { key, value, sets } of labels) if (key === WAITS) for (const set of sets) waits.set(set, value);
	return waits;
}

function waitColour(scheme, name) {
	return css(categoryColour(scheme, HUES[WAIT_CLASSES.indexOf(name)] ?? null));
}

/** What is waited for in a piece of a run, for the tooltip. */
function waitTexts(model, order, run) {
	const wait = order.node[run] < 0 ? undefined : waitsBySet(model).get(order.set?.[run]);
	return wait ? [`waits for: ${wait}`] : [];
}
