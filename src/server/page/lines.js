// Lines from token to token: queries at the left, the keys they look at on the right, stronger where the weight is.
//
//     const lines = new TokenLines();
//     lines.setData({ values, rows, cols, step, r0, c0, n, queries, keys, signed });   // as AttentionMap's
//     lines.setZoom([..]); lines.setWidth(300); lines.height = 320; lines.paint();
//
// A pointed-at or pinned token's lines stand out, the others fade. Signed values (a difference) are drawn solid
// where a weight grew and dashed where it fell. At most `most` are drawn, the strongest: `drawn` of `possible`, those
// that are strong enough to be seen.
import { axisLabel, clampNumber, el, isolated } from './text.js';
import { cellOf, firstToken, sizeCanvas, themeColors } from './map.js';

const WEAKEST = 0.004; // of the strongest: below that a line is not seen
const SHADES = 24;
const LEVELS = 1024; // of magnitudes that are told apart when the strongest are chosen

export class TokenLines {
    constructor() {
        this.canvas = el('canvas', { 'aria-hidden': 'true' });
        this.element = el('div', { class: 'lines' }, this.canvas);
        this.data = null;
        this.zoom = [0, 1, 0, 1];
        this.hover = { query: -1, key: -1 };
        this.pins = { queries: [], keys: [] };
        this.most = 1500;
        this.drawn = this.possible = 0;
        this.width = 0;
        this.height = 0;
        this.onhover = this.onpick = () => {};
        this.canvas.addEventListener('pointermove', (event) => this.onhover(this.place(event)));
        this.canvas.addEventListener('pointerleave', () => this.onhover({ query: -1, key: -1 }));
        this.canvas.addEventListener('click', (event) => {
            const at = this.place(event);
            if (at.query >= 0 || at.key >= 0) this.onpick({ ...at, add: event.shiftKey });
        });
    }

    setData(data) {
        this.data = data;
    }

    setZoom(zoom) {
        this.zoom = zoom;
    }

    setWidth(width) {
        this.width = width;
    }

    forgetTheme() {
        this.theme = null;
    }

    // The token under the pointer: a query in the left half, a key in the right.
    place(event) {
        const box = this.canvas.getBoundingClientRect();
        const side = event.clientX - box.left < box.width / 2;
        const [from, to] = side ? this.zoom.slice(0, 2) : this.zoom.slice(2);
        const token = from + Math.floor(((event.clientY - box.top) / box.height) * (to - from));
        return side ? { query: token, key: -1 } : { query: -1, key: token };
    }

    // Which tokens' lines stand out; null: all alike.
    focus() {
        const queries = new Set(this.pins.queries),
            keys = new Set(this.pins.keys);
        if (this.hover.query >= 0) queries.add(this.hover.query);
        else if (this.hover.key >= 0) keys.add(this.hover.key);
        return queries.size || keys.size ? { queries, keys } : null;
    }

    // The strongest cells in view, weakest first: [query, key, value, shade].
    strongest() {
        const { values, rows, cols, step, r0, c0 } = this.data,
            focus = this.focus();
        const found = [];
        const rowFrom = Math.max(0, cellOf(this.zoom[0], r0, step));
        const rowTo = Math.min(rows, Math.ceil((this.zoom[1] - r0) / step));
        const colFrom = Math.max(0, cellOf(this.zoom[2], c0, step));
        const colTo = Math.min(cols, Math.ceil((this.zoom[3] - c0) / step));
        const shown = { rowFrom, rowTo, colFrom, colTo };
        const { most, least } = this.limits(shown);
        this.drawn = 0;
        if (most === 0) return found;
        for (let row = rowFrom; row < rowTo; row++) {
            const query = firstToken(row, r0, step);
            for (let col = colFrom; col < colTo; col++) {
                const value = values[row * cols + col],
                    part = Math.abs(value) / most;
                if (part < least) continue;
                const key = firstToken(col, c0, step);
                const bright = !focus || (focus.queries.size ? focus.queries.has(query) : focus.keys.has(key));
                const shade = Math.ceil(part * SHADES) / SHADES;
                found.push([query, key, value, bright ? shade : shade * 0.06]);
            }
        }
        this.drawn = found.length;
        return found;
    }

    // The largest magnitude, and from which part of it on there are no more lines than wanted.
    limits({ rowFrom, rowTo, colFrom, colTo }) {
        const { values, cols } = this.data,
            counts = new Uint32Array(LEVELS + 1);
        let most = 0;
        for (let row = rowFrom; row < rowTo; row++) {
            for (let at = row * cols + colFrom, end = row * cols + colTo; at < end; at++) {
                const size = values[at] < 0 ? -values[at] : values[at];
                if (size > most) most = size;
            }
        }
        this.possible = 0;
        for (let row = rowFrom; row < rowTo && most > 0; row++) {
            for (let at = row * cols + colFrom, end = row * cols + colTo; at < end; at++) {
                const part = (values[at] < 0 ? -values[at] : values[at]) / most;
                counts[Math.floor(part * LEVELS)]++;
                if (part >= WEAKEST) this.possible++;
            }
        }
        let level = LEVELS,
            lines = counts[LEVELS];
        while (level > 0 && lines + counts[level - 1] <= this.most) lines += counts[--level];
        return { most, least: Math.max(WEAKEST, level / LEVELS) };
    }

    paint() {
        if (!this.data || this.width < 60 || this.height < 40) return;
        const theme = (this.theme ||= themeColors(this.element));
        const context = sizeCanvas(this.canvas, this.width, this.height);
        const size = Math.min(Math.max(theme.size * 0.76, 9), 15);
        context.font = `${size}px ${theme.font}`;
        const gutter = this.gutter(context);
        // While a slider moves the tokens stay, and only what is between them is painted.
        const key = JSON.stringify([this.zoom, this.pins, this.hover, this.width, this.height, theme, gutter]);
        const kept = this.tokensKey === key && this.tokensOf === this.data.queries;
        if (kept) context.clearRect(gutter + 2, 0, this.width - 2 * gutter - 4, this.height);
        else context.clearRect(0, 0, this.width, this.height);
        this.drawLines(context, theme, gutter);
        if (kept) return;
        this.drawTokens(context, theme, gutter, size);
        this.tokensKey = key;
        this.tokensOf = this.data.queries;
    }

    // As wide as the widest token, but not so wide that no room is left for the lines.
    gutter(context) {
        if (this.measured !== this.data.queries || this.measuredFont !== context.font) {
            const widths = this.data.queries
                .slice(0, 400)
                .map((text) => context.measureText(isolated(axisLabel(text))).width);
            this.widest = Math.max(20, ...widths);
            this.measured = this.data.queries;
            this.measuredFont = context.font;
        }
        return Math.min(this.width * 0.3, this.widest + 4);
    }

    drawLines(context, theme, gutter) {
        const rows = this.zoom[1] - this.zoom[0],
            cols = this.zoom[3] - this.zoom[2];
        const half = this.data.step / 2;
        const left = gutter + 4,
            right = this.width - gutter - 4;
        // One path for each shade: thousands of lines in a few strokes.
        const paths = new Map();
        for (const [query, key, value, shade] of this.strongest()) {
            const fell = this.data.signed && value < 0,
                name = fell ? -shade : shade;
            let path = paths.get(name);
            if (!path) paths.set(name, (path = new Path2D()));
            path.moveTo(left, ((query - this.zoom[0] + half) / rows) * this.height);
            path.lineTo(right, ((key - this.zoom[2] + half) / cols) * this.height);
        }
        const names = [...paths.keys()].sort((a, b) => Math.abs(a) - Math.abs(b));
        for (const name of names) {
            const shade = Math.abs(name),
                fell = name < 0;
            context.globalAlpha = Math.min(1, shade);
            context.lineWidth = 0.6 + 2.2 * shade;
            context.strokeStyle = this.data.signed ? (fell ? theme.down : theme.up) : theme.accent;
            context.setLineDash(fell ? [5, 4] : []);
            context.stroke(paths.get(name));
        }
        context.setLineDash([]);
        context.globalAlpha = 1;
    }

    drawTokens(context, theme, gutter, size) {
        const column = (texts, from, to, x, align, chosen, pointed) => {
            const cell = this.height / (to - from),
                every = Math.max(1, Math.ceil((size * 1.05) / cell));
            context.textAlign = align;
            context.textBaseline = 'middle';
            // Those that stand out come first; what would be printed over one that is there already is left out.
            const places = [];
            const draw = (token, strong) => {
                const y = clampNumber((token - from + 0.5) * cell, size * 0.6, this.height - size * 0.6);
                if (token < from || token >= to || places.some((place) => Math.abs(place - y) < size)) return;
                places.push(y);
                context.fillStyle = strong ? theme.mark : theme.ink;
                context.font = `${strong ? '600 ' : ''}${size}px ${theme.font}`;
                context.fillText(isolated(axisLabel(texts[token] ?? '')), x, y, gutter - 2);
            };
            for (const token of [pointed, ...chosen]) draw(token, true);
            for (let token = from; token < to; token += every) draw(token, false);
        };
        context.direction = 'ltr';
        column(this.data.queries, this.zoom[0], this.zoom[1], gutter, 'right', this.pins.queries, this.hover.query);
        column(
            this.data.keys,
            this.zoom[2],
            this.zoom[3],
            this.width - gutter,
            'left',
            this.pins.keys,
            this.hover.key,
        );
    }
}
