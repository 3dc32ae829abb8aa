// All heads of the model on one canvas: layers down, heads across, each as a small map or as one coloured cell by a
// metric; or sorted, the first being the largest. A corner is marked where the edit changed a head.
//
//     const overview = new Overview(element, { palette });
//     overview.set({ mode: 'maps', metric: 'sink', sort: 'place' });
//     overview.setData({ layers, heads, side, maps, tv, before, after, causal, long });
//     overview.onopen = (layer, head) => ...;
//
// maps: [layers, heads, side, side], 8 bits or floats, as they are after the edit; tv: [layers, heads], the total
// variation that the edit caused; before, after: the metric, [layers, heads].
import { ColorScale, drawColorBar, logFloor } from './colors.js';
import { changeText, clampNumber, el, fillSelect, numberText } from './text.js';
import { sizeCanvas, themeColors } from './map.js';

const GAP = 2,
    LARGEST = 84,
    SMALLEST = 9;
const FRAME = 4; // pixels that the frame of the open head takes around its map
const NAMED = 26; // pixels of a map from which its name is written below it, when sorted

export class Overview {
    constructor(element, { palette, metrics }) {
        this.palette = palette;
        this.metrics = metrics;
        this.state = { mode: 'maps', metric: 'sink', sort: 'place' };
        this.colormap = 'coolwarm';
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
        this.paint();
    }

    setOpened(layer, head) {
        this.opened = { layer, head };
        this.cursor = { layer, head };
        this.paint();
    }

    setColormap(name) {
        if (this.colormap === name) return;
        this.colormap = name;
        this.makeScales();
        this.paint();
    }

    forgetTheme() {
        this.paint();
    }

    // ---- scales ----

    makeScales() {
        const { data } = this;
        if (!data) return;
        // Maps as the head view has them; weights of 8 bits have 255 for 1.
        const whole = data.maps instanceof Uint8Array ? 255 : 1;
        this.mapScale = new ColorScale(this.palette.table(this.colormap), {
            kind: data.long ? 'log' : 'linear',
            high: whole,
            floor: data.long ? whole * logFloor(0, 1, data.n || 1) : whole * 1e-4,
        });
        const values = [...(data.after || data.before || [])].filter(Number.isFinite);
        const least = Math.min(...values),
            most = Math.max(...values);
        const signed = values.length > 0 && least < 0;
        const name = signed ? 'coolwarm' : this.colormap === 'coolwarm' ? 'viridis' : this.colormap;
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
        const whole = this.state.mode === 'maps' && this.data.maps instanceof Uint8Array ? 255 : 1;
        this.low.textContent = numberText((scale.kind === 'log' ? scale.floor : scale.low) / whole, 2);
        this.high.textContent = numberText(scale.high / whole, 2) + (scale.kind === 'log' ? ' log' : '');
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
        this.left = sorted ? 2 : small * 2.1;
        this.top = sorted ? 2 : small * 1.5;
        const width = Math.max(60, this.scroller.clientWidth - 4);
        const fit = (columns) => Math.floor((width - this.left) / columns) - GAP;
        let size = fit(heads);
        if (sorted)
            size = clampNumber(
                Math.floor(Math.sqrt((width * Math.max(200, width)) / (layers * heads))) - GAP,
                14,
                64,
            );
        this.size = clampNumber(size, SMALLEST, sorted ? 64 : LARGEST);
        this.columns = sorted ? Math.max(1, Math.floor((width - this.left) / (this.size + GAP))) : heads;
        this.named = sorted && this.size >= NAMED ? small * 1.3 + FRAME : 0;
        this.rows = Math.ceil((layers * heads) / this.columns);
        this.small = small;
        this.list = this.order();
        this.places = new Map(this.list.map((head, i) => [head, i]));
    }

    // The corner of a head's map.
    corner(index) {
        const column = index % this.columns,
            row = Math.floor(index / this.columns);
        return [this.left + column * (this.size + GAP), this.top + row * (this.size + GAP + this.named)];
    }

    // ---- painting ----

    paint() {
        if (!this.data || !this.scroller.clientWidth) return;
        this.layout();
        const width = Math.ceil(this.left + this.columns * (this.size + GAP)),
            height = Math.ceil(this.top + this.rows * (this.size + GAP + this.named));
        this.paintSheet(width, height);
        const context = (this.context = sizeCanvas(this.canvas, width, height));
        context.clearRect(0, 0, width, height);
        context.drawImage(this.sheet, 0, 0, width, height);
        this.paintFrames();
        this.showTip();
    }

    // What does not depend on the pointer is painted once.
    paintSheet(width, height) {
        const { state, colormap, theme } = this;
        const key = JSON.stringify([state, colormap, theme, width, height, this.size, window.devicePixelRatio]);
        if (this.sheetKey === key) return;
        this.sheetKey = key;
        const context = (this.context = sizeCanvas(this.sheet, width, height));
        context.clearRect(0, 0, width, height);
        if (state.mode === 'maps') this.paintMaps(context);
        this.list.forEach((head, i) => this.paintHead(head, ...this.corner(i)));
        this.paintNames();
        this.showLegend();
    }

    paintHead(head, x, y) {
        const { context, size, theme, data } = this;
        if (this.state.mode !== 'maps') this.paintCell(head, x, y);
        context.strokeStyle = theme.line;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
        if (data.tv && data.tv[head] > 0) this.paintMark(x, y, data.tv[head]);
    }

    // All maps as one image, in pixels of the screen: hundreds of small ones would take hundreds of copies.
    paintMaps(context) {
        const { width, height } = this.sheet,
            ratio = window.devicePixelRatio || 1;
        const image = context.createImageData(width, height),
            pixels = new Uint32Array(image.data.buffer);
        this.list.forEach((head, i) => {
            const [x, y] = this.corner(i).map((at) => Math.round(at * ratio));
            this.paintMap(head, pixels, y * width + x, width, Math.max(1, Math.round(this.size * ratio)));
        });
        context.putImageData(image, 0, 0);
        // Masked cells are clear: the paper comes below them.
        context.globalCompositeOperation = 'destination-over';
        context.fillStyle = this.theme.paper;
        this.list.forEach((head, i) => context.fillRect(...this.corner(i), this.size, this.size));
        context.globalCompositeOperation = 'source-over';
    }

    // Where a map has more cells than pixels, a pixel is the largest of its cells, as everywhere; where it has fewer,
    // a cell is several pixels.
    paintMap(head, pixels, corner, stride, size) {
        const { side, causal } = this.data,
            width = Math.min(side, size),
            cells = this.poolMap(head, width);
        for (let y = 0; y < size; y++) {
            const row = Math.floor((y * width) / size);
            for (let x = 0; x < size; x++) {
                const col = Math.floor((x * width) / size),
                    most = cells[row * width + col];
                pixels[corner + y * stride + x] =
                    causal && col > row && most === 0 ? 0 : this.mapScale.pixel(most);
            }
        }
    }

    poolMap(head, width) {
        const { side, maps } = this.data,
            own = maps.subarray(head * side * side, (head + 1) * side * side);
        if (width === side) return own;
        const edge = (i) => Math.floor((i * side) / width),
            cells = new Float32Array(width * width);
        for (let row = 0; row < width; row++) {
            for (let r = edge(row); r < edge(row + 1); r++) {
                for (let col = 0; col < width; col++) {
                    for (let at = r * side + edge(col), end = r * side + edge(col + 1); at < end; at++) {
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

    // A corner, larger where more changed.
    paintMark(x, y, change) {
        const { context, size, theme } = this;
        const part = Math.max(Math.min(5, size / 2), clampNumber(Math.sqrt(change), 0.25, 1) * size * 0.45);
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
            const every = Math.max(1, Math.ceil((small * 1.7) / (size + GAP)));
            context.textBaseline = 'middle';
            context.textAlign = 'right';
            for (let layer = 0; layer < layers; layer += every)
                context.fillText(layer, this.left - 5, this.top + layer * (size + GAP) + size / 2);
            context.textBaseline = 'alphabetic';
            context.textAlign = 'center';
            for (let head = 0; head < heads; head += every)
                context.fillText(head, this.left + head * (size + GAP) + size / 2, this.top - 4);
        } else if (this.named) {
            context.textAlign = 'center';
            context.textBaseline = 'top';
            this.list.forEach((head, i) => {
                const [x, y] = this.corner(i);
                context.fillText(`${Math.floor(head / heads)}.${head % heads}`, x + size / 2, y + size + FRAME, size);
            });
        }
    }

    paintFrames() {
        const { context, theme, size } = this;
        const frame = (place, color, width) => {
            const [x, y] = this.corner(this.places.get(place.layer * this.data.heads + place.head) ?? 0);
            context.strokeStyle = theme.paper;
            context.lineWidth = width + 2;
            context.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
            context.strokeStyle = color;
            context.lineWidth = width;
            context.strokeRect(x - 0.5, y - 0.5, size + 1, size + 1);
        };
        frame(this.opened, theme.accent, 3);
        const moved = this.cursor.layer !== this.opened.layer || this.cursor.head !== this.opened.head;
        if (moved && document.activeElement === this.scroller) frame(this.cursor, theme.ink, 2);
        if (this.hovered) frame(this.hovered, theme.ink, 1.5);
    }

    // ---- pointer and keys ----

    headAt(event) {
        if (!this.data) return null;
        const box = this.canvas.getBoundingClientRect();
        const column = Math.floor((event.clientX - box.left - this.left) / (this.size + GAP));
        const row = Math.floor((event.clientY - box.top - this.top) / (this.size + GAP + this.named));
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
            { heads, tv, before, after } = this.data;
        const i = place.layer * heads + place.head,
            parts = [`layer ${place.layer}, head ${place.head}`];
        if (before) {
            parts.push(
                `${this.state.metric} ${numberText(before[i])}` +
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
