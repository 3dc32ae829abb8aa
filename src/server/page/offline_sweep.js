// A chart of a sweep: a heatmap over layers and heads for every target, whose cells open: the metric against ε, all other
// metrics there, every prompt's value, the command that draws the attention of it, and this attention where the file has
// it. Lines and rankings are drawn as they were asked for, above it.
import { decodeMap } from './attention.js';
import { drawBars, drawCurve } from './charts.js';
import { revealCard } from './offline_attention.js';
import { CellMaps, cellScale } from './offline_heatmap.js';
import { countText, el, factorText, fillSelect, numberText, plainTitle } from './text.js';

const FACTOR_AXES = { q: 'query', q_rot: 'query', k: 'key', k_rot: 'key', v: 'none' };

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

// ---- the part ----

export class SweepPart {
    constructor(data, { palette, attention }) {
        Object.assign(this, { data, palette, attention });
        this.numbers = new SweepNumbers(data);
        this.metric = 0;
        this.change = data.look.change;
        const chosen = data.epsilons.indexOf(data.chosen[data.chosen.length - 1]);
        this.epsilon = data.plot === 'lines' || chosen < 0 ? this.widest() : chosen;
        this.build();
    }

    begin() {
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
        const { data } = this, rows = data.layers.length, cols = data.heads.length, short = (number) => (number < 0 ? 'all' : String(number));
        this.panels = data.target_names.map((title) => ({ title, rows, cols, rowNames: data.layers.map(short), colNames: data.heads.map(short), texts: null }));
        this.maps = new CellMaps({ panels: this.panels, rowAxis: 'Layer', colAxis: 'Head', name: 'cells', opens: 'what it stands for', tools: this.buildTools(),
                                   placesOf: (row, col) => [placeText(data.layers[row], 'layer'), placeText(data.heads[col], 'head')] });
        this.maps.onopen = ({ index, row, col }) => this.openByHand({ target: index, place: row * cols + col });
        this.detail = el('section', { class: 'card detail', 'aria-label': 'The open cell', 'aria-live': 'polite' });
        this.elements = [...this.buildChart(), el('div', { class: 'plot-page' }, el('section', { class: 'card' }, ...this.maps.elements), this.detail),
                         ...(this.attention ? [this.attention.element] : [])];
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
        return [el('label', {}, el('span', {}, 'Metric'), this.metricChoice),
            several ? el('label', { class: 'eps-choice' }, el('span', {}, `${data.op} ε`), this.range, this.epsText) : el('span', {}, data.op, ' ', this.epsText),
            el('label', {}, this.changeBox, el('span', {}, 'difference from unedited'))];
    }

    // The chart as it was asked for, where that is not a heatmap.
    buildChart() {
        const { data } = this;
        if (data.plot === 'heatmap') return [];
        this.chart = el('div', { class: 'chart' });
        new ResizeObserver(() => this.drawChart()).observe(this.chart);
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
        this.panels.forEach((panel, target) => (panel.numbers = Float32Array.from({ length: this.numbers.places }, (_, place) =>
            this.numbers.mean(this.metric, { target, epsilon: this.epsilon, place }, this.change))));
        this.maps.show(this.makeScale(), data.metrics[this.metric].name);
    }

    // The look that was asked for is that of the metric that was.
    makeScale() {
        const { look } = this.data, all = this.panels.flatMap(({ numbers }) => [...numbers]), own = this.metric === 0 && this.change === look.change;
        const diverging = this.change || (own && look.signed) || all.some((value) => value < 0);
        return cellScale(this.palette, all, { ...look, ...(own ? {} : { range: [0, 0], scale: 'linear' }), diverging });
    }

    // ---- an open cell ----

    // On a narrow page what is opened lies below the map; the attention always does.
    openByHand(at) {
        if (!at) return;
        this.open(at);
        revealCard(this.detail, this.maps.openedTop);
        if (this.attention) revealCard(this.attention.element, this.maps.openedTop, false);
    }

    open(at) {
        if (!at) return;
        const { data } = this, cols = data.heads.length, [row, col] = [Math.floor(at.place / cols), at.place % cols];
        this.opened = at;
        this.maps.mark({ index: at.target, row, col });
        const here = { ...at, epsilon: this.epsilon }, name = data.metrics[this.metric].title, place = { layer: data.layers[row], head: data.heads[col] };
        const title = `${data.target_names[at.target]}, ${this.nameOf(place)}`;
        this.detail.replaceChildren(el('h2', {}, title), ...this.curveOf(here, name), this.metricTable(here), ...this.promptTable(here), this.commandOf(at, place));
        this.attention?.open({ layer: row, head: col, title, edit: this.factorOf(at, place), still: 'Without the edit: only factors of q and k can be made without an engine.' });
    }

    // The cell's edit as a factor of the head's scores; null where it is not one.
    factorOf(at, { layer, head }) {
        const { data } = this, target = data.targets[at.target], axis = FACTOR_AXES[target];
        if (!axis || (data.op !== 'scale' && data.op !== 'zero')) return null;
        return { label: `${target}@${layer}.h${head}`, axis, eps: data.op === 'zero' ? 0 : data.epsilons[this.epsilon], tokens: null,
                 marks: data.op === 'scale' ? data.epsilons : [0], note: axis === 'none' ? 'v has no part in the weights of its own layer: nothing moves, at any factor.' : '' };
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
        return el('div', { class: 'command' }, el('p', { class: 'hint' }, 'The attention of it, for a prompt:'),
            el('code', {}, `qkv figure grid${shown} --baseline --col '${edit.split('=')[1]}=${edit}' -p TEXT -o head.html`));
    }

    forgetTheme() {
        this.maps.forgetTheme();
        if (this.opened) this.open(this.opened);
    }
}
