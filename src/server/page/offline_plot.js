// A chart of a sweep in a file: a heatmap over layers and heads for every target, whose cells open: the metric against
// ε, all other metrics there, every prompt's value, and the command that draws its attention. Lines and
// rankings are drawn as they were asked for, above it.
import { decodeMap } from './attention.js';
import { CellAttention } from './cell_attention.js';
import { drawBars, drawCurve } from './charts.js';
import { ColorScale, drawColorBar } from './colors.js';
import { AttentionMap } from './map.js';
import { revealCard } from './offline_cell.js';
import { plainTitle, titleNodes } from './offline_figure.js';
import { countText, el, factorText, fillSelect, numberText } from './text.js';

const placeText = (value, word) => (value === -1 ? `all ${word}s` : value === -2 ? `mean of ${word}s` : `${word} ${value}`);

// ---- the numbers ----

class SweepNumbers {
    constructor(data) {
        this.data = data;
        this.metrics = data.metrics.map((metric) => ({
            ...metric, means: decodeMap(metric.means), unedited: decodeMap(metric.unedited),
            values: metric.values && decodeMap(metric.values),
        }));
        this.places = data.layers.length * data.heads.length;
        this.cells = data.targets.length * data.epsilons.length * this.places;
    }

    cell({ target, epsilon, place }) {
        return (target * this.data.epsilons.length + epsilon) * this.places + place;
    }

    mean(metric, at, change = false) {
        const value = this.metrics[metric].means[this.cell(at)];
        return change ? value - this.metrics[metric].unedited[at.place] : value;
    }

    // Of every prompt, where the file has them.
    ofPrompts(metric, at) {
        const { values } = this.metrics[metric];
        if (!values) return null;
        return this.data.prompts.map((_, prompt) => values[prompt * this.cells + this.cell(at)]);
    }

    // Mean, least and largest against ε.
    curve(metric, at) {
        return this.data.epsilons.map((eps, epsilon) => {
            const here = { ...at, epsilon };
            const all = (this.ofPrompts(metric, here) ?? []).filter((value) => value === value);
            const mean = this.mean(metric, here);
            return { x: eps, mean, low: all.length ? Math.min(...all) : mean, high: all.length ? Math.max(...all) : mean };
        });
    }
}

// ---- the page ----

export class OfflinePlot {
    constructor(root, data, palette) {
        Object.assign(this, { root, data, palette });
        this.numbers = new SweepNumbers(data);
        this.metric = 0;
        this.change = data.look.change;
        const chosen = data.epsilons.indexOf(data.chosen[data.chosen.length - 1]);
        this.epsilon = data.plot === 'lines' || chosen < 0 ? this.widest() : chosen;
        this.rowNames = data.layers.map((layer) => (layer < 0 ? 'all' : String(layer)));
        this.colNames = data.heads.map((head) => (head < 0 ? 'all' : String(head)));
        this.build();
        this.update();
        this.open(this.firstCell());
    }

    // Of a chart of lines: the ε at which heads differ most.
    widest() {
        const spread = this.data.epsilons.map((_, epsilon) => {
            let low = Infinity, high = -Infinity;
            for (let place = 0; place < this.numbers.places; place++) {
                const value = this.numbers.mean(0, { target: 0, epsilon, place });
                if (value < low) low = value;
                if (value > high) high = value;
            }
            return high - low;
        });
        return Math.max(0, spread.indexOf(Math.max(...spread)));
    }

    // The one that stands out: the first bar of a ranking, else what changed most.
    firstCell() {
        const { data } = this;
        if (data.plot === 'ranking' && data.values.length) return this.cellOf(data.values[0]);
        let best = { target: 0, place: 0 }, most = -Infinity;
        for (let target = 0; target < data.targets.length; target++) {
            for (let place = 0; place < this.numbers.places; place++) {
                const at = { target, epsilon: this.epsilon, place }, change = this.numbers.mean(0, at, true);
                const value = Math.abs(Number.isNaN(change) ? this.numbers.mean(0, at) : change);
                if (value > most) [best, most] = [{ target, place }, value];
            }
        }
        return best;
    }

    cellOf({ target, layer, head }) {
        const { data } = this, row = data.layers.indexOf(layer), col = data.heads.indexOf(head);
        if (row < 0 || col < 0) return null;
        return { target: data.targets.indexOf(target), place: row * data.heads.length + col };
    }

    build() {
        const { data } = this;
        this.maps = data.targets.map((_, target) => {
            const map = new AttentionMap({ title: data.target_names[target] });
            map.onhover = (at) => this.hover(target, at);
            map.onpick = ({ query, key }) => query >= 0 && key >= 0 && this.openByHand({ target, place: query * data.heads.length + key });
            map.element.setAttribute('aria-label', `${data.target_names[target]}: layers down, heads across. Arrow keys move, Enter opens a cell.`);
            return map;
        });
        this.readout = el('p', { class: 'readout' });
        this.bar = el('canvas', { class: 'bar', 'aria-hidden': 'true' });
        [this.low, this.high] = [el('span', { class: 'bar-end' }), el('span', { class: 'bar-end' })];
        this.panels = el('div', { class: 'panels' }, ...this.maps.map((map, i) => el('figure', { class: 'panel' },
            el('figcaption', {}, el('span', { class: 'panel-title' }, data.target_names[i]), el('span', { class: 'panel-note' }, 'layers down, heads across')),
            map.element)));
        this.detail = el('section', { class: 'card detail', 'aria-label': 'The open cell', 'aria-live': 'polite' });
        const heat = el('section', { class: 'card' }, this.buildTools(), this.panels, this.readout);
        const header = el('header', { class: 'figure-header' }, data.title ? el('h1', {}, ...titleNodes(data.title)) : null);
        this.attention = data.attention ? new CellAttention(data, this.palette) : null;
        this.root.append(header, ...this.buildChart(), el('div', { class: 'plot-page' }, heat, this.detail),
                         ...(this.attention ? [this.attention.element] : []), this.buildNotes());
        new ResizeObserver(() => this.paint()).observe(this.panels);
    }

    buildTools() {
        const { data } = this;
        this.metricChoice = el('select', { 'aria-label': 'Metric', onchange: (e) => this.set({ metric: Number(e.target.value) }) });
        fillSelect(this.metricChoice, data.metrics.map(({ name }, i) => [i, name]));
        const several = data.epsilons.length > 1;
        this.range = el('input', { type: 'range', min: '0', max: String(data.epsilons.length - 1), step: '1', value: String(this.epsilon),
                                   'aria-label': 'Factor ε', oninput: (e) => this.set({ epsilon: Number(e.target.value) }) });
        this.epsText = el('output', { class: 'eps-text' });
        this.changeBox = el('input', { type: 'checkbox', onchange: (e) => this.set({ change: e.target.checked }) });
        this.changeBox.checked = this.change;
        return el('div', { class: 'head-tools', role: 'group', 'aria-label': 'What the heatmap shows' },
            el('label', {}, el('span', {}, 'Metric'), this.metricChoice),
            several ? el('label', { class: 'eps-choice' }, el('span', {}, `${data.op} ε`), this.range, this.epsText) : el('span', {}, data.op, ' ', this.epsText),
            el('label', {}, this.changeBox, el('span', {}, 'difference from unedited')),
            el('span', { class: 'legend' }, this.low, this.bar, this.high));
    }

    // The chart as it was asked for, where that is not a heatmap.
    buildChart() {
        const { data } = this;
        if (data.plot === 'heatmap') return [];
        this.chart = el('div', { class: 'chart' });
        return [el('section', { class: 'card chart-card' }, this.chart)];
    }

    drawChart() {
        const { data } = this, width = this.chart?.clientWidth;
        if (!width) return;
        if (data.plot === 'ranking') {
            const bars = data.values.map((value) => ({ ...value, label: this.nameOf(value), group: data.targets.indexOf(value.target) }));
            this.chart.replaceChildren(drawBars(bars, { width, label: plainTitle(data.label), groups: data.target_names,
                                                         onpick: (bar) => this.openByHand(this.cellOf(bar)) }));
        } else {
            this.chart.replaceChildren(drawCurve(this.lines(), { width, height: 300, label: plainTitle(data.label), log: data.look.axis === 'log',
                logY: data.look.scale === 'log', reference: data.reference, band: data.look.band !== 'none' }));
        }
    }

    nameOf({ layer, head }) {
        return [placeText(layer, 'layer'), this.data.heads.length === 1 && head === -1 ? '' : placeText(head, 'head')].filter(Boolean).join(', ');
    }

    // One line for each series of the chart.
    lines() {
        const { data } = this, series = new Map();
        for (const value of data.values) {
            const name = data.by === 'target' ? data.target_names[data.targets.indexOf(value.target)] :
                data.by === 'layer' ? placeText(value.layer, 'layer') : this.nameOf(value);
            if (!series.has(name)) series.set(name, []);
            series.get(name).push({ x: value.epsilon, mean: value.mean ?? NaN, low: value.low ?? NaN, high: value.high ?? NaN });
        }
        return [...series].map(([name, points]) => ({ name, points }));
    }

    set(change) {
        Object.assign(this, change);
        this.update();
        if (this.opened) this.open(this.opened);
    }

    // ---- the heatmap ----

    update() {
        const { data } = this, eps = data.epsilons[this.epsilon];
        this.epsText.textContent = eps === null ? '' : factorText(eps);
        this.range.setAttribute('aria-valuetext', eps === null ? '' : factorText(eps));
        this.shown = data.targets.map((_, target) => Float32Array.from({ length: this.numbers.places }, (__, place) =>
            this.numbers.mean(this.metric, { target, epsilon: this.epsilon, place }, this.change)));
        this.scale = this.makeScale();
        drawColorBar(this.bar, this.scale);
        this.low.textContent = numberText(this.scale.low, 3);
        this.high.textContent = numberText(this.scale.high, 3);
        this.paint();
        this.hover(-1, { query: -1, key: -1 });
    }

    makeScale() {
        const { look } = this.data, all = this.shown.flatMap((values) => [...values]).filter((value) => value === value);
        const low = Math.min(...all), high = Math.max(...all), own = this.metric === 0 && this.change === look.change;
        if (this.change || (own && look.signed) || low < 0) {
            const reach = own && look.range[1] ? look.range[1] : Math.max(Math.abs(low), Math.abs(high)) || 1;
            return new ColorScale(this.palette.table('coolwarm'), { high: reach, diverging: true });
        }
        const given = own && (look.range[0] || look.range[1]);
        const [from, to] = given ? look.range : [low, high > low ? high : low + 1];
        const table = this.palette.table(look.colormap === 'coolwarm' ? 'viridis' : look.colormap);
        const isLog = own && look.scale === 'log' && to > 0;
        return new ColorScale(table, { kind: isLog ? 'log' : 'linear', low: from, high: to, floor: isLog ? Math.max(from, to * 1e-6) : 1e-4 });
    }

    paint() {
        const room = this.panels.clientWidth, { data } = this;
        if (!this.shown || room < 60) return;
        const count = this.maps.length, rows = data.layers.length, cols = data.heads.length;
        const columns = Math.min(count, Math.max(1, Math.floor(room / 230)));
        const width = Math.floor(Math.min((room - 14 * (columns - 1)) / columns, 560));
        this.panels.style.gridTemplateColumns = `repeat(${columns}, ${width}px)`;
        this.maps.forEach((map, target) => {
            map.setWidth(width);
            map.mostHeight = rows * Math.min(46, Math.max(14, width / cols));
            map.setData({ values: this.shown[target], rows, cols, step: 1, r0: 0, c0: 0, n: Math.max(rows, cols),
                          queries: this.rowNames, keys: this.colNames, causal: false, window: 0, sink: null });
            map.setZoom([0, rows, 0, cols]);
            map.setScale(this.scale);
            map.pins = this.pinsOf(target);
            map.paint();
        });
        this.drawChart();
    }

    pinsOf(target) {
        if (!this.opened || this.opened.target !== target) return { queries: [], keys: [] };
        const cols = this.data.heads.length;
        return { queries: [Math.floor(this.opened.place / cols)], keys: [this.opened.place % cols] };
    }

    hover(target, { query, key }) {
        this.maps.forEach((map, i) => {
            map.hover = i === target ? { query, key } : { query: -1, key: -1 };
            if (map.data) map.paintOver();
        });
        if (target < 0 || query < 0 || key < 0) {
            this.readout.replaceChildren(el('span', { class: 'hint' }, 'Point at a cell for its number, click to open what it stands for.'));
            return;
        }
        const { data } = this, value = this.shown[target][query * data.heads.length + key];
        this.readout.replaceChildren(el('span', {}, data.target_names[target]), el('span', {}, placeText(data.layers[query], 'layer')),
            el('span', {}, placeText(data.heads[key], 'head')),
            el('span', { class: 'weight' }, `${data.metrics[this.metric].name} `, el('b', {}, Number.isNaN(value) ? 'no value' : numberText(value, 5))));
    }

    // ---- an open cell ----

    // On a narrow page what is opened lies below the map; the attention always does.
    openByHand(at) {
        if (!at) return;
        this.open(at);
        const map = this.maps[at.target], band = map.bandOf('row', Math.floor(at.place / this.data.heads.length));
        const top = () => map.element.getBoundingClientRect().top + (band?.[0] ?? 0);
        revealCard(this.detail, top());
        if (this.attention) revealCard(this.attention.element, top(), false);
    }

    open(at) {
        if (!at) return;
        const { data } = this;
        this.opened = at;
        this.maps.forEach((map, target) => {
            map.pins = this.pinsOf(target);
            if (map.data) map.paintOver();
        });
        const here = { ...at, epsilon: this.epsilon }, name = data.metrics[this.metric].title;
        const place = { layer: data.layers[Math.floor(at.place / data.heads.length)], head: data.heads[at.place % data.heads.length] };
        const title = el('h2', {}, `${data.target_names[at.target]}, ${this.nameOf(place)}`);
        this.detail.replaceChildren(title, ...this.curveOf(here, name), this.metricTable(here), ...this.promptTable(here), this.commandOf(at, place));
        this.attention?.open({ ...here, name: title.textContent });
    }

    curveOf(here, name) {
        const { data } = this;
        if (data.epsilons.length < 2) return [];
        const unedited = this.numbers.metrics[this.metric].unedited[here.place];
        const width = Math.max(220, this.detail.clientWidth - 30);
        return [drawCurve([{ name: data.target_names[here.target], points: this.numbers.curve(this.metric, here) }],
                          { width, height: 190, label: name, log: true, reference: Number.isNaN(unedited) ? null : unedited, band: true,
                            cursor: data.epsilons[this.epsilon] })];
    }

    metricTable(here) {
        const { data } = this, eps = data.epsilons[here.epsilon];
        const rows = data.metrics.map(({ name }, metric) => {
            const all = (this.numbers.ofPrompts(metric, here) ?? []).filter((value) => value === value);
            const cells = [numberText(this.numbers.metrics[metric].unedited[here.place], 4), numberText(this.numbers.mean(metric, here), 4)];
            if (this.hasPrompts()) cells.push(all.length ? `${numberText(Math.min(...all), 3)} – ${numberText(Math.max(...all), 3)}` : '–');
            return el('tr', {}, el('th', { scope: 'row' }, name), ...cells.map((text) => el('td', {}, text)));
        });
        const heads = ['metric', 'unedited', eps === null ? data.op || 'value' : `ε = ${factorText(eps)}`, ...(this.hasPrompts() ? ['prompts'] : [])];
        return el('div', { class: 'wide' }, el('table', {}, el('thead', {}, el('tr', {}, ...heads.map((text) => el('th', { scope: 'col' }, text)))),
                                               el('tbody', {}, ...rows)));
    }

    hasPrompts() {
        return Boolean(this.numbers.metrics[0].values);
    }

    promptTable(here) {
        const all = this.numbers.ofPrompts(this.metric, here), most = 200;
        if (!all) return [];
        const rows = all.slice(0, most).map((value, i) => el('tr', {}, el('th', { scope: 'row' }, `prompt ${this.data.prompts[i]}`),
                                                                el('td', {}, numberText(value, 4))));
        const note = all.length > most ? [el('p', { class: 'hint' }, `The first ${most} of ${countText(all.length)} prompts.`)] : [];
        return [el('details', {}, el('summary', {}, `${this.data.metrics[this.metric].name} of every prompt`),
                   el('div', { class: 'wide short' }, el('table', {}, el('tbody', {}, ...rows))), ...note)];
    }

    // The edit that the cell is about, and a figure of it.
    commandOf(at, { layer, head }) {
        const { data } = this, target = data.targets[at.target], eps = data.epsilons[this.epsilon];
        if (target === 'none' || !data.op) return el('p', { class: 'hint' }, 'Nothing is edited here.');
        const heads = head < 0 ? '' : `.h${head}`;
        const edit = `${target}@${layer < 0 ? '*' : layer}${heads}=${data.op}${eps === null ? '' : `:${eps}`}`;
        const shown = `${layer < 0 ? '' : ` --layer ${layer}`}${head < 0 ? '' : ` --head ${head}`}`;
        return el('div', { class: 'command' }, el('p', { class: 'hint' }, 'Its attention, for a prompt:'),
            el('code', {}, `qkv figure grid${shown} --baseline --col '${edit.split('=')[1]}=${edit}' -p TEXT -o head.html`));
    }

    // ---- the end ----

    buildNotes() {
        const { data } = this;
        const cells = countText(this.numbers.cells), prompts = data.prompts.length;
        const parts = [`${cells} cells of ${countText(data.metrics.length)} metric${data.metrics.length === 1 ? '' : 's'} in this file, means over ${countText(prompts)} prompt${prompts === 1 ? '' : 's'}, in F32`];
        if (prompts > 1 && !this.hasPrompts()) parts.push('the values of single prompts are too many for a page');
        if (data.attention) parts.push(`the scores of ${countText(this.numbers.places)} heads for ${countText(data.attention.prompts.length)} of them, in F32`);
        if (data.left_out) parts.push('other metrics of the sweep are too many for a page');
        return el('footer', { class: 'figure-notes' }, data.small_print ? el('p', {}, data.small_print) : null,
            el('p', {}, `${parts.join('; ')}. Nothing is fetched. `, el('code', {}, 'qkv reproduce FILE --results RESULTS --check'), ` makes it again (${data.id}).`));
    }

    forgetTheme() {
        for (const map of this.maps) map.forgetTheme();
        this.attention?.forgetTheme();
        this.paint();
        if (this.opened) this.open(this.opened);
    }
}
