// The pointer and the keys on an attention map: where they point, what they pin, how they zoom.
import { clampNumber } from './text.js';

const DRAG = 6; // pixels before a click becomes a drag

export class MapInput {
    constructor(map) {
        this.map = map;
        this.press = this.drag = null;
        this.pinsBefore = []; // what was pinned before each of the last two presses
        this.listen();
    }

    // Where on the map a point of the page lies: {query, key}, -1 beside the plot; null outside.
    place(event) {
        const box = this.map.over.getBoundingClientRect();
        const x = event.clientX - box.left,
            y = event.clientY - box.top;
        const col = Math.floor(((x - this.map.plotLeft) / this.map.plotWidth) * this.map.cols);
        const row = Math.floor(((y - 1) / this.map.plotHeight) * this.map.rows);
        const inCols = col >= 0 && col < this.map.cols,
            inRows = row >= 0 && row < this.map.rows;
        if ((!inCols && x >= this.map.plotLeft) || (!inRows && y < this.map.plotHeight) || (!inCols && !inRows))
            return null;
        return { query: inRows ? this.map.zoom[0] + row : -1, key: inCols ? this.map.zoom[2] + col : -1, x, y };
    }

    listen() {
        const { over } = this.map;
        over.addEventListener('pointermove', (event) => this.pointerMoved(event));
        over.addEventListener('pointerleave', () => !this.drag && this.map.onhover({ query: -1, key: -1 }));
        over.addEventListener('pointerdown', (event) => {
            if (event.button !== 0 || !this.map.layoutDone) return;
            this.pinsBefore = [this.pinsBefore[1], this.map.pins];
            const at = this.place(event);
            if (!at) return;
            over.setPointerCapture(event.pointerId);
            this.press = at;
        });
        over.addEventListener('pointerup', (event) => this.pointerReleased(event));
        over.addEventListener('pointercancel', () => {
            this.press = this.drag = null;
            this.map.paintOver();
        });
        over.addEventListener('dblclick', () => this.map.data && this.map.ondouble(this.pinsBefore[0]));
        over.addEventListener(
            'wheel',
            (event) => {
                if (!event.ctrlKey || !this.map.layoutDone) return;
                event.preventDefault();
                this.zoomAt(this.place(event), event.deltaY < 0 ? 0.8 : 1.25);
            },
            { passive: false },
        );
        this.map.element.addEventListener('keydown', (event) => this.keyPressed(event));
    }

    pointerMoved(event) {
        if (!this.map.layoutDone) return;
        const at = this.place(event);
        if (this.press) {
            const box = pointIn(this.map.over, event);
            if (this.drag || Math.hypot(box.x - this.press.x, box.y - this.press.y) > DRAG) {
                this.drag = { x0: this.press.x, y0: this.press.y, x1: box.x, y1: box.y };
                this.map.paintOver();
                return;
            }
        }
        this.map.onhover(at ? { query: at.query, key: at.key } : { query: -1, key: -1 });
    }

    pointerReleased(event) {
        const press = this.press,
            drag = this.drag;
        this.press = this.drag = null;
        if (!press) return;
        if (!drag) {
            this.map.onpick({ query: press.query, key: press.key, add: event.shiftKey });
            return;
        }
        const token = (value, from, length, count, first) =>
            first + clampNumber(Math.floor(((value - from) / length) * count), 0, count - 1);
        const rows = [drag.y0, drag.y1].map((y) =>
            token(y, 1, this.map.plotHeight, this.map.rows, this.map.zoom[0]),
        );
        const cols = [drag.x0, drag.x1].map((x) =>
            token(x, this.map.plotLeft, this.map.plotWidth, this.map.cols, this.map.zoom[2]),
        );
        this.map.onzoom([Math.min(...rows), Math.max(...rows) + 1, Math.min(...cols), Math.max(...cols) + 1]);
    }

    // Closer (factor below 1) or farther, the token at the pointer staying where it is.
    zoomAt(at, factor) {
        const middle = {
            query: (this.map.zoom[0] + this.map.zoom[1]) / 2,
            key: (this.map.zoom[2] + this.map.zoom[3]) / 2,
        };
        const query = at && at.query >= 0 ? at.query : middle.query,
            key = at && at.key >= 0 ? at.key : middle.key;
        const span = (from, count, token) => {
            const size = Math.max(4, Math.round(count * factor));
            const start = Math.round(token - ((token - from) / count) * size);
            return [start, start + size];
        };
        this.map.onzoom([
            ...span(this.map.zoom[0], this.map.rows, query),
            ...span(this.map.zoom[2], this.map.cols, key),
        ]);
    }

    keyPressed(event) {
        if (!this.map.data || event.altKey || event.metaKey || event.ctrlKey) return;
        const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
        const cursor =
            this.map.hover.query >= 0 && this.map.hover.key >= 0
                ? this.map.hover
                : { query: this.map.zoom[1] - 1, key: this.map.zoom[2] };
        if (moves[event.key]) {
            const [down, right] = moves[event.key],
                first = this.map.hover.query < 0 || this.map.hover.key < 0;
            this.map.onhover({
                query: clampNumber(cursor.query + (first ? 0 : down), this.map.zoom[0], this.map.zoom[1] - 1),
                key: clampNumber(cursor.key + (first ? 0 : right), this.map.zoom[2], this.map.zoom[3] - 1),
                spoken: true,
            });
        } else if (event.key === 'Enter' || event.key === ' ') this.map.onpick({ ...cursor, add: event.shiftKey });
        else if (event.key === 'r' || event.key === 'R')
            this.map.onpick({ ...cursor, key: -1, add: event.shiftKey });
        else if (event.key === 'c' || event.key === 'C')
            this.map.onpick({ ...cursor, query: -1, add: event.shiftKey });
        else if (event.key === 'Escape') this.map.onescape();
        else if (event.key === '+' || event.key === '=') this.zoomAt(this.map.hover, 0.7);
        else if (event.key === '-') this.zoomAt(this.map.hover, 1.43);
        else if (event.key === '0') this.map.onzoom(null);
        else return;
        event.preventDefault();
    }
}

function pointIn(canvas, event) {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
}
