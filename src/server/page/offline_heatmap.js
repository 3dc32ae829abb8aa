// Heatmaps: cells say their number under the pointer, and open.
import { decodeMap } from './attention.js';
import { ColorScale, drawColorBar } from './colors.js';
import { AttentionMap } from './map.js';
import { revealCard } from './offline_attention.js';
import { clampNumber, el, numberText, plainTitle, titleNodes } from './text.js';

const LETTER_WIDTH = 8, LEAST_TEXT_CELL = 30, MOST_TEXT_CELL = 54; // pixels of cells that texts stand in
const NOWHERE = { query: -1, key: -1 };

const names = (labels, n) => labels ?? Array.from({ length: n }, (_, i) => String(i));

// Many of what an axis names: "Query" gives "queries", "Budget (keys)" "budgets", "First keys that stay" itself.
function axisWords(axis) {
    const words = axis.replace(/ *\(.*\)/, '').toLowerCase();
    return /s\b/.test(words) ? words : words.replace(/([^aeiou])y$/, '$1ie') + 's';
}

// The colours of numbers as charts have them. range: [0, 0] is as far as the numbers reach; values on both sides of 0 make it
// diverging.
export function cellScale(palette, numbers, { range, scale, diverging, colormap }) {
    const all = numbers.filter((value) => value === value), isGiven = range[0] < range[1];
    const [low, high] = isGiven ? range : [Math.min(...all), Math.max(...all)];
    if (diverging || (low < 0 && high > 0)) {
        const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
        return new ColorScale(palette.table('coolwarm'), { high: reach, diverging: true });
    }
    const table = palette.table(colormap === 'coolwarm' ? 'viridis' : colormap), isLog = scale === 'log' && high > 0;
    const floor = isGiven && low > 0 ? low : Math.min(...all.filter((value) => value > 0));
    return new ColorScale(table, { kind: isLog ? 'log' : 'linear', low: isLog ? floor : low, high: high > low ? high : low + 1, floor: isLog ? floor : 1e-4 });
}

// ---- maps side by side ----

// One colour scale for all of them.
//
//     const maps = new CellMaps({ panels: [{ title, rows, cols, rowNames, colNames, texts, numbers }], rowAxis, colAxis, name });
//     maps.show(scale, label);                          // numbers of panels may be others from then on
//     maps.onopen = ({ index, row, col }) => ...;       // by hand
//
// placesOf(row, col): what the cell is called; opens: what a click opens, in words.
export class CellMaps {
    constructor({ panels, rowAxis, colAxis, name, opens = 'all its numbers', tools = [], placesOf = null }) {
        Object.assign(this, { panels, rowAxis, colAxis, name, opens });
        this.onopen = () => {};
        this.opened = null;
        this.placesOf = placesOf ?? ((row, col, { rowNames, colNames }) => [`${rowAxis.toLowerCase()} ${rowNames[row]}`, `${colAxis.toLowerCase()} ${colNames[col]}`]);
        this.maps = panels.map((panel, i) => this.makeMap(panel, i));
        this.readout = el('p', { class: 'readout' });
        this.bar = el('canvas', { class: 'bar', 'aria-hidden': 'true' });
        this.ends = [el('span', { class: 'bar-end' }), el('span', { class: 'bar-end' })];
        this.place = el('div', { class: 'panels' }, ...this.maps.map((map, i) => el('figure', { class: 'panel' },
            el('figcaption', {}, el('span', { class: 'panel-title' }, ...titleNodes(panels[i].title)), el('span', { class: 'panel-note' }, this.axes())), map.element)));
        this.elements = [el('div', { class: 'head-tools', role: 'group', 'aria-label': 'What the heatmap shows' }, ...tools,
                            el('span', { class: 'legend' }, this.ends[0], this.bar, this.ends[1])), this.place, this.readout];
        new ResizeObserver(() => this.paint()).observe(this.place);
    }

    axes() {
        const { rowAxis, colAxis } = this;
        return [rowAxis && `${axisWords(rowAxis)} down`, colAxis && `${axisWords(colAxis)} across`].filter(Boolean).join(', ');
    }

    makeMap({ title }, index) {
        const map = new AttentionMap({ title: plainTitle(title) || this.name });
        map.onhover = (at) => this.hover(index, at);
        map.onpick = ({ query, key }) => query >= 0 && key >= 0 && this.onopen({ index, row: query, col: key });
        map.element.setAttribute('aria-label', `${plainTitle(title) || this.name}: ${this.axes()}. Arrow keys move, Enter opens a cell.`);
        return map;
    }

    show(scale, label) {
        Object.assign(this, { scale, label });
        drawColorBar(this.bar, scale);
        [scale.low, scale.high].forEach((value, i) => (this.ends[i].textContent = numberText(value, 3)));
        this.paint();
        this.hover(-1, NOWHERE);
    }

    paint() {
        const room = this.place.clientWidth;
        if (!this.scale || room < 60) return;
        const count = this.maps.length, columns = Math.min(count, Math.max(1, Math.floor(room / 240)));
        const share = Math.min((room - 14 * (columns - 1)) / columns, count > 1 ? 560 : 1000);
        const width = Math.floor(Math.max(share, ...this.panels.map((panel) => this.widthOfTexts(panel))));
        this.place.style.gridTemplateColumns = `repeat(${columns}, ${width}px)`;
        this.maps.forEach((map, i) => {
            const { rows, cols, numbers, texts, rowNames, colNames } = this.panels[i];
            map.setWidth(width);
            map.mostHeight = rows * Math.min(34, Math.max(texts ? 22 : 12, width / cols));
            map.setData({ values: numbers, texts, rows, cols, step: 1, r0: 0, c0: 0, n: Math.max(rows, cols), queries: rowNames, keys: colNames,
                          causal: false, window: 0, sink: null });
            map.setZoom([0, rows, 0, cols]);
            map.setScale(this.scale);
            map.pins = this.pinsOf(i);
            map.paint();
        });
    }

    // Wider than the page where texts need it: then the map is scrolled.
    widthOfTexts({ texts, cols }) {
        if (!texts) return 0;
        const longest = Math.max(...texts.map((text) => [...text].length));
        return 60 + cols * clampNumber(longest * LETTER_WIDTH + 6, LEAST_TEXT_CELL, MOST_TEXT_CELL);
    }

    pinsOf(index) {
        const { opened } = this;
        return opened?.index === index ? { queries: [opened.row], keys: [opened.col] } : { queries: [], keys: [] };
    }

    hover(index, { query, key }) {
        this.maps.forEach((map, i) => {
            map.hover = i === index ? { query, key } : NOWHERE;
            if (map.data) map.paintOver();
        });
        if (index < 0 || query < 0 || key < 0) {
            this.readout.replaceChildren(el('span', { class: 'hint' }, `Point at a cell for its number, click to open ${this.opens}.`));
            return;
        }
        const panel = this.panels[index], at = query * panel.cols + key, text = panel.texts?.[at], value = panel.numbers[at];
        this.readout.replaceChildren(...(panel.title ? [el('span', {}, ...titleNodes(panel.title))] : []),
            ...this.placesOf(query, key, panel).map((place) => el('span', {}, place)), ...(text ? [el('span', {}, '“', el('b', {}, text), '”')] : []),
            el('span', { class: 'weight' }, ...titleNodes(this.label), ' ', el('b', {}, Number.isNaN(value) ? 'no value' : numberText(value, 5))));
    }

    // Which cell is open: { index, row, col }; null where it is one of another picture.
    mark(opened) {
        this.opened = opened;
        this.maps.forEach((map, i) => {
            map.pins = this.pinsOf(i);
            if (map.data) map.paintOver();
        });
    }

    // How far from the top of the window the open cell begins.
    get openedTop() {
        const map = this.maps[this.opened.index], band = map.layoutDone ? map.bandOf('row', this.opened.row) : null;
        return map.element.getBoundingClientRect().top + (band?.[0] ?? 0);
    }

    forgetTheme() {
        for (const map of this.maps) map.forgetTheme();
        this.paint();
    }
}

// ---- the heatmap of a study ----

// Its cells open their attention, or all numbers of the cell where there is none.
export class HeatmapPart {
    constructor(picture, page) {
        Object.assign(this, { picture, page });
        this.prompt = picture.cells === 'none' || !page.attention ? -1 : page.attention.find(picture.prompt);
        this.isLinked = this.prompt >= 0;
        this.panels = picture.panels.map((panel) => ({ ...panel, numbers: decodeMap(panel.values), rowNames: names(panel.row_labels, panel.rows),
                                                       colNames: names(panel.col_labels, panel.cols) }));
        this.maps = new CellMaps({ panels: this.panels, rowAxis: picture.row_axis, colAxis: picture.col_axis, name: picture.name,
                                   opens: this.isLinked ? 'its attention' : undefined, tools: [el('span', {}, ...titleNodes(picture.label))] });
        this.maps.onopen = (cell) => this.open(cell, true);
        this.element = el('section', { class: 'card study-map', 'aria-label': picture.name }, el('h2', {}, ...titleNodes(picture.title)), ...this.maps.elements);
        this.elements = [this.element];
        this.maps.show(cellScale(page.palette, this.panels.flatMap(({ numbers }) => [...numbers]), { ...picture, colormap: page.data.colormap }), picture.label);
    }

    open(cell, byHand = false) {
        const { page, picture, isLinked } = this, card = isLinked ? page.attention : page.cell;
        for (const part of page.partsOf(HeatmapPart)) if (part !== this && part.maps.opened) part.maps.mark(null);
        this.maps.mark(cell);
        this.moveBelow(card.element);
        if (isLinked) {
            const layer = picture.layers?.[cell.row] ?? cell.row, place = picture.columns?.[cell.col] ?? cell.col, { prompt } = this;
            page.attention.open(picture.cells === 'heads' ? { prompt, layer, head: place, query: null } : { prompt, layer, query: place });
        } else this.showNumbers(cell);
        if (byHand) revealCard(card.element, this.maps.openedTop);
    }

    // What is opened stands below the map that it was opened from, and that map stays where it is on the screen.
    moveBelow(card) {
        const before = this.element.getBoundingClientRect().top;
        for (const other of [this.page.attention?.element, this.page.cell.element]) if (other !== card) other?.remove();
        if (this.element.nextElementSibling !== card) this.element.after(card);
        window.scrollBy(0, this.element.getBoundingClientRect().top - before);
    }

    showNumbers({ index, row, col }) {
        const { picture, page } = this, rowName = this.panels[index].rowNames[row], colName = this.panels[index].colNames[col];
        const alike = page.partsOf(HeatmapPart).filter(({ picture: other }) => other.row_axis === picture.row_axis && other.col_axis === picture.col_axis);
        page.cell.show(picture, rowName, colName, alike.flatMap((other) => other.numbersOf(rowName, row, colName, col)));
    }

    // What each panel says about the cell of these names: [name, value]; none where it has no such cell. Names may repeat, as
    // tokens do: the one at the same place is meant.
    numbersOf(rowName, row, colName, col) {
        const find = (list, name, at) => (list[at] === name ? at : list.indexOf(name));
        return this.panels.flatMap(({ title, rowNames, colNames, cols, numbers }) => {
            const [r, c] = [find(rowNames, rowName, row), find(colNames, colName, col)];
            return r < 0 || c < 0 ? [] : [[plainTitle(title || this.picture.label), numbers[r * cols + c]]];
        });
    }

    // The cell that stands out.
    openLargest() {
        const { numbers, cols } = this.panels[0], size = (i) => Math.abs(numbers[i]) || 0;
        let best = 0;
        numbers.forEach((_, i) => size(i) > size(best) && (best = i));
        this.open({ index: 0, row: Math.floor(best / cols), col: best % cols });
    }

    forgetTheme() {
        this.maps.forgetTheme();
    }
}

// Of all heatmaps of a page, the first whose cells have attention.
export function openFirst(parts) {
    (parts.find(({ isLinked }) => isLinked) ?? parts[0])?.openLargest();
}
