// The next tokens: probability before and after, and their change as bars. Before is an outline, after is filled.
import { changeText, el, listed, numberText, svgEl, tokenNode } from './text.js';

const MOST_ROWS = 12;

export class NextTable {
    constructor() {
        this.rows = el('tbody');
        this.divergence = el('span');
        this.loss = el('span');
        this.numbers = el('p', { class: 'numbers' });
        this.element = el(
            'div',
            {},
            el(
                'table',
                {},
                el(
                    'thead',
                    {},
                    el(
                        'tr',
                        {},
                        el('th', { scope: 'col' }, 'token'),
                        el('th', { scope: 'col', class: 'num' }, 'before'),
                        el('th', { scope: 'col', class: 'num' }, 'after'),
                        el('th', { scope: 'col', class: 'num' }, 'change'),
                        el('th', { scope: 'col', class: 'bars' }, el('span', { class: 'unseen' }, 'as bars')),
                    ),
                ),
                this.rows,
            ),
            this.numbers,
        );
    }

    // reply: { tokens: [{ text, before, after, rank_before, rank_after }], kl }; after: not without edits.
    show({ tokens, kl }) {
        const most = Math.max(1e-9, ...tokens.map(({ before, after }) => Math.max(before, after ?? 0)));
        this.rows.replaceChildren(...tokens.slice(0, MOST_ROWS).map((token) => this.row(token, most)));
        this.showNumbers(this.divergence, 'KL', [kl]);
    }

    clear() {
        this.rows.replaceChildren();
        for (const node of [this.divergence, this.loss]) this.showNumbers(node, '', []);
    }

    showLoss(before, after) {
        this.showNumbers(this.loss, 'mean loss of the prompt', [before, after]);
    }

    // Those that there are, before → after, in their place of the line.
    showNumbers(node, name, values) {
        const known = values.filter((value) => value !== null && value !== undefined);
        node.replaceChildren(...(known.length ? [`${name} `, el('b', {}, known.map((value) => numberText(value)).join(' → '))] : []));
        this.numbers.replaceChildren(...listed([this.divergence, this.loss].filter((part) => part.firstChild)));
    }

    row({ text, before, after = null, rank_before: rankBefore, rank_after: rankAfter }, most) {
        const moved =
            after !== null && rankBefore !== rankAfter ? `rank ${rankBefore} → ${rankAfter}` : `rank ${rankBefore}`;
        const bar = svgEl(
            'svg',
            { class: 'change-bar', viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
            svgEl('rect', {
                class: 'is',
                x: 0,
                y: 3,
                width: (((after ?? before) / most) * 100).toFixed(2),
                height: 6,
            }),
            svgEl('rect', {
                class: 'was',
                x: 0.5,
                y: 1,
                width: Math.max(0, (before / most) * 100 - 1).toFixed(2),
                height: 10,
                'vector-effect': 'non-scaling-stroke',
            }),
        );
        return el(
            'tr',
            { title: moved },
            el('td', { class: 'token-cell' }, tokenNode(text)),
            el('td', { class: 'num' }, numberText(before, 3)),
            el('td', { class: 'num' }, after === null ? '' : numberText(after, 3)),
            el('td', { class: 'num' }, after === null ? '' : changeText(after - before, 2)),
            el('td', { class: 'bars' }, bar),
        );
    }
}
