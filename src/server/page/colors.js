// Colours of values, as the figures have them.
//
// The tables come from C (draw/colormap.c): each map read at evenly spaced places. A scale puts a value onto
// 0..1, the table gives that place its colour. The arithmetic is that of qkv_scale_place, so a weight has
// the same colour here and in a PNG.
//
//     const palette = new Palette({ coolwarm: ['#3b4cc0', ...], viridis: [...] });
//     const scale = new ColorScale(palette.table('coolwarm'), { kind: 'log', low: 0, high: 1 });
//     scale.paint(pixels, at, value);
//
// Pixels are 32 bits in the byte order of ImageData. A cell without a value is transparent: the page shows through.

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

function pixelOf(red, green, blue) {
    return littleEndian
        ? ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0
        : ((red << 24) | (green << 16) | (blue << 8) | 255) >>> 0;
}

function channelsOf(hex) {
    const value = parseInt(hex.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

function linearLight(channel) {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
}

// One map: pixels for images, and for each place whether white or black letters are read on it.
class ColorTable {
    constructor(name, colors) {
        this.name = name;
        this.css = colors;
        this.steps = colors.length - 1;
        this.pixels = new Uint32Array(colors.length);
        this.isDark = new Uint8Array(colors.length);
        colors.forEach((hex, i) => {
            const [red, green, blue] = channelsOf(hex);
            this.pixels[i] = pixelOf(red, green, blue);
            const light = 0.2126 * linearLight(red) + 0.7152 * linearLight(green) + 0.0722 * linearLight(blue);
            this.isDark[i] = light < 0.33 ? 1 : 0;
        });
    }
}

// All maps by name. A table is an array of '#rrggbb', or one string of all of them with '#' between. Tables are made when
// they are first used.
export class Palette {
    constructor(tables) {
        this.colors = new Map(Object.entries(tables));
        this.tables = new Map();
    }

    get names() {
        return [...this.colors.keys()];
    }

    table(name) {
        const known = [name, 'coolwarm', ...this.colors.keys()].find((other) => this.colors.has(other));
        if (!this.tables.has(known)) this.tables.set(known, new ColorTable(known, colorList(this.colors.get(known))));
        return this.tables.get(known);
    }
}

function colorList(colors) {
    if (typeof colors !== 'string') return colors;
    return colors
        .split('#')
        .filter(Boolean)
        .map((color) => '#' + color);
}

export const POWER_GAMMA = 0.5; // as the figures' --gamma
export const CHOSEN_GAMMA = 1 / 3; // of long prompts, where the scale was not asked for

// The smallest weight that a log scale tells apart, as qkv_figure_log_floor: four decades, more where a uniform row
// would lie near the floor.
export function logFloor(low, high, tokens) {
    if (low > 0) return low;
    const uniform = 10 ** Math.floor(Math.log10(1 / tokens / 10) + 1e-9);
    return Math.min(1e-4 * Math.min(high, 1), uniform);
}

const MOST_STEPS = 8; // tables of steps that are kept, the last ones
const keptSteps = new Map();

// From a value to its place in a table. `diverging`: 0 is the middle, for differences.
export class ColorScale {
    constructor(
        table,
        { kind = 'linear', low = 0, high = 1, diverging = false, floor = 1e-4, gamma = POWER_GAMMA } = {},
    ) {
        this.table = table;
        this.kind = kind;
        this.low = diverging ? -high : low;
        this.high = high;
        this.diverging = diverging;
        this.floor = floor;
        this.gamma = gamma;
        this.logSpan = Math.log10(high / floor);
    }

    placeBetween(value, low) {
        if (this.kind === 'log') return value <= this.floor ? 0 : Math.log10(value / this.floor) / this.logSpan;
        const linear = (value - low) / (this.high - low);
        if (this.kind === 'power') return linear > 0 ? linear ** this.gamma : 0;
        return linear;
    }

    place(value) {
        if (!this.diverging) {
            const place = this.placeBetween(value, this.low);
            return place > 0 ? Math.min(place, 1) : 0;
        }
        const half = Math.min(Math.max(this.placeBetween(Math.abs(value), 0), 0), 1) / 2;
        return value < 0 ? 0.5 - half : 0.5 + half;
    }

    // What a place on the bar stands for: the inverse of place().
    valueAt(place) {
        if (this.diverging) {
            const size = this.magnitudeAt(Math.abs(2 * place - 1), 0);
            return place < 0.5 ? -size : size;
        }
        return this.magnitudeAt(place, this.low);
    }

    magnitudeAt(part, low) {
        if (this.kind === 'log') return part <= 0 ? 0 : this.floor * 10 ** (part * this.logSpan);
        if (this.kind === 'power') return low + (this.high - low) * part ** (1 / this.gamma);
        return low + (this.high - low) * part;
    }

    step(value) {
        return Math.round(this.place(value) * this.table.steps);
    }

    pixel(value) {
        return value === value ? this.table.pixels[this.step(value)] : 0;
    }

    // From which magnitude on each step of the table begins, and for every first 16 bits of a single-precision number
    // (without its sign) the step of the smallest such number: a search of one or two comparisons, where place() takes
    // a logarithm or a power.
    makeSteps() {
        const half = this.diverging ? 2 : 1,
            count = Math.floor(this.table.steps / half),
            low = this.diverging ? 0 : this.low;
        const starts = new Float32Array(count + 2).fill(Infinity);
        starts[0] = -Infinity;
        for (let i = 1; i <= count; i++) starts[i] = this.magnitudeAt((i - 0.5) / count, low);
        const buckets = new Uint16Array(0x7f80),
            bits = new Uint32Array(1),
            number = new Float32Array(bits.buffer);
        for (let i = 0, step = 0; i < buckets.length; i++) {
            bits[0] = i << 16;
            while (number[0] >= starts[step + 1]) step++;
            buckets[i] = step;
        }
        return { starts, buckets };
    }

    // Made once for scales alike: the page makes scales anew at every move.
    steps() {
        const { kind, low, high, floor, gamma, diverging, table } = this,
            key = [kind, low, high, floor, gamma, diverging, table.steps].join();
        let steps = keptSteps.get(key);
        if (steps) return steps;
        if (keptSteps.size >= MOST_STEPS) keptSteps.delete(keptSteps.keys().next().value);
        keptSteps.set(key, (steps = this.makeSteps()));
        return steps;
    }

    // Pixels of values[from], ... into out[at], ..., count of them. values: single precision.
    paintRow(values, from, count, out, at) {
        const { starts, buckets } = (this.ownSteps ??= this.steps()),
            { pixels, steps } = this.table,
            bits = new Uint32Array(values.buffer, values.byteOffset, values.length),
            middle = this.diverging ? steps / 2 : 0;
        for (let i = 0; i < count; i++) {
            const size = bits[from + i] & 0x7fffffff,
                isNegative = bits[from + i] !== size;
            if (size >= 0x7f800000 || (isNegative && !this.diverging)) {
                out[at + i] = this.pixel(values[from + i]);
                continue;
            }
            const value = isNegative ? -values[from + i] : values[from + i];
            let step = buckets[size >>> 16];
            while (value >= starts[step + 1]) step++;
            out[at + i] = pixels[isNegative ? middle - step : middle + step];
        }
    }

    css(value) {
        return value === value ? this.table.css[this.step(value)] : 'transparent';
    }

    isDark(value) {
        return this.table.isDark[this.step(value)] === 1;
    }
}

export const LINEAR_TOKENS = 40; // as the figures: longer prompts are drawn on a log scale, differences on a power scale

// The scale of attention weights, as the figures have it. options: scale, low and high of a head view (head.js).
// largest: the largest weight that is shown, where keys are hidden: colours end there if no range is chosen.
export function weightScale(table, { scale, low, high }, tokens, largest = null) {
    const bottom = low ?? 0,
        top = high ?? (low === null && largest !== null ? largest : 1),
        end = top > bottom ? top : bottom + 1;
    return new ColorScale(table, {
        kind: scale !== 'auto' ? scale : tokens <= LINEAR_TOKENS ? 'linear' : 'log',
        low: bottom,
        high: end,
        floor: logFloor(bottom, end, tokens),
    });
}

// The two ends of a scale, as its bar says them.
export function endsOf({ kind, diverging, floor, low, high }) {
    return [kind === 'log' && !diverging ? floor : low, high];
}

// Draws the map itself as a bar, low at the left.
export function drawColorBar(canvas, scale) {
    const width = 128;
    canvas.width = width;
    canvas.height = 1;
    const context = canvas.getContext('2d');
    const image = context.createImageData(width, 1);
    const pixels = new Uint32Array(image.data.buffer);
    for (let x = 0; x < width; x++) {
        pixels[x] = scale.table.pixels[Math.round((x / (width - 1)) * scale.table.steps)];
    }
    context.putImageData(image, 0, 0);
}
