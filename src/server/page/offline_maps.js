// A figure: its panels as they were drawn, and beside them the head view of the one that is chosen, with a slider for
// every factor. Maps under other factors than the figure's are made of scores (attention.js).
import { ScoredHead, decodeMap } from './attention.js';
import { ColorScale, LINEAR_TOKENS } from './colors.js';
import { FactorSlider } from './factor_slider.js';
import { HeadView } from './head.js';
import { revealCard } from './offline_attention.js';
import { TableView } from './tables.js';
import { countText, el, numberText, plainTitle, titleNodes } from './text.js';
import { thumbCanvas } from './thumbs.js';

const SIDE_PANELS = 24; // figures of more panels have them above, not beside

// ---- the numbers ----

// The maps of a file, decoded when they are first needed.
class FigureMaps {
    constructor(data) {
        this.data = data;
        this.decoded = new Map();
        this.heads = new Map();
        this.made = new Map();
    }

    stored(index) {
        if (!this.decoded.has(index)) {
            const map = this.data.maps[index];
            this.decoded.set(index, { values: decodeMap(map), rows: map.rows, cols: map.cols, step: map.step,
                                      causal: this.data.causal && this.data.kind !== 'rows', window: map.window });
        }
        return this.decoded.get(index);
    }

    head(prompt) {
        if (!this.heads.has(prompt)) {
            const { tokens, scores } = this.data.prompts[prompt], { causal, window, softcap, sink, slope } = this.data;
            const map = this.stored(scores);
            this.heads.set(prompt, new ScoredHead({ n: tokens.length, scores: map.values, causal, window, softcap, sink, slope }));
        }
        return this.heads.get(prompt);
    }

    // Under these factors, into a buffer that the next call of the same name uses again.
    compute(prompt, factors, name) {
        const head = this.head(prompt), n = head.n, key = `${prompt} ${name}`;
        if (!this.made.has(key)) {
            this.made.set(key, { values: new Float32Array(n * n), share: new Float32Array(n), rows: n, cols: n, step: 1,
                                 causal: this.data.causal, window: this.data.window });
        }
        const map = this.made.get(key);
        if (this.data.site === 'scores') head.capped(factors, map.values);
        else head.weights(factors, map.values, map.share);
        return map;
    }

    before(panel) {
        if (panel.before !== null) return this.stored(panel.before);
        return this.compute(panel.prompt, [], 'before');
    }

    // The panel as it was drawn: the engine's own numbers where the file has them.
    drawn(panel) {
        if (panel.map !== null) return this.stored(panel.map);
        return this.compute(panel.prompt, panel.factors, `drawn ${panel.row} ${panel.col}`);
    }

    // What a learned sink took of every row.
    share(map) {
        if (this.data.sink === null || map.step > 1 || this.data.site === 'scores') return null;
        if (map.share) return map.share;
        map.share = new Float32Array(map.rows);
        for (let row = 0; row < map.rows; row++) {
            let rest = 1;
            for (let col = 0; col < map.cols; col++) rest -= map.values[row * map.cols + col];
            map.share[row] = rest;
        }
        return map.share;
    }
}

// ---- the part ----

export class MapsPart {
    constructor(data, { palette }) {
        Object.assign(this, { data, palette });
        this.maps = new FigureMaps(data);
        this.build();
    }

    begin() {
        this.choose(this.firstPanel());
    }

    firstPanel() {
        const moves = (panel) => panel.scored && panel.factors.some((factor) => factor.axis !== 'none');
        const at = this.data.panels.findIndex(moves);
        return at >= 0 ? at : Math.max(0, this.data.panels.findIndex((panel) => panel.edits !== ''));
    }

    build() {
        const { data } = this;
        const many = data.panels.length > SIDE_PANELS;
        this.name = el('h2', { class: 'panel-name' });
        this.edits = el('code', { class: 'panel-edits' });
        this.controls = el('div', { class: 'factors' });
        this.numbers = el('dl', { class: 'panel-numbers' });
        this.viewElement = el('section', { class: 'card', 'aria-label': 'The chosen panel' });
        const place = el('div', {});
        this.viewElement.append(el('div', { class: 'panel-head' }, this.name, this.edits), this.controls, this.numbers, place);
        if (data.kind === 'rows') {
            this.table = new TableView(place, { palette: this.palette, look: data.look, rowName: data.layer < 0 ? 'layer' : 'head' });
        } else {
            // Lower than the live page has it: panels stay side by side, below the slider.
            this.view = new HeadView(place, { palette: this.palette, maxHeight: () => window.innerHeight * 0.7 });
            this.view.options = this.viewOptions();
        }
        this.header = this.buildPrompts();
        this.elements = [el('div', { class: many || data.panels.length === 1 ? 'figure-page stacked' : 'figure-page' }, this.buildPanels(many), this.viewElement)];
    }

    viewOptions() {
        const { look, site } = this.data;
        // Lines have room beside a single map.
        const edited = this.data.panels.some((panel) => panel.edits !== '');
        const options = { show: { before: true, after: true, diff: true, lines: !edited }, colormap: look.colormap, skipKeys: look.skip_keys, maskedZero: look.masked === 'zero' };
        // `auto` is what figures choose; it has a scale of its own for differences.
        const long = this.data.prompts.some(({ tokens }) => tokens.length > LINEAR_TOKENS);
        if (!look.diff && look.scale !== (long ? 'log' : 'linear')) options.scale = look.scale;
        if (!look.diff && (look.low !== 0 || look.high !== 1) && !look.skip_keys) Object.assign(options, { low: look.low, high: look.high });
        if (site === 'scores') options.maskedZero = true;
        return options;
    }

    buildPrompts() {
        const { data } = this;
        return data.prompts.map((prompt, i) => el('p', { class: 'prompt' },
            el('span', { class: 'index' }, data.prompts.length > 1 ? `Input ${i + 1} ` : 'Prompt '),
            prompt.text === null ? el('span', { class: 'hint' }, 'given as token ids') : el('bdi', { dir: 'auto' }, prompt.text),
            el('span', { class: 'index' }, ` ${countText(prompt.tokens.length)} tokens`)));
    }

    // The scale of the figure itself, for its panels.
    figureScale() {
        const { look } = this.data;
        return new ColorScale(this.palette.table(look.colormap),
            { kind: look.scale, low: look.low, high: look.high, diverging: look.signed, floor: look.floor, gamma: look.gamma });
    }

    drawnValues(panel) {
        const map = this.maps.drawn(panel), { look } = this.data;
        const share = look.sink_column ? this.maps.share(map) : null;
        if (!look.diff) return { ...map, share };
        const before = this.maps.before(panel), was = this.maps.share(before);
        return { ...map, values: map.values.map((value, i) => value - before.values[i]), share: share && share.map((value, i) => value - was[i]) };
    }

    buildPanels(many) {
        const { data } = this, { look } = data, scale = this.figureScale();
        const options = { maskedZero: look.masked === 'zero' || data.site === 'scores' || data.kind === 'rows', skipKeys: look.skip_keys };
        this.thumbs = data.panels.map((panel, i) => {
            const label = plainTitle(panel.title) || 'Unmodified';
            const canvas = thumbCanvas(this.drawnValues(panel), scale, { ...options, label: `map: ${label}` });
            const badge = panel.report ? el('span', { class: `badge ${panel.report.class}` }, panel.report.class) : null;
            const caption = many ? null : el('span', { class: 'thumb-title' }, ...titleNodes(panel.title || 'Unmodified'));
            return el('button', { type: 'button', class: 'thumb-button', title: label, 'aria-pressed': 'false',
                                  'aria-label': many ? label : null, onclick: () => this.choose(i, true) }, caption, canvas, badge);
        });
        const grid = el('div', { class: many ? 'thumb-grid many' : 'thumb-grid', role: 'group', 'aria-label': 'Panels of the figure' },
                        ...(many ? this.numberedThumbs() : this.thumbs));
        grid.style.setProperty('--columns', data.cols);
        grid.addEventListener('keydown', (event) => this.moveByKey(event));
        return el('section', { class: 'card panels-card', hidden: data.panels.length === 1 }, grid);
    }

    // Rows and columns of many heads have their numbers at the edges.
    numberedThumbs() {
        const { rows, cols, panels } = this.data, out = [];
        const byLayer = panels.every((panel) => panel.layer === panels[panel.row * cols].layer) &&
            new Set(panels.map((panel) => panel.layer)).size === rows;
        if (!byLayer) return this.thumbs;
        out.push(el('span', { class: 'thumb-edge' }, ''));
        for (let col = 0; col < cols; col++) out.push(el('span', { class: 'thumb-edge' }, String(panels[col].head)));
        for (let row = 0; row < rows; row++) {
            out.push(el('span', { class: 'thumb-edge' }, String(panels[row * cols].layer)));
            out.push(...this.thumbs.slice(row * cols, (row + 1) * cols));
        }
        this.isNumbered = true;
        return out;
    }

    moveByKey(event) {
        const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.data.cols, ArrowDown: this.data.cols };
        const step = steps[event.key];
        const to = this.chosen + step;
        if (step === undefined || to < 0 || to >= this.thumbs.length) return;
        event.preventDefault();
        this.choose(to);
        this.thumbs[to].focus();
    }

    // ---- the chosen panel ----

    choose(index, byHand = false) {
        const panel = this.data.panels[index];
        this.thumbs[this.chosen]?.setAttribute('aria-pressed', 'false');
        this.thumbs[index].setAttribute('aria-pressed', 'true');
        this.chosen = index;
        this.factors = panel.factors.map((factor) => ({ ...factor }));
        this.name.replaceChildren(...titleNodes(panel.title || 'Unmodified'));
        this.buildControls(panel);
        this.showNumbers(panel);
        this.update();
        // Beside the panels it is in sight; below them, as on a narrow page, it may not be.
        if (byHand) revealCard(this.viewElement, this.thumbs[index].getBoundingClientRect().top);
    }

    // The factors that panels of the figure have for the same target: ticks of the slider.
    marksOf(factor) {
        const all = this.data.panels.flatMap((panel) => panel.factors.filter((other) => other.target === factor.target));
        return all.map((other) => other.eps);
    }

    noteOf(factor) {
        if (factor.axis === 'none') return `${factor.site} has no part in the weights of its own layer: nothing moves, at any factor.`;
        return '';
    }

    buildControls(panel) {
        const movable = panel.scored || panel.factors.every((factor) => factor.axis === 'none');
        this.sliders = !movable ? [] : this.factors.map((factor) => {
            const slider = new FactorSlider({ label: factor.target, eps: factor.eps, marks: this.marksOf(factor), note: this.noteOf(factor) });
            slider.oninput = (eps) => {
                factor.eps = eps;
                this.update();
            };
            slider.onhold = (held) => this.view?.hold(held);
            return slider;
        });
        this.controls.replaceChildren(...this.sliders.map((slider) => slider.element));
        if (!movable) this.controls.append(el('p', { class: 'hint' }, this.whyStill(panel)));
    }

    whyStill(panel) {
        if (panel.factors.length) return 'The prompt is too long for scores in this file: the map is the one that was drawn.';
        return 'A stored map: only factors of q and k in this layer can be moved without an engine.';
    }

    isAsDrawn(panel) {
        return this.factors.every((factor, i) => factor.eps === panel.factors[i].eps || factor.axis === 'none');
    }

    // The map under the factors as they stand.
    after(panel) {
        if (panel.edits === '') return null;
        if (this.isAsDrawn(panel)) return this.maps.drawn(panel);
        return this.maps.compute(panel.prompt, this.factors, 'after');
    }

    editsText(panel) {
        if (panel.edits === '') return 'unmodified';
        if (this.isAsDrawn(panel) && this.factors.every((factor, i) => factor.eps === panel.factors[i].eps)) return panel.edits;
        const own = this.factors.map(({ target, eps }) => `${target}=scale:${eps}`);
        const others = panel.edits.split(' + ').filter((edit) => !panel.factors.some(({ target }) => edit.trim().startsWith(`${target}=`)));
        return [...others, ...own].join(' + ');
    }

    update() {
        const panel = this.data.panels[this.chosen], prompt = this.data.prompts[panel.prompt];
        const before = this.maps.before(panel), after = this.after(panel);
        this.edits.textContent = this.editsText(panel);
        if (this.table) {
            this.table.setData({ rowNames: this.data.row_names, keys: prompt.tokens, before: before.values, after: after?.values ?? null });
            return;
        }
        const sinks = { before: this.maps.share(before), after: after && this.maps.share(after) };
        this.view.setData({
            queries: prompt.tokens, keys: prompt.tokens, n: prompt.tokens.length, rows: before.rows, cols: before.cols,
            step: before.step, causal: this.data.causal && this.data.site === 'pattern', window: this.data.site === 'pattern' ? before.window : 0,
            before: before.values, after: after?.values ?? null, sink: sinks.before ? sinks : null, same: after === before,
        });
    }

    showNumbers(panel) {
        const pairs = panel.report ? panel.report.numbers : [];
        this.numbers.hidden = !pairs.length;
        this.numbers.replaceChildren(el('div', { class: 'hint' }, 'as drawn:'), ...pairs.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, numberText(value, 3)))));
    }

    forgetTheme() {
        (this.view || this.table).forgetTheme();
    }
}
