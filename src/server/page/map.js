// One attention map on a canvas: queries down, keys across, tokens on both axes.
//
// Cells are painted as pixels of a small image that is then enlarged, so a map of 4,096 tokens has no more
// nodes than one of ten. Where there are more cells than pixels, a pixel shows the value of largest magnitude.
// Labels, and cells with their numbers, are on one canvas; what follows the pointer is on a second above it.
//
//     const map = new AttentionMap({ title: 'Before' });
//     host.append(map.element);
//     map.setWidth(320);
//     map.setData({ values, rows, cols, step, r0, c0, n, queries, keys, causal, window, sink });
//     map.setScale(scale); map.setZoom([0, n, 0, n]);
//     map.paint();
//
// values: rows x cols cells, row-major, each of step x step tokens (not always a whole number: token t lies in cell
// floor(t / step), as reduce.c has it), beginning at token r0, c0. texts: what stands in the cells in place of their
// numbers, a list as long as values, or none. The pointer and
// the keys are reported to the map's owner: onhover({query, key}), onpick({query, key, add}), onzoom([..]),
// onescape(), ondouble(pins), the pins before a double click. query or key is -1 where a label of the other axis is meant.
import { axisLabel, cellText, clampNumber, el, isolated } from './text.js';
import { MapInput } from './map_input.js';

const LABEL_ROOM = 0.24; // of the width, at most
const NUMBER_CELL = 21; // the smallest cell, in pixels, that has room for a number
const NUMBER_CELLS = 1600; // more numbers than that are not drawn
const LEAST_TEXT = 8; // pixels: smaller texts in cells are not drawn
const TEXT_SHARE = 0.92; // of a cell's width
const TAG_ROOM = 9; // pixels that a tag has before and after its text, and to the plot

// The colours of the page where the element stands, for drawing on a canvas.
export function themeColors(element) {
    const style = getComputedStyle(element);
    const read = (name) => style.getPropertyValue(name).trim();
    return {
        ink: read('--ink'),
        soft: read('--ink-soft'),
        line: read('--line'),
        paper: read('--paper'),
        accent: read('--accent'),
        onAccent: read('--on-accent'),
        mark: read('--mark'),
        up: read('--up'),
        down: read('--down'),
        before: read('--before'),
        font: style.fontFamily,
        size: parseFloat(style.fontSize) || 14,
    };
}

// The cell that a token lies in, the first being that of token `from`.
export function cellOf(token, from, step) {
    return Math.floor((token - from) / step + 1e-9);
}

// The first token of a cell.
export function firstToken(cell, from, step) {
    return from + Math.ceil(cell * step - 1e-9);
}

// A canvas whose pixels are those of the screen.
export function sizeCanvas(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const w = Math.max(1, Math.round(width * ratio)),
        h = Math.max(1, Math.round(height * ratio));
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
}

export class AttentionMap {
    constructor({ title, signed = false }) {
        this.signed = signed;
        this.data = null;
        this.scale = null;
        this.zoom = [0, 1, 0, 1];
        this.hover = { query: -1, key: -1 };
        this.pins = { queries: [], keys: [] };
        this.maskedLikeZero = false;
        this.mostHeight = Infinity; // of the cells together: less where rows are not as many as columns
        this.width = 0;
        this.mostTall = Infinity;
        this.tile = document.createElement('canvas');
        this.base = el('canvas', { class: 'map-base', 'aria-hidden': 'true' });
        this.over = el('canvas', { class: 'map-over', 'aria-hidden': 'true' });
        this.element = el(
            'div',
            {
                class: 'map',
                tabindex: '0',
                role: 'application',
                'aria-roledescription': 'attention map',
                'aria-label':
                    `${title}: queries down, keys across. Arrow keys move, Enter pins the cell, R its row, ` +
                    'C its column, Escape unpins, plus and minus zoom.',
            },
            this.base,
            this.over,
        );
        this.onhover = this.onpick = this.onzoom = this.onescape = this.ondouble = () => {};
        this.input = new MapInput(this);
    }

    // ---- what is shown ----

    setData(data) {
        const labelsChanged =
            !this.data || !data || this.data.queries !== data.queries || this.data.keys !== data.keys;
        this.data = data;
        if (labelsChanged) this.layoutDone = false;
    }

    setScale(scale) {
        this.scale = scale;
    }

    setZoom(zoom) {
        if (zoom.every((value, i) => value === this.zoom[i])) return;
        this.zoom = zoom;
        this.layoutDone = false;
    }

    // height: of the whole with its labels, at most; cells are square where there is room.
    setWidth(width, height = Infinity) {
        if (width === this.width && height === this.mostTall) return;
        this.width = width;
        this.mostTall = height;
        this.layoutDone = false;
    }

    // After a change of light and dark.
    forgetTheme() {
        this.layoutDone = false;
    }

    // ---- layout ----

    get rows() {
        return this.zoom[1] - this.zoom[0];
    }

    get cols() {
        return this.zoom[3] - this.zoom[2];
    }

    labelsOf(texts, from, count, cell) {
        const every = Math.max(1, Math.ceil((this.fontSize * 1.02) / cell));
        const labels = [];
        for (let i = 0; i < count; i += every) labels.push([i, axisLabel(texts[from + i] ?? String(from + i))]);
        return labels;
    }

    // Pixels beside an axis: for the widest of its tokens, also of those that have no label of their own, as it is written
    // when it is pinned; `most` at most.
    labelRoom(texts, from, count, most) {
        const measure = this.base.getContext('2d'),
            labels = new Set();
        for (let i = from; i < from + count; i++) labels.add(axisLabel(texts[i] ?? String(i)));
        measure.font = this.tagFont(true);
        let widest = this.fontSize;
        for (const text of labels) {
            if (widest >= most) break;
            widest = Math.max(widest, measure.measureText(isolated(text)).width);
        }
        return Math.ceil(Math.min(most, widest) + TAG_ROOM);
    }

    tagFont(pinned) {
        return `${pinned ? '600 ' : ''}${this.fontSize}px ${this.theme.font}`;
    }

    layout() {
        const theme = (this.theme = themeColors(this.element));
        const ratio = window.devicePixelRatio || 1;
        this.fontSize = clampNumber(theme.size * 0.78, 9, 18);
        const room = this.width * LABEL_ROOM;
        const rough = (this.width - room) / Math.max(this.rows, this.cols, 1);
        const roughRow = Math.min(rough, Math.max(1, this.mostTall - room) / Math.max(this.rows, 1));
        this.rowLabels = this.labelsOf(this.data.queries, this.zoom[0], this.rows, roughRow);
        this.colLabels = this.labelsOf(this.data.keys, this.zoom[2], this.cols, rough);
        this.left = this.labelRoom(this.data.queries, this.zoom[0], this.rows, room);
        this.foot = this.labelRoom(this.data.keys, this.zoom[2], this.cols, room);
        // Cells of whole pixels where they are large enough for that to matter.
        this.sinkRoom = this.data.sink ? Math.round(Math.max(8, rough * 0.8)) + 4 : 0;
        const pixels = (this.width - this.left - 2 - this.sinkRoom) * ratio;
        const tall = Math.min(pixels, (this.mostTall - this.foot - 2) * ratio);
        const whole = (count, all) => (all / count >= 3 ? count * Math.floor(all / count) : Math.floor(all));
        this.plotWidth = whole(this.cols, pixels) / ratio;
        this.plotHeight = Math.min(whole(this.rows, tall) / ratio, this.mostHeight);
        this.plotLeft = this.left + this.sinkRoom;
        this.height = Math.ceil(this.plotHeight + this.foot + 2);
        this.context = sizeCanvas(this.base, this.width, this.height);
        this.overContext = sizeCanvas(this.over, this.width, this.height);
        this.overEmpty = false;
        this.element.style.height = `${this.height}px`;
        this.drawLabels();
        this.layoutDone = true;
    }

    drawLabels() {
        const { context, theme } = this;
        context.clearRect(0, 0, this.width, this.height);
        context.font = `${this.fontSize}px ${theme.font}`;
        context.fillStyle = theme.soft;
        context.textBaseline = 'middle';
        context.textAlign = 'right';
        context.direction = 'ltr';
        const cellHeight = this.plotHeight / this.rows,
            cellWidth = this.plotWidth / this.cols;
        this.rowLabels = this.apart(this.rowLabels, (i) => this.inside(1 + (i + 0.5) * cellHeight));
        this.colLabels = this.apart(this.colLabels, (i) => this.plotLeft + (i + 0.5) * cellWidth);
        for (const [, text, y] of this.rowLabels) context.fillText(isolated(text), this.left - 5, y, this.left - 6);
        for (const [, text, x] of this.colLabels) {
            context.save();
            context.translate(x, this.plotHeight + 6);
            context.rotate(-Math.PI / 2);
            context.fillText(isolated(text), 0, 0, this.foot - 6);
            context.restore();
        }
    }

    // Labels with their places, those left out that would come nearer than a letter's size to the one before.
    apart(labels, placeOfLabel) {
        let last = -Infinity;
        return labels
            .map(([i, text]) => [i, text, placeOfLabel(i)])
            .filter(([, , at]) => {
                if (at - last < this.fontSize) return false;
                last = at;
                return true;
            });
    }

    // A label of a small cell at the edge is moved inwards, so that it is not cut.
    inside(y) {
        return Math.max(y, this.fontSize * 0.6);
    }

    // ---- painting ----

    // Everything that is old is painted: cells always, labels where they changed.
    // unchanged: the values are those of the last time, as a baseline's are while a slider moves.
    paint(unchanged = false) {
        if (!this.data || !this.scale || this.width < 40) return;
        const { kind, low, high, floor, gamma, table } = this.scale;
        const look = [kind, low, high, floor, gamma, table.name, this.maskedLikeZero, ...this.zoom].join();
        const known = unchanged && this.layoutDone && this.paintedLook === look;
        if (known && this.painted === this.data.values) return this.paintOver();
        this.paintedLook = look;
        this.painted = this.data.values;
        if (!this.layoutDone) this.layout();
        const { context } = this;
        context.save();
        context.fillStyle = this.theme.paper;
        context.fillRect(this.plotLeft, 1, this.plotWidth, this.plotHeight);
        context.beginPath();
        context.rect(this.plotLeft, 1, this.plotWidth, this.plotHeight);
        context.clip();
        this.paintCells();
        this.paintNumbers();
        context.restore();
        if (this.data.sink) this.paintSink();
        context.strokeStyle = this.theme.line;
        context.lineWidth = 1;
        context.strokeRect(this.plotLeft - 0.5, 0.5, this.plotWidth + 1, this.plotHeight + 1);
        this.paintOver();
    }

    // The cells that the zoom shows: first and one past the last, of rows and columns.
    shownCells() {
        const { r0, c0, step, rows, cols } = this.data;
        const low = (token, from, most) => clampNumber(cellOf(token, from, step), 0, most);
        const high = (token, from, most) => clampNumber(Math.ceil((token - from) / step - 1e-9), 0, most);
        return [
            low(this.zoom[0], r0, rows),
            high(this.zoom[1], r0, rows),
            low(this.zoom[2], c0, cols),
            high(this.zoom[3], c0, cols),
        ];
    }

    isMasked(row, col) {
        const { r0, c0, step, causal, window: width } = this.data;
        const lastQuery = firstToken(row + 1, r0, step) - 1,
            firstKey = firstToken(col, c0, step);
        if (causal && firstKey > lastQuery) return true;
        if (!width) return false;
        const firstQuery = firstToken(row, r0, step),
            lastKey = firstToken(col + 1, c0, step) - 1;
        if (width < 0) return lastKey < firstQuery - (firstQuery % -width);
        return firstQuery - lastKey >= width || firstKey - lastQuery >= width;
    }

    paintCells() {
        const [top, bottom, left, right] = this.shownCells();
        const cellRows = bottom - top,
            cellCols = right - left;
        if (cellRows < 1 || cellCols < 1) return;
        const ratio = window.devicePixelRatio || 1;
        const height = Math.min(cellRows, Math.max(1, Math.round(this.plotHeight * ratio)));
        const width = Math.min(cellCols, Math.max(1, Math.round(this.plotWidth * ratio)));
        if (this.tile.width !== width || this.tile.height !== height || !this.image) {
            this.tile.width = width;
            this.tile.height = height;
            this.tileContext = this.tile.getContext('2d', { alpha: true });
            this.image = this.tileContext.createImageData(width, height);
            this.pixels = new Uint32Array(this.image.data.buffer);
        }
        if (width === cellCols && height === cellRows) this.fillPlain(top, bottom, left, right);
        else this.fillPooled(top, left, cellRows, cellCols, width, height);
        this.tileContext.putImageData(this.image, 0, 0);
        const { r0, c0, step } = this.data;
        const x = (token) => this.plotLeft + ((token - this.zoom[2]) / this.cols) * this.plotWidth;
        const y = (token) => 1 + ((token - this.zoom[0]) / this.rows) * this.plotHeight;
        this.context.imageSmoothingEnabled = false;
        const x0 = x(c0 + left * step),
            y0 = y(r0 + top * step);
        this.context.drawImage(this.tile, x0, y0, x(c0 + right * step) - x0, y(r0 + bottom * step) - y0);
    }

    fillPlain(top, bottom, left, right) {
        const { values, cols } = this.data,
            { pixels, scale } = this;
        const width = right - left,
            seen = this.maskedLikeZero ? null : this.seenCells(top, bottom, left, right);
        for (let row = top, at = 0; row < bottom; row++, at += width) {
            scale.paintRow(values, row * cols + left, width, pixels, at);
            const [first, end] = seen ? seen[row - top] : [left, right];
            for (let col = left; col < right; col++) {
                const value = values[row * cols + col];
                // -Infinity: a score that an edit has masked
                if ((value === 0 && (col < first || col >= end)) || value === -Infinity) pixels[at + col - left] = 0;
            }
        }
    }

    // The cells that the mask leaves, from left to right: [first, end] of each row. They stay while a slider moves.
    seenCells(top, bottom, left, right) {
        const { r0, c0, step, causal, window: width } = this.data,
            key = [r0, c0, step, causal, width, top, bottom, left, right].join();
        if (this.seen?.key === key) return this.seen.rows;
        const rows = [];
        for (let row = top; row < bottom; row++) {
            let first = left,
                end = right;
            while (first < end && this.isMasked(row, first)) first++;
            while (end > first && this.isMasked(row, end - 1)) end--;
            rows.push([first, end]);
        }
        this.seen = { key, rows };
        return rows;
    }

    // Several cells to a pixel: the one of largest magnitude, as in the figures.
    fillPooled(top, left, cellRows, cellCols, width, height) {
        const { values, cols } = this.data,
            { pixels, scale } = this;
        const edge = (i, count, cells) => Math.floor((i * cells) / count);
        for (let y = 0; y < height; y++) {
            const from = top + edge(y, height, cellRows),
                to = Math.max(from + 1, top + edge(y + 1, height, cellRows));
            for (let x = 0; x < width; x++) {
                const first = left + edge(x, width, cellCols);
                const last = Math.max(first + 1, left + edge(x + 1, width, cellCols));
                let most = 0;
                for (let row = from; row < to; row++) {
                    for (let at = row * cols + first, end = row * cols + last; at < end; at++) {
                        if (Math.abs(values[at]) > Math.abs(most)) most = values[at];
                    }
                }
                const masked = most === 0 && !this.maskedLikeZero && this.isMasked(to - 1, first);
                pixels[y * width + x] = masked ? 0 : scale.pixel(most);
            }
        }
    }

    // One size for all: the longest text fits its cell, or is cut where it would become too small to be read.
    paintTexts() {
        const { context, scale } = this,
            { texts, values, cols, r0, c0 } = this.data,
            [top, bottom, left, right] = this.shownCells();
        const room = (TEXT_SHARE * this.plotWidth) / this.cols,
            most = Math.min(this.theme.size, (0.72 * this.plotHeight) / this.rows);
        if (most < LEAST_TEXT || room < LEAST_TEXT) return;
        const font = (size) => `${size}px ${this.theme.font}`;
        context.font = font(most);
        const widest = texts.reduce((width, text) => Math.max(width, context.measureText(isolated(text)).width), 1);
        context.font = font(clampNumber((most * room) / widest, Math.min(most, LEAST_TEXT + 2), most));
        context.textAlign = 'center';
        context.textBaseline = 'middle';
        for (let row = top; row < bottom; row++) {
            for (let col = left; col < right; col++) {
                const at = row * cols + col;
                if (!texts[at]) continue;
                context.fillStyle = scale.isDark(values[at]) ? 'white' : 'black';
                context.fillText(
                    isolated(this.cutText(texts[at], room)),
                    this.plotLeft + ((c0 + col - this.zoom[2] + 0.5) / this.cols) * this.plotWidth,
                    1 + ((r0 + row - this.zoom[0] + 0.5) / this.rows) * this.plotHeight,
                );
            }
        }
    }

    // What has room of a text, with an ellipsis where that is not all.
    cutText(text, room, context = this.context) {
        const letters = [...text];
        let shown = text;
        while (letters.length && context.measureText(isolated(shown)).width > room) {
            letters.pop();
            shown = letters.join('') + '…';
        }
        return shown;
    }

    paintNumbers() {
        if (this.data.texts) return this.paintTexts();
        const cell = Math.min(this.plotWidth / this.cols, this.plotHeight / this.rows);
        if (this.data.step > 1 || cell < NUMBER_CELL || this.rows * this.cols > NUMBER_CELLS) return;
        const { context, scale } = this,
            [top, bottom, left, right] = this.shownCells();
        const { values, cols, r0, c0 } = this.data;
        const style = {
            reach: Math.max(Math.abs(scale.low), Math.abs(scale.high)),
            log: scale.kind === 'log',
            floor: scale.floor,
            signed: this.signed,
        };
        context.font = `${this.numberSize(cell, style)}px ${this.theme.font}`;
        context.textAlign = 'center';
        context.textBaseline = 'middle';
        for (let row = top; row < bottom; row++) {
            for (let col = left; col < right; col++) {
                const value = values[row * cols + col],
                    text = cellText(value, style);
                if (!text) continue;
                const light = scale.isDark(value) ? '255,255,255' : '0,0,0';
                context.fillStyle = `rgba(${light},${text === '0' ? 0.5 : 0.95})`;
                context.fillText(
                    text,
                    this.plotLeft + ((c0 + col - this.zoom[2] + 0.5) / this.cols) * this.plotWidth,
                    1 + ((r0 + row - this.zoom[0] + 0.5) / this.rows) * this.plotHeight,
                );
            }
        }
    }

    // One size for all: the longest number fits its cell.
    numberSize(cell, style) {
        const [top, bottom, left, right] = this.shownCells(),
            { values, cols } = this.data;
        let longest = 3;
        for (let row = top; row < bottom; row++) {
            for (let col = left; col < right; col++) {
                longest = Math.max(longest, cellText(values[row * cols + col], style).length);
            }
        }
        return Math.min(clampNumber(cell * 0.38, 7, this.theme.size), (cell * 0.92) / (longest * 0.58));
    }

    // The learned sink's share of each row, as a column of its own at the left.
    paintSink() {
        const { context } = this,
            height = this.plotHeight / this.rows;
        for (let row = 0; row < this.rows; row++) {
            context.fillStyle = this.scale.css(this.data.sink[this.zoom[0] + row]);
            context.fillRect(this.left, 1 + row * height, this.sinkRoom - 4, Math.ceil(height));
        }
        context.strokeStyle = this.theme.line;
        context.strokeRect(this.left - 0.5, 0.5, this.sinkRoom - 3, this.plotHeight + 1);
    }

    // ---- what follows the pointer ----

    paintOver() {
        if (!this.layoutDone) return;
        const { overContext: context, hover, pins } = this,
            isEmpty = hover.query < 0 && hover.key < 0 && !pins.queries.length && !pins.keys.length && !this.input.drag;
        if (isEmpty && this.overEmpty) return; // nothing to take away: the canvas stays as it is
        this.overEmpty = isEmpty;
        context.clearRect(0, 0, this.width, this.height);
        context.save();
        for (const query of this.pins.queries) this.drawBand('row', query, 2);
        for (const key of this.pins.keys) this.drawBand('col', key, 2);
        if (this.hover.query >= 0) this.drawBand('row', this.hover.query, 1);
        if (this.hover.key >= 0) this.drawBand('col', this.hover.key, 1);
        this.drawTags('row', this.hover.query, this.pins.queries);
        this.drawTags('col', this.hover.key, this.pins.keys);
        if (this.input.drag) {
            context.strokeStyle = this.theme.ink;
            context.setLineDash([4, 3]);
            const { x0, y0, x1, y1 } = this.input.drag;
            context.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
        }
        context.restore();
    }

    // Where a row or column lies in the plot: [where it begins, how wide it is]; null where it is not shown.
    bandOf(kind, token) {
        const isRow = kind === 'row',
            from = isRow ? this.zoom[0] : this.zoom[2],
            count = isRow ? this.rows : this.cols,
            length = isRow ? this.plotHeight : this.plotWidth;
        if (token < from || token >= from + count) return null;
        return [((token - from) * length) / count, Math.max(length / count, 1)];
    }

    // The frame around a row or column.
    drawBand(kind, token, weight) {
        const band = this.bandOf(kind, token);
        if (!band) return;
        const { overContext: context, theme } = this,
            isRow = kind === 'row',
            [at, size] = band;
        context.lineWidth = weight;
        context.strokeStyle = weight > 1 ? theme.mark : theme.ink;
        // Lines lie beside the row or column, not over it: one of a single pixel is still seen.
        const from = at - weight / 2,
            wide = size + weight;
        if (isRow) context.strokeRect(this.plotLeft, 1 + from, this.plotWidth, wide);
        else context.strokeRect(this.plotLeft + from, 1, wide, this.plotHeight);
    }

    // Tokens in full beside their frames: the one that is pointed at, then the pinned ones that have room. Labels below
    // that a tag would touch are covered: nothing is printed over another.
    drawTags(kind, pointed, pinned) {
        const isRow = kind === 'row',
            cell = isRow ? this.plotHeight / this.rows : this.plotWidth / this.cols,
            tall = clampNumber(cell, this.fontSize + 1, this.fontSize + 4), // no taller than what it names
            end = isRow ? this.height - 1 : this.width - this.plotLeft,
            tags = [];
        for (const token of [pointed, ...pinned]) {
            const band = this.bandOf(kind, token);
            if (!band) continue;
            // At the edge it is moved inwards, so that it is not cut.
            const middle = clampNumber(band[0] + band[1] / 2, tall / 2 - 1, end - tall / 2);
            if (tags.some((tag) => Math.abs(tag.middle - middle) < tall)) continue;
            tags.push({ token, middle, isPinned: token !== pointed });
        }
        if (!tags.length) return;
        this.coverLabels(isRow, tags, (tall + this.fontSize) / 2);
        const texts = isRow ? this.data.queries : this.data.keys;
        for (const { token, middle, isPinned } of tags) this.drawTag(isRow, texts[token], middle, tall, isPinned);
    }

    coverLabels(isRow, tags, near) {
        const { overContext: context, fontSize } = this,
            start = isRow ? 1 : this.plotLeft,
            half = fontSize * 0.56;
        context.fillStyle = this.theme.paper;
        for (const [, , at] of isRow ? this.rowLabels : this.colLabels) {
            if (!tags.some(({ middle }) => Math.abs(start + middle - at) < near)) continue;
            if (isRow) context.fillRect(0, at - half, this.left - 3, 2 * half);
            else context.fillRect(at - half, this.plotHeight + 3, 2 * half, this.foot);
        }
    }

    // The whole token: one that is wider than the room beside the axis begins at the canvas' edge and ends over the map.
    drawTag(isRow, text, middle, height, pinned) {
        const { overContext: context, theme } = this;
        context.save();
        context.font = this.tagFont(pinned);
        const room = (isRow ? this.width : this.height) - TAG_ROOM,
            label = isolated(this.cutText(axisLabel(text ?? '', Infinity), room, context)),
            width = context.measureText(label).width;
        if (isRow) context.translate(Math.max(this.left - 3, width + 6), 1 + middle);
        else {
            context.translate(this.plotLeft + middle, Math.min(this.plotHeight + 3, this.height - width - 6));
            context.rotate(-Math.PI / 2);
        }
        context.fillStyle = pinned ? theme.mark : theme.ink;
        context.fillRect(-width - 6, -height / 2, width + 7, height);
        context.fillStyle = theme.paper;
        context.textAlign = 'right';
        context.textBaseline = 'middle';
        context.fillText(label, -2.5, 0.5);
        context.restore();
    }
}
