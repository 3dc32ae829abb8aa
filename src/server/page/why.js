// Why a pinned cell has its weight: what each channel adds to the product of query and key, and which tokens the head
// would write for that key's value, through the output matrix.
import { changeText, clampNumber, el, listed, numberText, tokenNode } from './text.js';
import { sizeCanvas, themeColors } from './map.js';

const HINT =
    'Pin one cell of the map (click it, or press Enter) to see what each channel adds to its score, and what the head writes for that key.';
const LARGEST_SHOWN = 6,
    MOST_WRITTEN = 8;

export class Why {
    constructor(element) {
        this.element = element;
        this.canvas = el('canvas', { role: 'img' });
        this.tip = el('p', { class: 'tip' });
        this.title = el('h3');
        this.older = el('span', { class: 'older-mark', hidden: true });
        this.sums = el('p', { class: 'numbers' });
        this.body = el('div', { class: 'why-part' }, this.title, this.canvas, this.tip, this.sums);
        this.written = el('div', { class: 'why-part' });
        this.canvas.addEventListener('pointermove', (event) => this.point(event));
        this.canvas.addEventListener('pointerleave', () => this.showLargest());
        new ResizeObserver(() => this.reply && this.paint()).observe(element);
        this.show(null);
    }

    fail(error) {
        this.reply = null;
        this.element.replaceChildren(el('p', { class: 'hint' }, error.message));
    }

    // reply: { before: { score, channels }, after: the same or null, bias, writes: [{ text, logit }], writes_after }
    show(reply, about) {
        this.reply = reply;
        if (!reply) return this.element.replaceChildren(el('p', { class: 'hint' }, HINT));
        this.element.replaceChildren(this.body, this.written);
        this.title.replaceChildren(
            'q·k of query ',
            tokenNode(about.tokens[about.query]),
            ' and key ',
            tokenNode(about.tokens[about.key]),
            ', channel by channel ',
            this.older,
        );
        const { before, after } = reply;
        const sum = (name, side) =>
            el(
                'span',
                {},
                `${name}: sum of ${side.channels.length} channels `,
                el('b', {}, numberText(side.score, 6)),
            );
        const bias = reply.bias ? el('span', {}, 'the distance adds ', el('b', {}, changeText(reply.bias, 4))) : null;
        this.sums.replaceChildren(...listed([sum('before', before), after && sum('after', after), bias].filter(Boolean)));
        this.paint();
        this.showLargest();
        this.showWritten(reply, about);
    }

    forgetTheme() {
        if (this.reply) this.paint();
    }

    // Bars up and down from zero: before an outline, after filled.
    paint() {
        const { before, after } = this.reply,
            count = before.channels.length;
        const width = this.body.clientWidth,
            theme = themeColors(this.body),
            height = theme.size * 9;
        if (width < 60) return;
        const context = sizeCanvas(this.canvas, width, height);
        context.clearRect(0, 0, width, height);
        const most = Math.max(1e-12, ...before.channels.map(Math.abs), ...(after?.channels ?? []).map(Math.abs));
        const left = theme.size * 3,
            cell = (width - left) / count,
            middle = height / 2,
            reach = middle - 6;
        this.geometry = { left, cell, count };
        context.font = `${clampNumber(theme.size * 0.74, 9, 15)}px ${theme.font}`;
        context.fillStyle = theme.soft;
        context.textAlign = 'right';
        context.textBaseline = 'middle';
        for (const value of [most, 0, -most])
            context.fillText(numberText(value, 2), left - 6, middle - (value / most) * (reach - 2));
        context.strokeStyle = theme.line;
        context.strokeRect(left, middle, width - left, 0);
        const bar = Math.max(1, cell - (cell > 5 ? 2 : 0.5));
        for (let i = 0; i < count; i++) {
            const x = left + i * cell,
                tall = (value) => (value / most) * reach;
            const now = (after ?? before).channels[i];
            context.fillStyle = now < 0 ? theme.down : theme.up;
            context.fillRect(x, middle - Math.max(tall(now), 0), bar, Math.abs(tall(now)));
            if (!after) continue;
            const was = tall(before.channels[i]);
            context.strokeStyle = theme.before;
            context.strokeRect(x + 0.5, middle - Math.max(was, 0), Math.max(bar - 1, 0.5), Math.abs(was));
        }
        this.canvas.setAttribute('aria-label', `Contribution of each of ${count} channels. ${this.largestText()}`);
    }

    channelText(i) {
        const { before, after } = this.reply;
        return `channel ${i}: ${changeText(before.channels[i], 4)}${after ? ` → ${changeText(after.channels[i], 4)}` : ''}`;
    }

    largestText() {
        const values = (this.reply.after ?? this.reply.before).channels;
        const order = values
            .map((_, i) => i)
            .sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]))
            .slice(0, LARGEST_SHOWN);
        return `Largest: ${order.map((i) => `${i} (${changeText(values[i], 3)})`).join(', ')}`;
    }

    showLargest() {
        if (this.reply) this.tip.textContent = this.largestText();
    }

    point(event) {
        if (!this.geometry) return;
        const i = Math.floor((event.offsetX - this.geometry.left) / this.geometry.cell);
        if (i >= 0 && i < this.geometry.count) this.tip.textContent = this.channelText(i);
    }

    // After an edit of the value the head writes something else: both stand here.
    showWritten({ writes, writes_after: after }, about) {
        const list = (title, tokens) =>
            el(
                'table',
                {},
                el(
                    'thead',
                    {},
                    el(
                        'tr',
                        {},
                        el('th', { scope: 'col' }, title),
                        el('th', { scope: 'col', class: 'num' }, 'adds to its logit'),
                    ),
                ),
                el(
                    'tbody',
                    {},
                    ...tokens
                        .slice(0, MOST_WRITTEN)
                        .map(({ text, logit }) =>
                            el(
                                'tr',
                                {},
                                el('td', { class: 'token-cell' }, tokenNode(text)),
                                el('td', { class: 'num' }, changeText(logit, 4)),
                            ),
                        ),
                ),
            );
        const parts = writes?.length
            ? [list(after ? 'before' : 'token', writes)]
            : [el('p', { class: 'hint' }, 'This model has no output matrix.')];
        if (after?.length && JSON.stringify(after) !== JSON.stringify(writes)) parts.push(list('after', after));
        this.written.replaceChildren(
            el('h3', {}, 'What the head writes for the value of ', tokenNode(about.tokens[about.key])),
            ...parts,
        );
    }
}
