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

// All maps by name. A table is an array of '#rrggbb', or one string of all of them with '#' between.
export class Palette {
    constructor(tables) {
        this.tables = new Map();
        for (const [name, colors] of Object.entries(tables)) {
            const list =
                typeof colors === 'string'
                    ? colors
                          .split('#')
                          .filter(Boolean)
                          .map((c) => '#' + c)
                    : colors;
            this.tables.set(name, new ColorTable(name, list));
        }
    }

    get names() {
        return [...this.tables.keys()];
    }

    table(name) {
        return this.tables.get(name) || this.tables.get('coolwarm') || this.tables.values().next().value;
    }
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

    css(value) {
        return value === value ? this.table.css[this.step(value)] : 'transparent';
    }

    isDark(value) {
        return this.table.isDark[this.step(value)] === 1;
    }
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
