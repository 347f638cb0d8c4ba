// Creating elements. Names of a profile become text nodes only, never markup.
'use strict';

const byId = (id) => document.getElementById(id);

function on(target, type, listener, options) {
	target.addEventListener(type, listener, options);
}

/** An element with properties and children; strings become text. */
function element(tag, properties = {}, ...children) {
	const made = document.createElement(tag);
	for (const [key, value] of Object.entries(properties)) {
		if (key in made && key !== 'role') made[key] = value;
		else made.setAttribute(key, value);
	}
	made.append(...children);
	return made;
}

/** Draws a bar in a cell of a table, `share` of its width. */
function setBar(cell, share) {
	cell.className = 'bar';
	cell.style.setProperty('--share', `${100 * abs(share)}%`);
}

/** A colour that style.css defines. */
function themeColour(variable) {
	return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** Sets the size of a canvas in CSS pixels, and returns its context, scaled to them. */
function sizeCanvas(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	const size = [width, height].map((length) => max(1, round(length * ratio)));
	// Setting the size clears the canvas and takes time.
	if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
	canvas.style.width = `${width}px`;
	canvas.style.height = `${height}px`;
	const context = canvas.getContext('2d', { alpha: false });
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	return context;
}

/** Runs a function before the next frame, at most once for any number of requests. */
function beforeFrame(run) {
	let asked = false;
	return () => {
		if (asked) return;
		asked = true;
		requestAnimationFrame(() => {
			asked = false;
			run();
		});
	};
}
