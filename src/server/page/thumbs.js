// Small maps as the figure has them: one canvas a map, a pixel a cell, enlarged by the browser.
//
//     const canvas = thumbCanvas({ values, rows, cols, step, causal, window }, scale, { maskedZero, skipKeys, label });
import { visibleKeys } from './attention.js';
import { el } from './text.js';

const MOST = 256; // pixels on a side; beyond that a pixel is the value of largest magnitude

function isMaskedCell({ cols, step, causal, window }, row, col) {
    if (col < 0) return false;
    if (step > 1) return causal && col > row;
    const [first, end] = visibleKeys(row, cols, causal, window);
    return col < first || col >= end;
}

export function paintThumb(canvas, map, scale, { maskedZero = false, skipKeys = 0 } = {}) {
    const skip = Math.min(Math.floor(skipKeys / map.step), map.cols - 1), extra = map.share ? 1 : 0;
    const cols = map.cols - skip + extra, width = Math.min(cols, MOST), height = Math.min(map.rows, MOST);
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext('2d');
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const best = new Float32Array(width * height);
    const seen = new Uint8Array(width * height);
    const square = map.rows === map.cols;
    for (let row = 0; row < map.rows; row++) {
        const y = Math.floor((row * height) / map.rows);
        // Column -1 is what a learned sink takes, where the figure shows that.
        for (let i = 0; i < cols; i++) {
            const col = i < extra ? -1 : i - extra + skip;
            const at = y * width + Math.floor((i * width) / cols), value = col < 0 ? map.share[row] : map.values[row * map.cols + col];
            if (value !== 0 || maskedZero || !square || !isMaskedCell(map, row, col)) seen[at] = 1;
            if (Math.abs(value) > Math.abs(best[at])) best[at] = value;
        }
    }
    for (let i = 0; i < pixels.length; i++) pixels[i] = seen[i] ? scale.pixel(best[i]) : 0;
    context.putImageData(image, 0, 0);
}

export function thumbCanvas(map, scale, options) {
    const canvas = el('canvas', { class: 'thumb', role: 'img', 'aria-label': options.label ?? 'attention map' });
    paintThumb(canvas, map, scale, options);
    return canvas;
}
