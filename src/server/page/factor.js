// The way from a slider's place to a factor ε, and back. Logarithmic, with 0 at the left end and 1 well in reach: most
// of the way is given to 0.001 .. 1, where maps change, little to what lies below and above.
//
//     factorAt(840) === 1;   factorAt(0) === 0;   placeOf(1e-3) === 240
//
// The curve of a metric against ε has the same axis as the slider, so its cursor stands above the slider's thumb.

export const FACTOR_STEPS = 1000;

// [place, power of ten]: straight lines between them.
const KNOTS = [
    [60, -10],
    [240, -3],
    [840, 0],
    [1000, 1],
];
const SNAP = 4; // places near 1 are 1

export const SMALLEST_PLACE = KNOTS[0][0]; // between 0 and it there is nothing

export const FACTOR_TICKS = [
    [0, '0'],
    [1e-3, '0.001'],
    [0.01, '.01'],
    [0.1, '.1'],
    [1, '1'],
    [10, '10'],
];

// Three significant digits: the edit's text is short, and the number is the one that the text says.
export function factorAt(place) {
    if (place < KNOTS[0][0] / 2) return 0;
    if (Math.abs(place - 840) <= SNAP) return 1;
    const at = Math.max(place, KNOTS[0][0]);
    const i = KNOTS.findIndex(([to], k) => k > 0 && at <= to);
    const [from, low] = KNOTS[i - 1],
        [to, high] = KNOTS[i];
    return Number((10 ** (low + ((high - low) * (at - from)) / (to - from))).toPrecision(3));
}

// The sign of a factor is not the slider's.
export function placeOf(factor) {
    const size = Math.abs(factor);
    if (!(size > 0)) return 0;
    const power = Math.log10(size);
    if (power <= KNOTS[0][1]) return KNOTS[0][0];
    const i = KNOTS.findIndex(([, high], k) => k > 0 && power <= high);
    if (i < 0) return FACTOR_STEPS;
    const [from, low] = KNOTS[i - 1],
        [to, high] = KNOTS[i];
    return Math.round(from + ((power - low) / (high - low)) * (to - from));
}

// The factors of a curve: 0, and evenly along the slider.
export function curveFactors(count = 25) {
    const list = [0, 1e-10, 1e-6];
    for (let i = 0; i < count; i++) list.push(factorAt(Math.round(240 + ((FACTOR_STEPS - 240) * i) / (count - 1))));
    return [...new Set([...list, 0.5, 1])].sort((a, b) => a - b);
}
