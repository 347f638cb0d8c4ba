// The tooltip at the pointer: the first line is a name. Assistive technology ignores it, since the line below the
// picture says the same.
'use strict';

function showTooltip({ clientX, clientY }, lines) {
	const tip = byId('tooltip');
	tip.replaceChildren(...lines.map((line) => element('div', {}, element('bdi', {}, line))));
	tip.hidden = false;
	const { width, height } = tip.getBoundingClientRect();
	const below = clientY + 18;
	const top = below + height < innerHeight ? below : clientY - height - 8;
	tip.style.left = `${max(4, min(clientX + 14, innerWidth - width - 4))}px`;
	tip.style.top = `${max(4, top)}px`;
}

function hideTooltip() {
	byId('tooltip').hidden = true;
}
