// Charts as SVG: values against ε with a band, and bars in order. Colours are the page's, so they follow light and dark;
// series differ by dash and mark, too.
import { factorText, numberText, svgEl } from './text.js';

const SERIES_COLORS = ['var(--accent)', 'var(--mark)', 'var(--good)', 'var(--up)', 'var(--ink-soft)', 'var(--down)'];
const SERIES_DASHES = ['', '6 3', '2 3', '9 3 2 3', '4 4', '1 4'];
const CHART_FOOT = 34, CHART_TOP = 18, CHART_LEFT = 54, CHART_RIGHT = 12;

// Places of ε from 0 to 1. On a log axis 0 has a place of its own at the left end.
function axisOf(values, isLog) {
    const positive = values.filter((x) => x > 0);
    if (!isLog || !positive.length) {
        const low = Math.min(...values), high = Math.max(...values);
        return (x) => (high > low ? (x - low) / (high - low) : 0.5);
    }
    const hasZero = values.some((x) => x <= 0), start = hasZero ? 0.08 : 0;
    const low = Math.log10(Math.min(...positive)), high = Math.log10(Math.max(...positive));
    return (x) => (x <= 0 ? 0 : high > low ? start + ((1 - start) * (Math.log10(x) - low)) / (high - low) : 0.5);
}

function niceTicks(low, high, count = 4) {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map((part) => part * power).find((size) => size >= rough) ?? power;
    const ticks = [];
    for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Number(tick.toPrecision(12)));
    return ticks;
}

function chartText(x, y, content, attributes = {}) {
    return svgEl('text', { x, y, class: 'chart-text', ...attributes }, content);
}

// Lines through the points that have a value.
function pathOf(points, x, y) {
    let path = '', open = false;
    for (const point of points) {
        const fits = Number.isFinite(y(point)) && Number.isFinite(x(point));
        if (fits) path += `${open ? 'L' : 'M'}${x(point).toFixed(1)} ${y(point).toFixed(1)}`;
        open = fits;
    }
    return path;
}

// series: [{ name, points: [{ x, mean, low, high }] }]
export function drawCurve(series, { width, height, label, log = true, logY = false, reference = null, band = true, cursor = null }) {
    const all = series.flatMap(({ points }) => points).filter(({ x }) => x !== null);
    const numbers = all.flatMap(({ mean, low, high }) => [mean, band ? low : mean, band ? high : mean]).concat(reference ?? [])
        .filter((value) => Number.isFinite(value) && (!logY || value > 0));
    let low = Math.min(...numbers), high = Math.max(...numbers);
    if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
    const legend = series.length > 1 ? Math.ceil(series.length / Math.max(1, Math.floor(width / 130))) * 16 : 0;
    const place = axisOf(all.map(({ x }) => x), log), plotWidth = width - CHART_LEFT - CHART_RIGHT, plotHeight = height - CHART_TOP - CHART_FOOT - legend;
    const toY = (value) => CHART_TOP + plotHeight * (1 - (logY ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)));
    const toX = (x) => CHART_LEFT + plotWidth * place(x);
    const parts = [];
    for (const tick of niceTicks(low, high)) {
        if (logY) break;
        parts.push(svgEl('line', { x1: CHART_LEFT, x2: width - CHART_RIGHT, y1: toY(tick), y2: toY(tick), class: 'chart-grid' }),
                   chartText(CHART_LEFT - 5, toY(tick) + 4, numberText(tick, 3), { 'text-anchor': 'end' }));
    }
    if (logY) for (const value of [low, high]) parts.push(chartText(CHART_LEFT - 5, toY(value) + 4, numberText(value, 2), { 'text-anchor': 'end' }));
    parts.push(...epsilonTicks([...new Set(all.map(({ x }) => x))], toX, CHART_TOP + plotHeight));
    if (reference !== null && Number.isFinite(reference) && (!logY || reference > 0)) {
        parts.push(svgEl('line', { x1: CHART_LEFT, x2: width - CHART_RIGHT, y1: toY(reference), y2: toY(reference), class: 'chart-reference' }),
                   chartText(width - CHART_RIGHT, toY(reference) - 4, 'unedited', { 'text-anchor': 'end' }));
    }
    if (cursor !== null) parts.push(svgEl('line', { x1: toX(cursor), x2: toX(cursor), y1: CHART_TOP, y2: CHART_TOP + plotHeight, class: 'chart-cursor' }));
    series.forEach(({ name, points }, i) => parts.push(...drawSeries(name, points, i, { toX, toY, band })));
    parts.push(...(legend ? drawLegend(series, width, height - legend) : []), chartText(CHART_LEFT, height - legend - 4, `${label} against ε`));
    return svgEl('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'curve', role: 'img',
                          'aria-label': `${label} against ε: ${series.map(({ name }) => name).join(', ')}` }, ...parts);
}

function drawSeries(name, points, i, { toX, toY, band }) {
    const color = SERIES_COLORS[i % SERIES_COLORS.length], parts = [];
    const known = points.filter(({ x, low, high }) => x !== null && Number.isFinite(low) && Number.isFinite(high));
    if (band && known.length > 1 && known.some(({ low, high }) => high > low)) {
        const up = pathOf(known, ({ x }) => toX(x), ({ high }) => toY(high));
        const down = pathOf([...known].reverse(), ({ x }) => toX(x), ({ low }) => toY(low)).replace('M', 'L');
        parts.push(svgEl('path', { d: `${up}${down}Z`, fill: color, 'fill-opacity': '0.14' }));
    }
    parts.push(svgEl('path', { d: pathOf(points, ({ x }) => toX(x), ({ mean }) => toY(mean)), fill: 'none', stroke: color, 'stroke-width': '1.8',
                               'stroke-dasharray': SERIES_DASHES[i % SERIES_DASHES.length] }));
    for (const { x, mean, low, high } of points) {
        if (!Number.isFinite(mean)) continue;
        const range = high > low ? ` (${numberText(low, 3)} to ${numberText(high, 3)})` : '';
        parts.push(svgEl('circle', { cx: toX(x), cy: toY(mean), r: '3', fill: color },
                         svgEl('title', {}, `${name}, ε = ${factorText(x)}: ${numberText(mean, 4)}${range}`)));
    }
    return parts;
}

function drawLegend(series, width, top) {
    const column = 130, across = Math.max(1, Math.floor(width / column));
    return series.flatMap(({ name }, i) => {
        const x = 8 + (i % across) * column, y = top + 10 + Math.floor(i / across) * 16;
        return [svgEl('line', { x1: x, x2: x + 22, y1: y, y2: y, stroke: SERIES_COLORS[i % SERIES_COLORS.length], 'stroke-width': '2', 'stroke-dasharray': SERIES_DASHES[i % SERIES_DASHES.length] }),
                chartText(x + 27, y + 4, name)];
    });
}

// As many ticks of ε as have room.
function epsilonTicks(values, toX, y) {
    const parts = [];
    let free = -Infinity;
    for (const x of values.sort((a, b) => a - b)) {
        const at = toX(x), name = factorText(x), half = name.length * 3.4;
        if (at - half < free) continue;
        free = at + half + 6;
        parts.push(svgEl('line', { x1: at, x2: at, y1: y, y2: y + 4, class: 'chart-axis' }), chartText(at, y + 16, name, { 'text-anchor': 'middle' }));
    }
    return parts;
}

// bars: [{ label, mean, low, high, group }], the first at the top
export function drawBars(bars, { width, label, groups, onpick }) {
    const numbers = bars.flatMap(({ mean, low, high }) => [mean, low, high]).filter((value) => value !== null && Number.isFinite(value));
    const low = Math.min(0, ...numbers), high = Math.max(0, ...numbers), line = 20, left = 150;
    const toX = (value) => left + ((width - left - 60) * (value - low)) / (high - low || 1);
    const height = bars.length * line + 24;
    const parts = bars.flatMap((bar, i) => {
        const y = i * line + 4, from = Math.min(toX(0), toX(bar.mean)), color = SERIES_COLORS[Math.max(0, bar.group) % SERIES_COLORS.length];
        const name = groups.length > 1 ? `${groups[bar.group]} ${bar.label}` : bar.label;
        const row = svgEl('g', { class: 'bar-row', role: 'button', tabindex: '0', 'aria-label': `${name}: ${numberText(bar.mean, 4)}. Opens it.`,
                                 onclick: () => onpick(bar), onkeydown: (event) => (event.key === 'Enter' || event.key === ' ') && onpick(bar) },
            svgEl('rect', { x: 0, y: y - 2, width, height: line, class: 'bar-back' }),
            chartText(left - 6, y + 12, name, { 'text-anchor': 'end' }),
            svgEl('rect', { x: from, y, width: Math.max(1, Math.abs(toX(bar.mean) - toX(0))), height: line - 6, fill: color }),
            chartText(toX(Math.max(bar.mean, bar.high ?? bar.mean, 0)) + 5, y + 12, numberText(bar.mean, 3)));
        if (bar.high > bar.low) row.append(svgEl('line', { x1: toX(bar.low), x2: toX(bar.high), y1: y + 7, y2: y + 7, class: 'chart-axis' }));
        return [row];
    });
    return svgEl('svg', { viewBox: `0 0 ${width} ${height}`, width, height, class: 'curve', role: 'group', 'aria-label': label }, ...parts,
                 chartText(left, height - 6, label));
}
