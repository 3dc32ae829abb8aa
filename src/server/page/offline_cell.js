// What a cell of a study's map opens where no attention belongs to it: its numbers in all pictures that have the same cell,
// and the rows of the tables about it.
import { countText, el, numberText } from './text.js';

const REVEAL_GAP = 12; // pixels
const LEAST_SEEN = 0.4; // of the window: so much of a card is seen beside the cell that opened it
const SEEN_ENOUGH = 0.6; // of the window: a card that takes as much stays where it is

// The name of an axis in running text: "Later head (layer.head)" gives "later head".
const axisName = (axis) => axis.replace(/ *\(.*\)/, '').toLowerCase();

export const tableCell = (cell) => (cell === null ? '–' : typeof cell === 'number' ? numberText(cell, 5) : cell);

export function tableNode(columns, rows) {
    const body = rows.map((row) => el('tr', {}, ...row.map((cell) => el('td', {}, tableCell(cell)))));
    return el('table', {}, el('thead', {}, el('tr', {}, ...columns.map((column) => el('th', { scope: 'col' }, column)))), el('tbody', {}, ...body));
}

// Scrolls no farther than is needed to see a card; the cell that opened it, `top` pixels from the window's, stays in sight
// where there is room for both. mustSee: else the card is what counts.
export function revealCard(card, top, mustSee = true) {
    const box = card.getBoundingClientRect(), room = window.innerHeight;
    if (box.top >= 0 && Math.min(box.bottom, room) - box.top >= Math.min(box.height, room * SEEN_ENOUGH)) return;
    const wanted = Math.min(box.bottom + REVEAL_GAP - room, box.top - REVEAL_GAP), kept = top - REVEAL_GAP;
    const both = box.top - kept <= room * (1 - LEAST_SEEN);
    const by = wanted > kept && (both || !mustSee) ? kept : wanted;
    if (by > 0 || mustSee) window.scrollBy(0, by);
}

export class CellNumbers {
    constructor(tables) {
        this.tables = tables;
        this.name = el('h2', {});
        this.body = el('div', { class: 'cell-rows' });
        this.element = el('section', { class: 'card cell-numbers', 'aria-label': 'The open cell', 'aria-live': 'polite' }, this.name, this.body);
    }

    // picture: the one whose cell it is; rowName, colName: what the cell is called there; numbers: [name, value] of pictures.
    show({ row_axis: rowAxis, col_axis: colAxis }, rowName, colName, numbers) {
        const [row, col] = [axisName(rowAxis), axisName(colAxis)], found = row === 'layer' && col === 'head' ? this.rowsAbout(rowName, colName) : [];
        const name = [`${row} ${rowName}`, `${col} ${colName}`].map((text) => text.trim()).filter(Boolean).join(', ');
        const single = found.filter(({ rows, left }) => rows.length === 1 && !left).flatMap(({ columns, rows }) => columns.map((column, i) => [column, rows[0][i]]));
        this.name.textContent = name.charAt(0).toUpperCase() + name.slice(1);
        const facts = [...new Map(single.length ? single : numbers)].map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, tableCell(value))));
        this.body.replaceChildren(el('dl', { class: 'panel-numbers' }, ...facts), ...found.filter(({ rows, left }) => rows.length > 1 || left).map(rowsNode));
    }

    // The tables about heads: their other columns, and the rows of this one.
    rowsAbout(layer, head) {
        return this.tables.flatMap(({ title, columns, rows, n_rows: all }) => {
            const at = [columns.indexOf('layer'), columns.indexOf('head')];
            if (at.includes(-1)) return [];
            const others = columns.map((_, i) => i).filter((i) => !at.includes(i));
            const mine = rows.filter((cells) => String(cells[at[0]]) === layer && String(cells[at[1]]) === head);
            const left = all > rows.length; // the page has not all rows: of this cell some may be missing
            if (!mine.length && !left) return [];
            return [{ title, columns: others.map((i) => columns[i]), rows: mine.map((cells) => others.map((i) => cells[i])), left, all, kept: rows.length }];
        });
    }
}

function rowsNode({ title, columns, rows, left, all, kept }) {
    const note = left ? [el('p', { class: 'hint' }, `This page has the first ${countText(kept)} of the table's ${countText(all)} rows.`)] : [];
    return el('div', {}, el('h3', {}, title), ...(rows.length ? [el('div', { class: 'wide short' }, tableNode(columns, rows))] : []), ...note);
}
