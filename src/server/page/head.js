// The head view: one head's attention before and after an edit, the difference, and the lines from token to token,
// linked. The live page and the offline figure use it alike.
//
//     const view = new HeadView(element, { palette });            // Palette of colors.js
//     view.options = { skipKeys: 1, renormalise: true, scale: 'log', colormap: 'viridis' };   // those named change
//     view.setData({ queries, keys, n, causal, window, before, after, sink });
//     view.onpin = ({ queries, keys }) => ...;   view.onhover = ({ query, key }) => ...;
//     view.onoptions = (options) => ...;         view.onzoom = (zoom) => ...;
//
// Data, as setData takes it; it is cheap, is called at every move of a slider, and paints before it returns:
//     queries, keys  the tokens' texts, n of each; keep the same arrays while the prompt stays (labels are kept then)
//     before, after  Float32Array, rows x cols, row-major; after: null without an edit
//     rows, cols     cells of the arrays (default n); step: tokens per cell (default 1), by the largest value
//     r0, c0         the first token that the arrays cover (default 0): a part of a long map
//     causal, window the mask, as in a figure's panel
//     sink           { before, after }: the learned sink's share per query, or null
//
// Options (all have defaults; view.options reads them):
//     show           { before, after, diff, lines }: which panels
//     scale          'auto' | 'linear' | 'log' | 'power'; auto: as the figures, log beyond 40 tokens. A difference has
//                    values on both sides of 0 and is never on a log scale: where log is chosen it has its own (auto)
//     low, high      range of the colours, null: 0 and 1 (both null: to the largest weight where keys are hidden)
//     colormap       of weights; a difference is always coolwarm
//     skipKeys       hides the first keys; renormalise: the rest of each row sums to 1
//     maskedZero     masked cells look like weight 0
//     lines          'after' | 'before' | 'diff': what the lines show
//     pins           { queries: [..], keys: [..] };  zoom: [r0, r1, c0, c1] or null for all
import { ColorScale, drawColorBar, endsOf, logFloor, weightScale, CHOSEN_GAMMA, LINEAR_TOKENS, POWER_GAMMA } from './colors.js';
import { clampNumber, countText, el, fillSelect, numberText } from './text.js';
import { AttentionMap, cellOf } from './map.js';
import { TokenLines } from './lines.js';
import { HeadNumbers } from './head_numbers.js';
import { defaultHeadOptions } from './head_options.js';
import { HeadTools } from './head_tools.js';

const PANELS = ['before', 'after', 'diff', 'lines'];
const FEW_LINES = 32; // tokens: up to here all lines follow the slider
const ALL_LINES = 1500,
    MOVING_LINES = 200,
    LINES_REST = 150, // milliseconds
    SETTLE_REST = 100;
const PANEL_GAP = 14;
const WIDEST_PANEL = 1.4; // times its height
export const NARROW = 440; // pixels: a phone, whose page is scrolled anyway; with more room panels are seen together

export class HeadView {
    // names: what the two maps are called; after null: there will never be a second one.
    constructor(element, { palette, names = { before: 'Before', after: 'After' }, maxHeight = () => window.innerHeight * 0.8 }) {
        this.element = element;
        this.names = names;
        this.palette = palette;
        this.maxHeight = maxHeight;
        this.data = null;
        this.hover = { query: -1, key: -1 };
        this.settings = defaultHeadOptions();
        this.onpin = this.onhover = this.onoptions = this.onzoom = () => {};
        this.build();
        new ResizeObserver(() => this.resized()).observe(this.panels);
    }

    // In running text: 'before'.
    nameOf(map) {
        return (this.names[map] ?? 'after').toLowerCase();
    }

    possiblePanels() {
        return this.names.after === null ? ['before', 'lines'] : PANELS;
    }

    // ---- elements ----

    build() {
        const { names } = this, [first, second] = [this.nameOf('before'), this.nameOf('after')];
        const titles = { before: names.before, after: names.after ?? '', diff: 'Difference', lines: 'Lines' };
        this.maps = {
            before: new AttentionMap({ title: names.before }),
            after: new AttentionMap({ title: names.after ?? '' }),
            diff: new AttentionMap({ title: `Difference, ${second} minus ${first}`, signed: true }),
        };
        this.lines = new TokenLines();
        this.figures = {};
        for (const name of PANELS) this.figures[name] = this.buildPanel(name, titles[name]);
        this.numbers = new HeadNumbers(this);
        this.tools = new HeadTools(this, this.possiblePanels().map((name) => [name, titles[name]]));
        this.spoken = el('p', { class: 'unseen', role: 'status', 'aria-live': 'polite' });
        this.panels = el('div', { class: 'panels', hidden: true }, ...PANELS.map((name) => this.figures[name].element));
        this.element.classList.add('head-view');
        const { lines, profile } = this.numbers;
        this.element.append(this.tools.element, lines, this.panels, profile.element, this.spoken);
        this.element.addEventListener('keydown', (event) => event.key === 'Escape' && this.unpin());
    }

    buildPanel(name, title) {
        const bar = el('canvas', { class: 'bar', 'aria-hidden': 'true' });
        const low = el('span', { class: 'bar-end' }),
            high = el('span', { class: 'bar-end' });
        const note = el('span', { class: 'panel-note' });
        const body = name === 'lines' ? this.lines.element : this.maps[name].element;
        const legend = name === 'lines' ? this.buildLineChoice() : el('span', { class: 'legend' }, low, bar, high);
        const part = name === 'lines' ? this.lines : this.maps[name];
        part.onhover = (place) => this.setHover(place);
        part.onpick = (place) => this.pick(place);
        if (name !== 'lines') {
            part.onzoom = (zoom) => this.setZoom(zoom);
            part.onescape = () => this.unpin();
            part.ondouble = (pins) => this.leaveZoom(pins);
        }
        const caption = el('figcaption', {}, el('span', { class: 'panel-title' }, title), note, legend);
        return {
            element: el('figure', { class: `panel panel-${name}` }, caption, body),
            caption,
            bar,
            low,
            high,
            note,
        };
    }

    buildLineChoice() {
        this.lineChoice = el('select', {
            class: 'small',
            'aria-label': 'What the lines show',
            onchange: () => this.change({ lines: this.lineChoice.value }),
        });
        fillSelect(this.lineChoice, [
            ['after', this.nameOf('after')],
            ['before', this.nameOf('before')],
            ['diff', 'difference'],
        ]);
        this.lineChoice.hidden = this.names.after === null;
        return this.lineChoice;
    }

    // ---- options ----

    get options() {
        return structuredClone(this.settings);
    }

    set options(options) {
        Object.assign(this.settings, structuredClone(options));
        this.refresh();
    }

    // A change by hand: told to the page.
    change(options) {
        this.options = options;
        this.onoptions(this.options);
    }

    // ---- data ----

    // null: there is nothing to show.
    setData(data) {
        this.panels.hidden = !data;
        if (!data) return this.forgetData();
        const n = data.n;
        this.data = { rows: n, cols: n, step: 1, r0: 0, c0: 0, window: 0, sink: null, ...data };
        if (this.labelled !== data.queries) {
            this.labelled = data.queries;
            this.dropStrayPins();
            this.refresh();
        } else this.repaint();
    }

    forgetData() {
        this.data = this.values = this.labelled = null;
        this.hover = { query: -1, key: -1 };
        clearTimeout(this.settleTimer);
        clearTimeout(this.linesTimer);
        this.numbers.showReadout();
        this.numbers.showPinned();
    }

    // The same maps with other last digits: numbers change at once, and what is painted when the slider rests.
    settle(data) {
        if (!this.values?.after || this.labelled !== data.queries) return this.setData(data);
        this.data = { ...this.data, ...data };
        this.takeValues();
        this.numbers.showReadout();
        this.numbers.showPinned();
        this.settleTimer = setTimeout(() => this.repaint(), SETTLE_REST);
    }

    dropStrayPins() {
        const inside = (list) => list.filter((token) => token < this.data.n);
        const { pins, zoom } = this.settings;
        this.settings.pins = { queries: inside(pins.queries), keys: inside(pins.keys) };
        if (zoom && (zoom[1] > this.data.n || zoom[3] > this.data.n)) this.settings.zoom = null;
        this.hover = { query: -1, key: -1 };
    }

    isWhole() {
        const { data } = this;
        return !data || (data.step === 1 && data.rows === data.n && data.cols === data.n);
    }

    // The arrays with the first keys hidden and the rows made to sum to 1 again, where that is asked for.
    shownValues(values, name) {
        const skip = this.settings.skipKeys;
        if (!values || !skip || !this.settings.renormalise || !this.isWhole()) return values;
        const { rows, cols } = this.data;
        const out = this.reuse(name, values.length);
        for (let row = 0; row < rows; row++) {
            let sum = 0;
            for (let col = skip; col < cols; col++) sum += values[row * cols + col];
            for (let col = 0; col < cols; col++) {
                out[row * cols + col] = col < skip || sum <= 0 ? 0 : values[row * cols + col] / sum;
            }
        }
        return out;
    }

    // Buffers live as long as their size fits: no garbage while a slider moves.
    reuse(name, length) {
        this.buffers ||= {};
        if (!this.buffers[name] || this.buffers[name].length !== length)
            this.buffers[name] = new Float32Array(length);
        return this.buffers[name];
    }

    difference(before, after) {
        const out = this.reuse('diff', before.length);
        for (let i = 0; i < out.length; i++) out[i] = after[i] - before[i];
        return out;
    }

    // ---- scales ----

    // Of the difference.
    chosenScale() {
        const { scale } = this.settings;
        return scale === 'log' ? 'auto' : scale;
    }

    changeKind() {
        const scale = this.chosenScale();
        if (scale !== 'auto') return scale;
        return this.data.n <= LINEAR_TOKENS ? 'linear' : 'power';
    }

    makeScales(before, after, diff) {
        const { high, skipKeys, renormalise, colormap } = this.settings;
        // As --skip-keys: with the sink hidden, colours end at the largest weight that is left.
        const left = skipKeys && !renormalise ? Math.max(this.largest(before), this.largest(after)) : null;
        this.weights = weightScale(this.palette.table(colormap), this.settings, this.data.n, left);
        // A change of weights is seldom near 1: colours end at the largest, as in the figures. While a slider is
        // held they end no lower than they did, so they do not flicker.
        const most = this.largest(diff),
            reach = most || 1;
        this.same = Boolean(diff) && most === 0;
        if (!this.held || reach > this.diffReach || this.diffLabels !== this.labelled) this.diffReach = reach;
        this.diffLabels = this.labelled;
        const diffEnd = high ?? this.diffReach;
        this.changes = new ColorScale(this.palette.table('coolwarm'), {
            kind: this.changeKind(),
            high: diffEnd,
            diverging: true,
            floor: logFloor(0, diffEnd, this.data.n),
            gamma: this.chosenScale() === 'auto' ? CHOSEN_GAMMA : POWER_GAMMA,
        });
    }

    // While a slider is held, the colours of the difference keep their range.
    hold(on) {
        this.held = on;
        if (!on && this.data) this.repaint();
    }

    largest(values) {
        if (!values) return 0;
        const { cols, c0, step } = this.data,
            first = Math.max(0, Math.ceil((this.settings.skipKeys - c0) / step));
        let most = 0;
        for (let i = 0, col = 0; i < values.length; i++) {
            const size = values[i] < 0 ? -values[i] : values[i];
            if (size > most && col >= first) most = size;
            if (++col === cols) col = 0;
        }
        return most;
    }

    // ---- painting ----

    zoomShown() {
        const n = this.data.n,
            skip = Math.min(this.settings.skipKeys, n - 1);
        const [r0, r1, c0, c1] = this.settings.zoom || [0, n, 0, n];
        return [r0, r1, Math.min(Math.max(c0, skip), n - 1), Math.max(c1, skip + 1)];
    }

    // Everything: after a change of options, prompt, size or theme.
    refresh() {
        this.tools.show(this.settings, this.isWhole());
        this.lineChoice.value = this.settings.lines;
        if (!this.data) return;
        const edited = Boolean(this.data.after);
        for (const name of PANELS) {
            const needs = name === 'after' || name === 'diff';
            this.figures[name].element.hidden = !this.settings.show[name] || (needs && !edited);
        }
        this.resized();
    }

    resized() {
        if (!this.data) return;
        const shown = PANELS.filter((name) => !this.figures[name].element.hidden).length;
        const room = this.panels.clientWidth;
        if (room < 40 || !shown) return this.repaint();
        this.arrange(shown, room);
        this.repaint();
    }

    // As many panels side by side as makes them largest.
    arrange(shown, room) {
        // Notes stand below the titles wherever there may be some, so that they come and go without moving the maps.
        const noted = this.data.n > LINEAR_TOKENS || this.settings.scale !== 'auto';
        this.panels.classList.toggle('noted', noted);
        const caption = this.figures.before.caption.offsetHeight + 4,
            tall = Math.max(this.maxHeight(), 260);
        let best = { side: 0, columns: 1 };
        for (let columns = 1; columns <= shown; columns++) {
            const lines = Math.ceil(shown / columns);
            const high = room < NARROW ? tall - caption : (tall - lines * caption) / lines;
            const side = Math.min((room - PANEL_GAP * (columns - 1)) / columns, high);
            if (side > best.side + 1) best = { side, columns };
        }
        const side = Math.floor(Math.max(best.side, 160));
        // Where the height is what ends them, cells may be wider than high: room at the side is not left empty.
        const share = Math.floor((room - PANEL_GAP * (best.columns - 1)) / best.columns);
        const width = clampNumber(share, side, Math.floor(side * WIDEST_PANEL));
        this.panels.style.gridTemplateColumns = `repeat(${best.columns}, ${width}px)`;
        for (const map of Object.values(this.maps)) map.setWidth(width, side);
        this.lines.setWidth(width);
        this.side = side;
    }

    takeValues() {
        const before = this.shownValues(this.data.before, 'before'),
            after = this.shownValues(this.data.after, 'after');
        const diff = after ? this.difference(before, after) : null;
        return (this.values = { before, after, diff });
    }

    repaint() {
        const { data } = this;
        if (!data || !this.side) return;
        if (Boolean(data.after) !== this.wasEdited) {
            this.wasEdited = Boolean(data.after);
            return this.refresh();
        }
        clearTimeout(this.settleTimer);
        const { before, after, diff } = this.takeValues();
        this.makeScales(before, after, diff);
        const zoom = this.zoomShown();
        for (const [name, map] of Object.entries(this.maps)) {
            if (this.figures[name].element.hidden || !this.values[name]) continue;
            map.maskedLikeZero = this.settings.maskedZero;
            map.setData({ ...data, values: this.values[name], sink: this.sinkOf(name) });
            map.setZoom(zoom);
            map.setScale(name === 'diff' ? this.changes : this.weights);
            map.pins = this.settings.pins;
            map.hover = this.hover;
            map.paint(name === 'before' && before === data.before);
        }
        this.paintLinesSoon();
        this.showLegends();
        this.numbers.showReadout();
        this.numbers.showPinned();
    }

    // Thousands of lines take longer than the maps: while the slider moves only the strongest are painted, and all when it
    // rests.
    paintLinesSoon() {
        const few = this.data.n <= FEW_LINES;
        this.lines.most = few ? ALL_LINES : MOVING_LINES;
        this.paintLines(this.zoomShown());
        clearTimeout(this.linesTimer);
        if (few) return this.noteLines();
        this.linesTimer = setTimeout(() => {
            this.lines.most = ALL_LINES;
            this.paintLines(this.zoomShown());
            this.noteLines();
        }, LINES_REST);
    }

    // Of many lines the strongest are drawn, and the panel says how many.
    noteLines() {
        if (this.figures.lines.element.hidden) return;
        const { drawn, possible } = this.lines;
        this.setNote('lines', drawn < possible ? `the strongest ${countText(drawn)} of ${countText(possible)}` : '');
    }

    paintLines(zoom) {
        if (this.figures.lines.element.hidden) return;
        const name = this.values[this.settings.lines] ? this.settings.lines : 'before';
        this.lines.setData({ ...this.data, values: this.values[name], signed: name === 'diff' });
        this.lines.setZoom(zoom);
        const beside = ['before', 'after', 'diff'].find((map) => !this.figures[map].element.hidden);
        this.lines.height = this.maps[beside]?.height || this.side;
        this.lines.pins = this.settings.pins;
        this.lines.hover = this.hover;
        this.lines.paint();
    }

    sinkOf(name) {
        const { sink } = this.data;
        if (!sink || !sink.before) return null;
        if (name === 'before' || !sink.after) return name === 'diff' ? null : sink.before;
        return name === 'after' ? sink.after : this.difference2(sink.before, sink.after);
    }

    difference2(before, after) {
        const out = this.reuse('sink', before.length);
        for (let i = 0; i < out.length; i++) out[i] = after[i] - before[i];
        return out;
    }

    showLegends() {
        for (const name of ['before', 'after', 'diff']) {
            const figure = this.figures[name],
                scale = name === 'diff' ? this.changes : this.weights;
            const key = `${scale.table.name} ${scale.kind} ${scale.low} ${scale.high}`;
            if (figure.drawn !== key) {
                figure.drawn = key;
                if (figure.bared !== scale.table.name) drawColorBar(figure.bar, scale);
                figure.bared = scale.table.name;
                const [low, high] = endsOf(scale);
                figure.low.textContent = numberText(low, 2);
                figure.high.textContent = numberText(high, 2) + (scale.kind === 'linear' ? '' : ` ${scale.kind}`);
            }
        }
        const block = Math.ceil(this.data.step);
        const pooled = block > 1 ? `largest of ${block} × ${block}` : '';
        this.setNote('before', pooled);
        this.setNote('after', this.same ? 'bit for bit as before' : pooled);
        this.setNote('diff', pooled);
    }

    setNote(name, text) {
        const { note } = this.figures[name];
        if (note.textContent === text) return;
        note.textContent = note.title = text;
    }

    // After a change of light and dark.
    forgetTheme() {
        for (const part of [...Object.values(this.maps), this.lines]) part.forgetTheme();
        this.repaint();
    }

    // ---- pointing and pinning ----

    setHover(place) {
        if (place.query === this.hover.query && place.key === this.hover.key) return;
        this.hover = { query: place.query, key: place.key };
        for (const [name, map] of Object.entries(this.maps)) {
            map.hover = this.hover;
            if (!this.figures[name].element.hidden) map.paintOver();
        }
        this.paintLines(this.zoomShown());
        this.numbers.showReadout();
        if (place.spoken) this.spoken.textContent = this.numbers.readout.title;
        this.onhover(this.hover);
    }

    // Clicking pins what is under the pointer, and only that; with Shift it is added to what is pinned.
    pick({ query, key, add }) {
        const old = this.settings.pins;
        if (add) return this.setPins(addedPins(old, query, key));
        const pins = { queries: query >= 0 ? [query] : [], keys: key >= 0 ? [key] : [] };
        this.setPins(JSON.stringify(pins) === JSON.stringify(old) ? { queries: [], keys: [] } : pins);
    }

    // A double click is two clicks first, which pin and unpin: pins are again what they were before it.
    leaveZoom(pins) {
        if (pins && JSON.stringify(pins) !== JSON.stringify(this.settings.pins)) this.setPins(pins);
        this.setZoom(null);
    }

    setPins(pins) {
        this.settings.pins = pins;
        this.repaint();
        this.onpin(pins);
        this.spoken.textContent = this.numbers.pinned.hidden ? 'Nothing pinned.' : this.numbers.pinned.title;
    }

    unpin() {
        const { pins } = this.settings;
        if (pins.queries.length || pins.keys.length) this.setPins({ queries: [], keys: [] });
    }

    setZoom(zoom) {
        const n = this.data.n;
        if (zoom) {
            const fit = (from, to) => {
                const size = clampNumber(to - from, Math.min(4, n), n),
                    start = clampNumber(from, 0, n - size);
                return [start, start + size];
            };
            zoom = [...fit(zoom[0], zoom[1]), ...fit(zoom[2], zoom[3])];
            if (zoom[1] - zoom[0] === n && zoom[3] - zoom[2] === n) zoom = null;
        }
        this.settings.zoom = zoom;
        this.repaint();
        this.onzoom(zoom);
        this.onoptions(this.options);
    }

    // ---- numbers ----

    // The weight of a cell, as it is shown; undefined where the arrays do not reach.
    weight(name, query, key) {
        const { r0, c0, step, rows, cols } = this.data;
        const row = cellOf(query, r0, step),
            col = cellOf(key, c0, step);
        const values = this.values?.[name];
        return values && row >= 0 && row < rows && col >= 0 && col < cols ? values[row * cols + col] : undefined;
    }
}

// With another cell, row or column in the sum. What is wholly in it already is taken out: of a sum over several queries
// and one key the query alone, so that the others keep their key.
function addedPins({ queries, keys }, query, key) {
    const has = (list, token) => token < 0 || list.includes(token);
    const all = has(queries, query) && has(keys, key);
    const changed = (list, token, other, otherToken) => {
        if (token < 0) return list;
        if (!all) return [...new Set([...list, token])].sort((a, b) => a - b);
        const shared = list.length === 1 && otherToken >= 0 && other.length > 1;
        return shared ? list : list.filter((one) => one !== token);
    };
    return { queries: changed(queries, query, keys, key), keys: changed(keys, key, queries, query) };
}
