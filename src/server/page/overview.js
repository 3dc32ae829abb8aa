// All heads of the model on one canvas: layers down, heads across, each as a small map or as one coloured cell by a
// metric; or sorted, the first being the largest. A corner is marked where the edit changed a head: of causal maps
// inside, where nothing is, of others around it.
//
//     const overview = new Overview(element, { palette });
//     overview.set({ mode: 'maps', metric: 'sink', sort: 'place' });   overview.setLook(options of the head view);
//     overview.setData({ layers, heads, rows, cols, skip, maps, tv, metric, before, after, causal, n });
//     overview.onopen = (layer, head) => ...;
//
// maps: [layers, heads, rows, cols], as they are after the edit, pooled: n queries in rows cells, the keys from `skip` on
// in cells as large; null data: nothing is shown. tv: [layers, heads], the total variation that the edit caused; metric,
// before, after: its name, and its values, [layers, heads].
//
// A map of ten pixels has its sink in one of them. So nothing is painted over a map that can hold data: lines and the
// frames of the open head and of the pointer lie in the gaps between the maps, in whole pixels of the screen.
import { ColorScale, drawColorBar, endsOf, weightScale } from './colors.js';
import { changeText, clampNumber, el, fillSelect, numberText } from './text.js';
import { defaultHeadOptions } from './head_options.js';
import { firstToken, sizeCanvas, themeColors } from './map.js';

const LARGEST = 84,
    SMALLEST = 9;
const GAP = 2, // between maps: the open head's frame fills it
    WIDE_GAP = 4, // between maps of ROOMY pixels and more: with a line around each
    ROOMY = 24;
const NAMED = 26; // pixels of a map from which its name is written below it, when sorted
const SMALL_MARK = 5; // pixels of the corner that marks a change, at least

export class Overview {
    constructor(element, { palette, metrics }) {
        this.palette = palette;
        this.metrics = metrics;
        this.state = { mode: 'maps', metric: 'sink', sort: 'place' };
        this.look = defaultHeadOptions();
        this.data = null;
        this.cursor = this.opened = { layer: 0, head: 0 };
        this.hovered = null;
        this.onopen = this.onstate = () => {};
        this.sheet = document.createElement('canvas'); // all heads as they are, without frames
        this.sheetKey = null;
        this.build(element);
        new ResizeObserver(() => this.paint()).observe(this.scroller);
    }

    build(element) {
        const choose = (key, label, pairs) => {
            const select = el('select', {
                'aria-label': label,
                onchange: () => this.change({ [key]: select.value }),
            });
            fillSelect(select, pairs);
            return (this[`${key}Choice`] = select);
        };
        this.bar = el('canvas', { class: 'bar', 'aria-hidden': 'true' });
        this.low = el('span');
        this.high = el('span');
        this.canvas = el('canvas', { 'aria-hidden': 'true' });
        this.scroller = el(
            'div',
            {
                class: 'overview-canvas',
                tabindex: '0',
                role: 'application',
                'aria-roledescription': 'grid of heads',
                'aria-label': 'All heads: layers down, heads across. Arrow keys move, Enter opens a head.',
            },
            this.canvas,
        );
        this.tip = el('p', { class: 'tip', role: 'status', 'aria-live': 'polite' });
        element.append(
            el(
                'div',
                { class: 'overview-tools' },
                choose('mode', 'How heads are shown', [
                    ['maps', 'maps'],
                    ['cells', 'one cell'],
                ]),
                choose(
                    'metric',
                    'Metric',
                    this.metrics.map(({ name, title }) => [name, title || name]),
                ),
                choose('sort', 'Order', [
                    ['place', 'by layer'],
                    ['metric', 'by metric'],
                    ['change', 'by change'],
                ]),
                el('span', { class: 'legend' }, this.low, this.bar, this.high),
            ),
            this.scroller,
            this.tip,
        );
        this.listen();
    }

    listen() {
        this.canvas.addEventListener('pointermove', (event) => this.point(this.headAt(event)));
        this.canvas.addEventListener('pointerleave', () => this.point(null));
        this.canvas.addEventListener('click', (event) => {
            const place = this.headAt(event);
            if (place) this.open(place);
        });
        this.scroller.addEventListener('keydown', (event) => this.keyPressed(event));
        this.scroller.addEventListener('focus', () => this.paint());
        this.scroller.addEventListener('blur', () => this.paint());
    }

    set(state) {
        Object.assign(this.state, state);
        for (const key of ['mode', 'metric', 'sort']) this[`${key}Choice`].value = this.state[key];
        this.paint();
    }

    change(state) {
        this.set(state);
        this.onstate({ ...this.state });
    }

    setData(data) {
        this.data = data;
        this.sheetKey = null;
        this.makeScales();
        this.canvas.hidden = this.bar.hidden = !data;
        if (data) return this.paint();
        this.hovered = null;
        for (const node of [this.low, this.high, this.tip]) node.textContent = '';
    }

    setOpened(layer, head) {
        this.opened = { layer, head };
        this.cursor = { layer, head };
        this.paint();
    }

    // The colours, as the head view's options have them.
    setLook({ scale, low, high, colormap, maskedZero }) {
        const look = { scale, low, high, colormap, maskedZero };
        if (JSON.stringify(look) === JSON.stringify(this.look)) return;
        this.look = look;
        this.makeScales();
        this.paint();
    }

    forgetTheme() {
        this.paint();
    }

    // ---- scales ----

    makeScales() {
        const { data, look } = this;
        if (!data) return;
        const table = this.palette.table(look.colormap);
        this.mapScale = weightScale(table, look, data.n || 1, data.skip ? largestOf(data.maps) : null);
        const values = [...(data.after || data.before || [])].filter(Number.isFinite);
        const least = Math.min(...values),
            most = Math.max(...values);
        const signed = values.length > 0 && least < 0;
        const name = signed ? 'coolwarm' : look.colormap === 'coolwarm' ? 'viridis' : look.colormap;
        const high = values.length ? (signed ? Math.max(-least, most) : most) : 1;
        const low = values.length && !signed ? Math.min(least, high) : 0;
        this.cellScale = new ColorScale(this.palette.table(name), {
            low,
            high: high > low ? high : low + 1,
            diverging: signed,
        });
    }

    showLegend() {
        const scale = this.state.mode === 'maps' ? this.mapScale : this.cellScale;
        drawColorBar(this.bar, scale);
        const [low, high] = endsOf(scale);
        this.low.textContent = numberText(low, 2);
        this.high.textContent = numberText(high, 2) + (scale.kind === 'linear' ? '' : ` ${scale.kind}`);
    }

    // ---- layout ----

    // Heads in the order they are shown, as layer * heads + head.
    order() {
        const { layers, heads, tv, before, after } = this.data,
            count = layers * heads;
        const list = Array.from({ length: count }, (_, i) => i);
        if (this.state.sort === 'place') return list;
        const by = this.state.sort === 'change' ? tv : after || before;
        if (!by) return list;
        const rank = (i) => (Number.isFinite(by[i]) ? by[i] : -Infinity);
        return list.sort((a, b) => rank(b) - rank(a) || a - b);
    }

    layout() {
        const { layers, heads } = this.data,
            theme = (this.theme = themeColors(this.scroller));
        const sorted = this.state.sort !== 'place',
            small = clampNumber(theme.size * 0.72, 8, 14);
        const width = Math.max(60, this.scroller.clientWidth - 4);
        const sizeWith = (gap) => {
            this.gap = gap;
            this.left = sorted ? gap : Math.ceil(small * 2.1);
            this.top = sorted ? gap : Math.ceil(small * 1.5);
            if (!sorted) return clampNumber(Math.floor((width - this.left) / heads) - gap, SMALLEST, LARGEST);
            const room = Math.floor(Math.sqrt((width * Math.max(200, width)) / (layers * heads))) - gap;
            return clampNumber(room, 14, 64);
        };
        this.size = sizeWith(WIDE_GAP);
        if (this.size < ROOMY) this.size = sizeWith(GAP);
        this.step = this.size + this.gap;
        this.columns = sorted ? Math.max(1, Math.floor((width - this.left) / this.step)) : heads;
        this.named = sorted && this.size >= NAMED ? Math.ceil(small * 1.3 + this.gap) : 0;
        this.rows = Math.ceil((layers * heads) / this.columns);
        this.small = small;
        this.list = this.order();
        this.places = new Map(this.list.map((head, i) => [head, i]));
    }

    // The corner of a head's map.
    corner(index) {
        const column = index % this.columns,
            row = Math.floor(index / this.columns);
        return [this.left + column * this.step, this.top + row * (this.step + this.named)];
    }

    // The same in pixels of the screen, and the length of its side.
    pixelBox(index) {
        const ratio = window.devicePixelRatio || 1,
            [x, y] = this.corner(index).map((at) => Math.round(at * ratio));
        return [x, y, Math.max(1, Math.floor(this.size * ratio))];
    }

    // ---- painting ----

    paint() {
        if (!this.data || !this.scroller.clientWidth) return;
        this.layout();
        const width = Math.ceil(this.left + this.columns * this.step),
            height = Math.ceil(this.top + this.rows * (this.step + this.named));
        this.paintSheet(width, height);
        const context = (this.context = sizeCanvas(this.canvas, width, height));
        context.clearRect(0, 0, width, height);
        context.drawImage(this.sheet, 0, 0, width, height);
        this.paintFrames();
        this.showTip();
    }

    // What does not depend on the pointer is painted once.
    paintSheet(width, height) {
        const { state, look, theme } = this;
        const key = JSON.stringify([state, look, theme, width, height, this.size, window.devicePixelRatio]);
        if (this.sheetKey === key) return;
        this.sheetKey = key;
        const context = (this.context = sizeCanvas(this.sheet, width, height));
        context.clearRect(0, 0, width, height);
        if (state.mode === 'maps') this.paintMaps(context);
        this.list.forEach((head, i) => this.paintHead(head, i));
        this.paintNames();
        this.showLegend();
    }

    paintHead(head, index) {
        const { data } = this,
            [x, y] = this.corner(index);
        if (this.state.mode !== 'maps') this.paintCell(head, x, y);
        if (this.gap === WIDE_GAP) this.paintFrame(index, this.theme.line, 1);
        if (this.isMarkInside && data.tv?.[head] > 0) this.paintMark(x, y, data.tv[head]);
    }

    // All maps as one image, in pixels of the screen: hundreds of small ones would take hundreds of copies.
    paintMaps(context) {
        const { width, height } = this.sheet,
            ratio = window.devicePixelRatio || 1;
        const image = context.createImageData(width, height),
            pixels = new Uint32Array(image.data.buffer);
        const grid = this.pixelGrid(this.pixelBox(0)[2]);
        this.list.forEach((head, i) => {
            const [x, y] = this.pixelBox(i);
            this.paintMap(head, grid, pixels, y * width + x, width);
        });
        context.putImageData(image, 0, 0);
        // Masked cells are clear: the paper comes below them.
        context.globalCompositeOperation = 'destination-over';
        context.fillStyle = this.theme.paper;
        this.list.forEach((head, i) => context.fillRect(...this.corner(i), this.size, this.size));
        context.globalCompositeOperation = 'source-over';
    }

    // Which cell each pixel of a map's side shows, and from which column on each row is masked as a whole: the same for
    // all heads. Where a map has more cells than pixels, a pixel is the largest of its cells, as everywhere; where it has
    // fewer, a cell is several pixels.
    pixelGrid(size) {
        const { rows, cols, skip, n, causal } = this.data,
            height = Math.min(rows, size),
            width = Math.min(cols, size),
            tokens = n / rows; // of a cell
        const spread = (count) => Uint16Array.from({ length: size }, (_, i) => Math.floor((i * count) / size));
        const edges = (cells, count) => Array.from({ length: count + 1 }, (_, i) => Math.floor((i * cells) / count));
        const grid = { size, height, width, ys: spread(height), xs: spread(width) };
        grid.rowEdges = edges(rows, height);
        grid.colEdges = edges(cols, width);
        grid.masked = grid.rowEdges.slice(1).map((end) => {
            const queries = firstToken(end, 0, tokens); // up to the last of the row's
            let col = causal && !this.look.maskedZero ? 0 : width;
            while (col < width && skip + firstToken(grid.colEdges[col], 0, tokens) < queries) col++;
            return col;
        });
        return grid;
    }

    paintMap(head, { size, height, width, xs, ys, rowEdges, colEdges, masked }, pixels, corner, stride) {
        const cells = this.poolMap(head, height, width, rowEdges, colEdges);
        const colors = Uint32Array.from(cells, (most) => this.mapScale.pixel(most));
        for (let row = 0; row < height; row++) {
            for (let at = row * width + masked[row], end = (row + 1) * width; at < end; at++) if (cells[at] === 0) colors[at] = 0;
        }
        for (let y = 0; y < size; y++) {
            const from = ys[y] * width,
                to = corner + y * stride;
            for (let x = 0; x < size; x++) pixels[to + x] = colors[from + xs[x]];
        }
    }

    poolMap(head, height, width, rowEdges, colEdges) {
        const { rows, cols, maps } = this.data,
            own = maps.subarray(head * rows * cols, (head + 1) * rows * cols);
        if (width === cols && height === rows) return own;
        const cells = new Float32Array(height * width).fill(-Infinity);
        for (let row = 0; row < height; row++) {
            for (let r = rowEdges[row]; r < rowEdges[row + 1]; r++) {
                for (let col = 0; col < width; col++) {
                    for (let at = r * cols + colEdges[col], end = r * cols + colEdges[col + 1]; at < end; at++) {
                        if (own[at] > cells[row * width + col]) cells[row * width + col] = own[at];
                    }
                }
            }
        }
        return cells;
    }

    paintCell(head, x, y) {
        const values = this.data.after || this.data.before;
        if (!values) return;
        const { context, size } = this,
            value = values[head];
        context.fillStyle = this.cellScale.css(value);
        context.fillRect(x, y, size, size);
        if (size < 24) return;
        context.font = `${clampNumber(size * 0.28, 8, 14)}px ${this.theme.font}`;
        context.textAlign = 'center';
        context.textBaseline = 'middle';
        context.fillStyle = Number.isFinite(value) && this.cellScale.isDark(value) ? '#fff' : '#000';
        context.fillText(numberText(value, 2), x + size / 2, y + size / 2, size - 2);
    }

    // Has the corner of a map no weights? Of a causal one it is masked.
    get isMarkInside() {
        return this.state.mode !== 'maps' || (this.data.causal && !this.look.maskedZero);
    }

    // Of the side that the mark takes: more where more changed.
    markSize(change) {
        return Math.max(Math.min(SMALL_MARK, this.size / 2), clampNumber(Math.sqrt(change), 0.25, 1) * this.size * 0.45);
    }

    // In the gap, around the corner of a map, over the frames.
    paintOuterMark(index, change) {
        const ratio = window.devicePixelRatio || 1,
            [x, y, side] = this.pixelBox(index),
            long = Math.round(this.markSize(change) * ratio);
        this.paintInGap(GAP, this.theme.mark, (wide) => [
            [x + side - long, y - wide, long + wide, wide],
            [x + side, y, wide, long],
        ]);
    }

    paintMark(x, y, change) {
        const { context, size, theme } = this,
            part = this.markSize(change);
        context.fillStyle = theme.mark;
        context.strokeStyle = theme.paper;
        context.beginPath();
        context.moveTo(x + size - part, y);
        context.lineTo(x + size, y);
        context.lineTo(x + size, y + part);
        context.closePath();
        context.fill();
        context.stroke();
    }

    paintNames() {
        const { context, theme, small, size } = this,
            { layers, heads } = this.data;
        context.font = `${small}px ${theme.font}`;
        context.fillStyle = theme.soft;
        if (this.state.sort === 'place') {
            const every = Math.max(1, Math.ceil((small * 1.7) / this.step));
            context.textBaseline = 'middle';
            context.textAlign = 'right';
            for (let layer = 0; layer < layers; layer += every)
                context.fillText(layer, this.left - 5, this.top + layer * this.step + size / 2);
            context.textBaseline = 'alphabetic';
            context.textAlign = 'center';
            for (let head = 0; head < heads; head += every)
                context.fillText(head, this.left + head * this.step + size / 2, this.top - 4);
        } else if (this.named) {
            context.textAlign = 'center';
            context.textBaseline = 'top';
            this.list.forEach((head, i) => {
                const [x, y] = this.corner(i);
                context.fillText(`${Math.floor(head / heads)}.${head % heads}`, x + size / 2, y + size + this.gap, size);
            });
        }
    }

    // Around a map, outside it: `width` pixels at most as wide as the gap.
    paintFrame(index, color, width) {
        const [x, y, side] = this.pixelBox(index);
        this.paintInGap(width, color, (wide) => [
            [x - wide, y - wide, side + 2 * wide, wide],
            [x - wide, y + side, side + 2 * wide, wide],
            [x - wide, y, wide, side],
            [x + side, y, wide, side],
        ]);
    }

    // boxes: gives them for a width in whole pixels of the screen.
    paintInGap(width, color, boxes) {
        const { context } = this,
            ratio = window.devicePixelRatio || 1,
            wide = clampNumber(Math.round(width * ratio), 1, Math.floor(this.gap * ratio));
        context.save();
        context.resetTransform();
        context.fillStyle = color;
        for (const box of boxes(wide)) context.fillRect(...box);
        context.restore();
    }

    paintFrames() {
        const { theme, opened, cursor, hovered } = this;
        const frame = (place, color, width) =>
            this.paintFrame(this.places.get(place.layer * this.data.heads + place.head) ?? 0, color, width);
        const isOpened = (place) => place.layer === opened.layer && place.head === opened.head;
        frame(opened, theme.ink, 2);
        if (!isOpened(cursor) && document.activeElement === this.scroller) frame(cursor, theme.mark, 2);
        if (hovered && !isOpened(hovered)) frame(hovered, theme.mark, 1.5);
        const { tv } = this.data;
        if (tv && !this.isMarkInside) this.list.forEach((head, i) => tv[head] > 0 && this.paintOuterMark(i, tv[head]));
    }

    // ---- pointer and keys ----

    headAt(event) {
        if (!this.data) return null;
        const box = this.canvas.getBoundingClientRect();
        const column = Math.floor((event.clientX - box.left - this.left) / this.step);
        const row = Math.floor((event.clientY - box.top - this.top) / (this.step + this.named));
        const head =
            column >= 0 && column < this.columns && row >= 0 ? this.list[row * this.columns + column] : undefined;
        return head === undefined
            ? null
            : { layer: Math.floor(head / this.data.heads), head: head % this.data.heads };
    }

    point(place) {
        if (place?.layer === this.hovered?.layer && place?.head === this.hovered?.head) return;
        this.hovered = place;
        this.paint();
    }

    open(place) {
        this.cursor = place;
        this.onopen(place.layer, place.head);
    }

    keyPressed(event) {
        if (!this.data || event.altKey || event.ctrlKey || event.metaKey) return;
        const count = this.list.length,
            at = this.places.get(this.cursor.layer * this.data.heads + this.cursor.head) ?? 0;
        const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns };
        let next = at;
        if (steps[event.key]) next = at + steps[event.key];
        else if (event.key === 'Home') next = 0;
        else if (event.key === 'End') next = count - 1;
        else if (event.key === 'Enter' || event.key === ' ') this.open(this.cursor);
        else return;
        event.preventDefault();
        if (next < 0 || next >= count) return;
        const head = this.list[next];
        this.cursor = { layer: Math.floor(head / this.data.heads), head: head % this.data.heads };
        this.hovered = null;
        this.paint();
        this.showCursor(next);
    }

    showCursor(index) {
        const [x, y] = this.corner(index),
            box = this.scroller;
        if (y < box.scrollTop) box.scrollTop = y - this.top;
        else if (y + this.size > box.scrollTop + box.clientHeight)
            box.scrollTop = y + this.size - box.clientHeight + 8;
        if (x < box.scrollLeft) box.scrollLeft = x - this.left;
        else if (x + this.size > box.scrollLeft + box.clientWidth)
            box.scrollLeft = x + this.size - box.clientWidth + 8;
    }

    showTip() {
        const place = this.hovered || this.cursor,
            { heads, tv, metric, before, after } = this.data; // of the data: the chosen one may still be on its way
        const i = place.layer * heads + place.head,
            parts = [`layer ${place.layer}, head ${place.head}`];
        if (before) {
            parts.push(
                `${metric} ${numberText(before[i])}` +
                    (after && after[i] !== before[i] ? ` → ${numberText(after[i])}` : ''),
            );
        }
        if (tv)
            parts.push(
                tv[i] > 0 ? `changed, total variation ${changeText(tv[i]).replace('+', '')}` : 'not changed',
            );
        const text = parts.join(' · ');
        if (this.tip.textContent !== text) this.tip.textContent = text;
    }
}

function largestOf(values) {
    let most = 0;
    for (const value of values) if (value > most) most = value;
    return most;
}
