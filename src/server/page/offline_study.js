// A study in a file: its heatmaps, whose cells say their number and open their attention, or all numbers of the
// cell where there is none; other charts as images; all tables.
import { ScoredHead, decodeMap } from './attention.js';
import { ColorScale, drawColorBar } from './colors.js';
import { HeadView } from './head.js';
import { AttentionMap } from './map.js';
import { CellNumbers, revealCard, tableNode } from './offline_cell.js';
import { plainTitle, titleNodes } from './offline_figure.js';
import { clampNumber, countText, el, fillSelect, numberText } from './text.js';

const LETTER_WIDTH = 8, LEAST_TEXT_CELL = 30, MOST_TEXT_CELL = 54; // pixels of cells that texts stand in

const names = (labels, n) => labels ?? Array.from({ length: n }, (_, i) => String(i));

// ---- a heatmap ----

// Many of what an axis names: "Query" gives "queries", "Budget (keys)" "budgets", "First keys that stay" itself.
function axisWords(axis) {
    const words = axis.replace(/ *\(.*\)/, '').toLowerCase();
    return /s\b/.test(words) ? words : words.replace(/([^aeiou])y$/, '$1ie') + 's';
}

class StudyMap {
    constructor(picture, palette, colormap) {
        Object.assign(this, { picture, palette, colormap });
        this.onopen = () => {};
        this.opens = null; // what a click opens, in words
        this.panels = picture.panels.map((panel) => ({ ...panel, numbers: decodeMap(panel.values), rowNames: names(panel.row_labels, panel.rows),
                                                       colNames: names(panel.col_labels, panel.cols) }));
        this.scale = this.makeScale();
        this.maps = this.panels.map((panel, i) => this.makeMap(panel, i));
        this.readout = el('p', { class: 'readout' });
        this.bar = el('canvas', { class: 'bar', 'aria-hidden': 'true' });
        const ends = [this.scale.low, this.scale.high].map((value) => el('span', { class: 'bar-end' }, numberText(value, 3)));
        this.place = el('div', { class: 'panels' }, ...this.maps.map((map, i) => el('figure', { class: 'panel' },
            el('figcaption', {}, el('span', { class: 'panel-title' }, ...titleNodes(this.panels[i].title)),
                el('span', { class: 'panel-note' }, this.axes())), map.element)));
        this.element = el('section', { class: 'card study-map', 'aria-label': picture.name }, el('h2', {}, ...titleNodes(picture.title)),
            el('div', { class: 'head-tools' }, el('span', {}, ...titleNodes(picture.label)), el('span', { class: 'legend' }, ends[0], this.bar, ends[1])),
            this.place, this.readout);
        drawColorBar(this.bar, this.scale);
        this.hover(-1, { query: -1, key: -1 });
        new ResizeObserver(() => this.paint()).observe(this.place);
    }

    axes() {
        const { row_axis: rows, col_axis: cols } = this.picture;
        return [rows && `${axisWords(rows)} down`, cols && `${axisWords(cols)} across`].filter(Boolean).join(', ');
    }

    makeMap(panel, index) {
        const map = new AttentionMap({ title: plainTitle(panel.title) || this.picture.name });
        map.onhover = (at) => this.hover(index, at);
        map.onpick = ({ query, key }) => query >= 0 && key >= 0 && this.open(index, query, key, true);
        map.element.setAttribute('aria-label', `${plainTitle(panel.title) || this.picture.name}: ${this.axes()}. Arrow keys move, Enter opens a cell.`);
        return map;
    }

    makeScale() {
        const all = this.panels.flatMap(({ numbers }) => [...numbers]).filter((value) => value === value), { picture } = this;
        const least = Math.min(...all), most = Math.max(...all), [low, high] = picture.range[0] < picture.range[1] ? picture.range : [least, most];
        if (picture.diverging || (low < 0 && high > 0)) {
            const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
            return new ColorScale(this.palette.table('coolwarm'), { high: reach, diverging: true });
        }
        const table = this.palette.table(this.colormap), isLog = picture.scale === 'log' && high > 0;
        const floor = Math.min(...all.filter((value) => value > 0));
        return new ColorScale(table, { kind: isLog ? 'log' : 'linear', low: isLog ? floor : low, high: high > low ? high : low + 1,
                                       floor: isLog ? floor : 1e-4 });
    }

    paint() {
        const room = this.place.clientWidth;
        if (room < 60) return;
        const count = this.maps.length, columns = Math.min(count, Math.max(1, Math.floor(room / 260)));
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
            map.hover = i === index ? { query, key } : { query: -1, key: -1 };
            if (map.data) map.paintOver();
        });
        if (index < 0 || query < 0 || key < 0) {
            const what = this.opens ?? 'all its numbers';
            this.readout.replaceChildren(el('span', { class: 'hint' }, `Point at a cell for its number, click to open ${what}.`));
            return;
        }
        const panel = this.panels[index], at = query * panel.cols + key, text = panel.texts?.[at];
        const { row_axis: rows, col_axis: cols, label } = this.picture, value = panel.numbers[at];
        this.readout.replaceChildren(...(panel.title ? [el('span', {}, ...titleNodes(panel.title))] : []), el('span', {}, `${rows.toLowerCase()} ${panel.rowNames[query]}`),
            el('span', {}, `${cols.toLowerCase()} ${panel.colNames[key]}`), ...(text ? [el('span', {}, '“', el('b', {}, text), '”')] : []),
            el('span', { class: 'weight' }, ...titleNodes(label), ' ', el('b', {}, Number.isNaN(value) ? 'no value' : numberText(value, 5))));
    }

    open(index, row, col, byHand = false) {
        this.mark({ index, row, col });
        this.onopen(row, col, byHand);
    }

    // Which cell is open: null where it is one of another picture.
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

    // The cell that stands out.
    openLargest() {
        const { numbers, cols } = this.panels[0], size = (i) => Math.abs(numbers[i]) || 0;
        let best = 0;
        numbers.forEach((_, i) => size(i) > size(best) && (best = i));
        this.open(0, Math.floor(best / cols), best % cols);
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

    forgetTheme() {
        for (const map of this.maps) map.forgetTheme();
        this.paint();
    }
}

// ---- the attention of a cell ----

// What the weights of each row leave to a learned sink.
const restOfRows = (map, n) => Float32Array.from({ length: n }, (_, row) => 1 - map.subarray(row * n, (row + 1) * n).reduce((sum, weight) => sum + weight, 0));

class StudyAttention {
    constructor(attention, palette) {
        this.attention = attention;
        this.name = el('h2', {});
        this.choice = el('select', { 'aria-label': 'Head', onchange: () => this.show(this.prompt, this.layer, Number(this.choice.value)) });
        fillSelect(this.choice, Array.from({ length: attention.heads }, (_, head) => [head, `head ${head}`]));
        const place = el('div', {});
        this.element = el('section', { class: 'card cell-attention', 'aria-label': 'The attention of the open cell', 'aria-live': 'polite' },
            el('div', { class: 'panel-head' }, this.name, this.choice), place);
        const [before, after] = attention.names ?? ['Attention weight', null];
        this.view = new HeadView(place, { palette, names: { before, after }, maxHeight: () => Math.min(520, window.innerHeight * 0.6) });
        this.view.options = { show: { before: true, after: after !== null, diff: after !== null, lines: false } };
        this.head = 0;
    }

    has(prompt) {
        return this.attention.prompts.some(({ id }) => id === prompt);
    }

    // head null: the one that is shown already. The row of `query` is marked, where there is one.
    show(prompt, layer, head, query = null) {
        const { attention } = this, { tokens, scores, second } = attention.prompts.find(({ id }) => id === prompt);
        Object.assign(this, { prompt, layer, head: head ?? this.head });
        const place = layer * attention.heads + this.head, n = tokens.length;
        this.choice.value = String(this.head);
        this.name.textContent = `Attention: layer ${layer}, head ${this.head}`;
        const scored = new ScoredHead({ n, scores: decodeMap(scores[place]), causal: attention.causal, window: attention.windows[layer],
                                        softcap: attention.softcap, sink: attention.sinks[place] });
        this.view.settings.pins = { queries: query === null ? [] : [query], keys: [] };
        const share = new Float32Array(n), before = scored.weights([], new Float32Array(n * n), share);
        const after = second ? decodeMap(second[place]) : null;
        this.view.setData({ queries: tokens, keys: tokens, n, causal: scored.causal, window: scored.window, before, after,
                            sink: scored.sink === null ? null : { before: share, after: after && restOfRows(after, n) }, same: false });
    }

    forgetTheme() {
        this.view.forgetTheme();
    }
}

// ---- the page ----

export class OfflineStudy {
    constructor(root, data, palette) {
        Object.assign(this, { data, palette });
        this.attention = data.attention ? new StudyAttention(data.attention, palette) : null;
        this.maps = [];
        this.cell = new CellNumbers(data.tables);
        const pictures = data.pictures.map((picture) => this.buildPicture(picture));
        const header = el('header', { class: 'figure-header' }, data.title ? el('h1', {}, ...titleNodes(data.title)) : null);
        root.append(header, ...pictures, ...data.tables.map((table, i) => this.buildTable(table, i === 0)), this.buildNotes());
        (this.maps.find((map) => map.opens) ?? this.maps[0])?.openLargest();
    }

    buildPicture(picture) {
        if (picture.type === 'image') {
            return el('section', { class: 'card' }, el('h2', {}, ...titleNodes(picture.title)),
                      el('img', { class: 'chart', src: picture.source, alt: picture.name }));
        }
        const map = new StudyMap(picture, this.palette, this.data.colormap);
        const byHead = picture.cells === 'heads', isLinked = this.attention?.has(picture.prompt) && picture.cells !== 'none';
        if (isLinked) map.opens = 'its attention';
        map.onopen = (row, col, byHand) => {
            const layer = picture.layers?.[row] ?? row, place = picture.columns?.[col] ?? col, card = isLinked ? this.attention : this.cell;
            for (const other of this.maps) if (other !== map && other.opened) other.mark(null);
            this.moveBelow(map, card.element);
            if (isLinked) this.attention.show(picture.prompt, layer, byHead ? place : null, byHead ? null : place);
            else this.showNumbers(map, row, col);
            if (byHand) revealCard(card.element, map.openedTop);
        };
        map.hover(-1, { query: -1, key: -1 });
        this.maps.push(map);
        return map.element;
    }

    // What is opened stands below the map that it was opened from, and that map stays where it is on the screen.
    moveBelow(map, card) {
        const before = map.element.getBoundingClientRect().top;
        for (const other of [this.attention?.element, this.cell.element]) if (other !== card) other?.remove();
        if (map.element.nextElementSibling !== card) map.element.after(card);
        window.scrollBy(0, map.element.getBoundingClientRect().top - before);
    }

    showNumbers(map, row, col) {
        const { picture, panels } = map, { rowNames, colNames } = panels[map.opened.index];
        const alike = this.maps.filter(({ picture: other }) => other.row_axis === picture.row_axis && other.col_axis === picture.col_axis);
        this.cell.show(picture, rowNames[row], colNames[col], alike.flatMap((other) => other.numbersOf(rowNames[row], row, colNames[col], col)));
    }

    buildTable({ name, title, columns, rows, n_rows: all }, open) {
        const note = all > rows.length ? [el('p', { class: 'hint' }, `The first ${countText(rows.length)} of ${countText(all)} rows.`)] : [];
        const details = el('details', { class: 'card', id: `table-${name}` }, el('summary', {}, ...titleNodes(title)),
                           el('div', { class: 'wide' }, tableNode(columns, rows)), ...note);
        details.open = open;
        return details;
    }

    buildNotes() {
        const { data } = this;
        const maps = data.attention ? `The attention of every head for ${countText(data.attention.prompts.length)} prompt${data.attention.prompts.length === 1 ? '' : 's'} is in this file, in F32. `
            : data.too_large ? 'The attention of the cells is too large for a page; qkv figure heads draws it. ' : '';
        return el('footer', { class: 'figure-notes' }, data.small_print ? el('p', {}, data.small_print) : null,
            el('p', {}, `${maps}Nothing is fetched. `, el('code', {}, 'qkv reproduce FILE --check'), ` makes it again (${data.id}).`));
    }

    forgetTheme() {
        for (const map of this.maps) map.forgetTheme();
        this.attention?.forgetTheme();
    }
}
