// Tables, statements, lists and images of a page; and what a cell opens where no attention belongs to it: its numbers in all
// pictures that have the same cell, and the rows of the tables about it.
import { countText, el, numberText, titleNodes } from './text.js';

// The name of an axis in running text: "Later head (layer.head)" gives "later head".
const axisName = (axis) => axis.replace(/ *\(.*\)/, '').toLowerCase();

const tableCell = (cell, digits = 5) => (cell === null ? '–' : typeof cell === 'number' ? numberText(cell, digits) : cell);

const noteNodes = (text) => (text ? [el('p', { class: 'soft' }, text)] : []);

// titled: the first column has titles, with italics.
function tableNode(columns, rows, { digits, titled = false } = {}) {
    const nodes = (cell, i) => (titled && i === 0 ? titleNodes(cell) : [tableCell(cell, digits)]);
    const body = rows.map((row) => el('tr', {}, ...row.map((cell, i) => el('td', {}, ...nodes(cell, i)))));
    return el('table', {}, el('thead', {}, el('tr', {}, ...columns.map((column) => el('th', { scope: 'col' }, column)))), el('tbody', {}, ...body));
}

// ---- parts ----

export class TablePart {
    constructor(part, { data }) {
        const { name, title, columns, rows, n_rows: all, note } = part;
        const left = all > rows.length ? `The first ${countText(rows.length)} of ${countText(all)} rows.` : '';
        const details = el('details', { class: part.titled ? 'card titled' : 'card', id: `table-${name}` }, el('summary', {}, ...titleNodes(title)),
                           el('div', { class: 'wide' }, tableNode(columns, rows, part)), ...noteNodes(left), ...noteNodes(note));
        details.open = data.parts.find(({ type }) => type === 'table') === part;
        this.elements = [details];
    }
}

export class ImagePart {
    constructor({ name, title, source }) {
        this.elements = [el('section', { class: 'card' }, el('h2', {}, ...titleNodes(title)), el('img', { class: 'chart', src: source, alt: name }))];
    }
}

const VERDICTS = { holds: ['yes', '✓'], 'does not hold': ['no', '✗'] };

export class FactsPart {
    constructor({ title, items }) {
        const facts = items.map(({ statement, verdict, text }) => {
            const [kind, mark] = VERDICTS[verdict] ?? ['none', '–'];
            return el('li', {}, el('span', { class: `mark ${kind}`, title: verdict }, mark), el('strong', {}, statement), el('span', { class: 'soft' }, text));
        });
        this.elements = [el('section', { class: 'card' }, el('h2', {}, title), el('ul', { class: 'facts' }, ...facts))];
    }
}

export class ListPart {
    constructor({ title, items, note }) {
        const lines = items.length ? items.map((item) => el('li', {}, ...titleNodes(item))) : [el('li', {}, 'None.')];
        this.elements = [el('section', { class: 'card' }, el('h2', {}, title), el('ul', { class: 'soft' }, ...lines), ...noteNodes(note))];
    }
}

// ---- the numbers of a cell ----

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
    const note = left ? `This page has the first ${countText(kept)} of the table's ${countText(all)} rows.` : '';
    return el('div', {}, el('h3', {}, title), ...(rows.length ? [el('div', { class: 'wide short' }, tableNode(columns, rows))] : []), ...noteNodes(note));
}
