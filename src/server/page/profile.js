// The pinned rows or columns as bars: how much the pinned queries, summed, look at each key, or how much each query
// looks at the pinned keys. Before is an outline, after is filled, so they differ without colour.
//
//     const profile = new Profile();
//     profile.show({ title, labels, before, after, from });     // Float32Arrays of one length
import { axisLabel, clampNumber, el, isolated, numberText } from './text.js';
import { sizeCanvas, themeColors } from './map.js';

export class Profile {
    constructor() {
        this.canvas = el('canvas', { role: 'img', 'aria-label': 'Weights of what is pinned' });
        this.caption = el('figcaption');
        this.element = el('figure', { class: 'profile', hidden: true }, this.caption, this.canvas);
        this.content = null;
    }

    show(content) {
        this.content = content;
        this.element.hidden = !content;
        if (content) this.paint();
    }

    paint() {
        const { title, labels, before, after, from } = this.content;
        this.caption.textContent = title;
        const width = this.element.clientWidth;
        if (width < 60) return;
        const theme = themeColors(this.element),
            size = clampNumber(theme.size * 0.76, 9, 15);
        const plotHeight = theme.size * 5.2,
            foot = theme.size * 3.6;
        const context = sizeCanvas(this.canvas, width, plotHeight + foot);
        context.clearRect(0, 0, width, plotHeight + foot);
        const most = Math.max(1e-12, ...extremes(before), ...extremes(after));
        context.font = `${size}px ${theme.font}`;
        const left = Math.max(theme.size * 2.6, context.measureText(numberText(most, 2)).width + 8),
            count = before.length,
            cell = (width - left) / count;
        context.fillStyle = theme.soft;
        context.textAlign = 'right';
        context.textBaseline = 'top';
        context.fillText(numberText(most, 2), left - 6, 0);
        context.textBaseline = 'bottom';
        context.fillText('0', left - 6, plotHeight + size / 2);
        context.strokeStyle = theme.line;
        context.strokeRect(left, plotHeight + 0.5, width - left, 0);
        const bar = Math.max(1, Math.min(cell * 0.8, theme.size * 1.6));
        for (let i = 0; i < count; i++) {
            const x = left + (i + 0.5) * cell - bar / 2;
            if (after) {
                const height = (after[i] / most) * (plotHeight - 2);
                context.fillStyle = theme.accent;
                context.fillRect(x, plotHeight - height, bar, height);
            }
            const height = (before[i] / most) * (plotHeight - 2);
            context.strokeStyle = theme.before;
            context.lineWidth = bar > 4 ? 1.5 : 1;
            if (bar > 4) context.strokeRect(x + 0.5, plotHeight - height, bar - 1, height);
            else context.strokeRect(x, plotHeight - height, bar, 0);
        }
        this.drawLabels(context, theme, { labels, from, count, cell, left, size, plotHeight, foot });
        this.canvas.setAttribute('aria-label', `${title}. ${this.spoken()}`);
    }

    drawLabels(context, theme, { labels, from, count, cell, left, size, plotHeight, foot }) {
        const every = Math.max(1, Math.ceil((size * 1.05) / cell));
        context.fillStyle = theme.soft;
        context.textAlign = 'right';
        context.textBaseline = 'middle';
        context.direction = 'ltr';
        for (let i = 0; i < count; i += every) {
            context.save();
            context.translate(left + (i + 0.5) * cell, plotHeight + 5);
            context.rotate(-Math.PI / 2);
            context.fillText(isolated(axisLabel(labels[from + i] ?? '', 10)), 0, 0, foot - 6);
            context.restore();
        }
    }

    // The largest few, for those who do not see the bars.
    spoken() {
        const { labels, before, after, from } = this.content;
        const order = [...before.keys()].sort((a, b) => (after || before)[b] - (after || before)[a]).slice(0, 5);
        return order
            .map(
                (i) =>
                    `${axisLabel(labels[from + i] ?? '')}: ${numberText(before[i], 3)}` +
                    (after ? ` before, ${numberText(after[i], 3)} after` : ''),
            )
            .join('; ');
    }
}

function extremes(values) {
    if (!values) return [0];
    let most = 0;
    for (const value of values) if (value > most) most = value;
    return [most];
}
