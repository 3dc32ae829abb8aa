// Maps whose rows are not queries: the attention of one query in every layer or head. Before, after and difference
// side by side, linked, with the numbers under the pointer.
//
//     const view = new TableView(element, { palette, look, rowName: 'Layer' });
//     view.setData({ rowNames, keys, before, after });     // after: null without an edit
import { ColorScale } from './colors.js';
import { NARROW } from './head.js';
import { AttentionMap } from './map.js';
import { changeText, el, numberText, tokenNode } from './text.js';

const TABLES = [['before', 'Before'], ['after', 'After'], ['diff', 'Difference']];

export class TableView {
    constructor(element, { palette, look, rowName }) {
        Object.assign(this, { palette, look, rowName });
        this.maps = {};
        this.figures = {};
        for (const [name, title] of TABLES) {
            const map = (this.maps[name] = new AttentionMap({ title, signed: name === 'diff' }));
            map.onhover = (place) => this.setHover(place);
            this.figures[name] = el('figure', { class: 'panel' },
                el('figcaption', {}, el('span', { class: 'panel-title' }, title)), map.element);
        }
        this.readout = el('p', { class: 'readout' });
        this.panels = el('div', { class: 'panels' }, ...TABLES.map(([name]) => this.figures[name]));
        element.classList.add('head-view');
        element.append(this.panels, this.readout);
        this.setHover({ query: -1, key: -1 });
        new ResizeObserver(() => this.paint()).observe(this.panels);
    }

    setData(data) {
        this.data = data;
        const diff = data.after ? data.after.map((value, i) => value - data.before[i]) : null;
        this.values = { before: data.before, after: data.after, diff };
        for (const [name] of TABLES) this.figures[name].hidden = !this.values[name];
        this.paint();
    }

    scaleOf(name) {
        const { look } = this;
        const kind = { kind: look.scale, floor: look.floor, gamma: look.gamma };
        if (name !== 'diff') return new ColorScale(this.palette.table(look.colormap), { ...kind, low: 0, high: look.signed ? 1 : look.high });
        const most = this.values.diff.reduce((top, value) => Math.max(top, Math.abs(value)), 0) || 1;
        return new ColorScale(this.palette.table('coolwarm'), { high: most, diverging: true });
    }

    paint() {
        const room = this.panels.clientWidth;
        if (!this.data || room < 60) return;
        const { rowNames, keys } = this.data, rows = rowNames.length, cols = keys.length;
        const shown = TABLES.filter(([name]) => this.values[name]);
        const columns = room < NARROW ? 1 : shown.length;
        const width = Math.floor(Math.min((room - 14 * (columns - 1)) / columns, 900));
        this.panels.style.gridTemplateColumns = `repeat(${columns}, ${width}px)`;
        for (const [name] of shown) {
            const map = this.maps[name];
            map.setWidth(width);
            map.mostHeight = rows * Math.max(22, Math.min(34, width / cols));
            map.setData({ values: this.values[name], rows, cols, step: 1, r0: 0, c0: 0, n: Math.max(rows, cols),
                          queries: rowNames, keys, causal: false, window: 0, sink: null });
            map.setZoom([0, rows, 0, cols]);
            map.setScale(this.scaleOf(name));
            map.paint();
        }
    }

    forgetTheme() {
        for (const map of Object.values(this.maps)) map.forgetTheme();
        this.paint();
    }

    setHover({ query, key }) {
        for (const map of Object.values(this.maps)) {
            map.hover = { query, key };
            if (map.data) map.paintOver();
        }
        if (query < 0 || key < 0 || !this.data) {
            this.readout.replaceChildren(el('span', { class: 'hint' }, 'Point at a cell for its numbers.'));
            return;
        }
        const at = query * this.data.keys.length + key;
        const part = (name, text) => el('span', { class: 'weight' }, `${name} `, el('b', {}, text));
        this.readout.replaceChildren(
            el('span', { class: 'place' }, `${this.rowName} ${this.data.rowNames[query]}`),
            el('span', { class: 'place' }, 'key ', tokenNode(this.data.keys[key]), el('span', { class: 'index' }, ` ${key}`)),
            part(this.values.after ? 'before' : 'weight', numberText(this.values.before[at], 6)),
            ...(this.values.after ? [part('after', numberText(this.values.after[at], 6)),
                                     part('change', changeText(this.values.diff[at], 4))] : []));
    }
}
