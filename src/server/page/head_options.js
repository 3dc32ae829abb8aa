// The options of a head view, as they are where nothing else was chosen. head.js says what each means.

export function defaultHeadOptions() {
    return {
        show: { before: true, after: true, diff: true, lines: true },
        scale: 'auto',
        low: null,
        high: null,
        colormap: 'coolwarm',
        skipKeys: 0,
        renormalise: false,
        maskedZero: false,
        lines: 'after',
        pins: { queries: [], keys: [] },
        zoom: null,
    };
}
