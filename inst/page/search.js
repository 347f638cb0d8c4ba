// Search by a regular expression. Matching boxes are marked in the picture, the table contains only
// matching rows, and the share of the samples with a match is shown.
'use strict';

/** The expression of a search, null for none; throws if it is invalid. With a capital, case matters. */
function searchExpression(text) {
	if (text === '') return null;
	return new RegExp(text, /\p{Lu}/u.test(text) ? '' : 'i');
}

/** 1 for each group whose name matches. */
function matchGroups(groups, expression) {
	return Uint8Array.from(groups.names, (text) => (expression.test(text) ? 1 : 0));
}

/** Finds matches in the current tree and table. */
function arrangeSearch() {
	const { state, tree, items } = app;
	const input = byId('search');
	app.matches = null;
	app.itemMatches = null;
	app.matchText = '';
	input.removeAttribute('aria-invalid');
	let expression = null;
	try {
		expression = searchExpression(state.q);
	} catch {
		input.setAttribute('aria-invalid', 'true');
		app.matchText = 'invalid expression';
	}
	if (expression) {
		app.matches = matchGroups(tree.groups, expression);
		app.itemMatches = items === tree.groups ? app.matches : new Uint8Array(items.n);
		if (items !== tree.groups) {
			// A line matches by its own name, or by a function in it.
			for (let group = 0; group < tree.groups.n; group++) {
				if (app.matches[group] && app.itemOf[group] >= 0) app.itemMatches[app.itemOf[group]] = 1;
			}
			matchGroups(items, expression).forEach((match, item) => {
				app.itemMatches[item] |= match;
			});
		}
		const matched = matchedSum(tree, app.matches, tree.self);
		app.matchText = `${shareText(matched, app.wholes[0])} match (${amountText(matched, app.amount.unit)})`;
		if (tree.baseSelf) {
			app.matchText += `, base ${shareText(matchedSum(tree, app.matches, tree.baseSelf), app.wholes[1])}`;
		}
	}
	byId('matched').textContent = app.matchText;
}

function startSearch() {
	const input = byId('search');
	let timer = 0;
	on(input, 'input', () => {
		clearTimeout(timer);
		timer = setTimeout(() => {
			app.state.q = input.value;
			update('search');
		}, 60);
	});
}
