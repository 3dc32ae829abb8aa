// What the page can draw as a figure (name in the address, and text), and how a figure of `qkv figure` is shown here.
export const FIGURE_KINDS = [
    ['grid', 'This head, before and after'],
    ['diff', 'The difference'],
    ['pattern', 'This head, as it is now'],
    ['modify', 'Figure: scaling by ε'],
    ['mean', 'Figure: the mean over heads'],
    ['heads', 'All heads'],
];

export function figureKind(kind, display) {
    if ((kind === 'grid' || kind === 'pattern') && display.diff) return 'diff';
    return FIGURE_KINDS.some(([name]) => name === kind) ? kind : 'grid';
}

// The head view's options for a figure's display options; what OutPanel.displayOptions makes of them.
export function displayView({ scale, colormap, skip_keys: skipKeys, range, masked, diff }) {
    const view = {};
    if (['linear', 'log', 'power'].includes(scale)) view.scale = scale;
    if (typeof colormap === 'string') view.colormap = colormap;
    if (Number.isInteger(skipKeys)) view.skipKeys = skipKeys;
    if (Array.isArray(range)) [view.low, view.high] = diff ? [null, range[1]] : range;
    if (masked === 'zero') view.maskedZero = true;
    return view;
}
