// The numbers of a head's maps: those of the cell under the pointer, those that are pinned, and their sums.
import { changeText, countText, el, listed, numberText, tokenNode } from './text.js';
import { Profile } from './profile.js';

const DIGITS = 6;

export class HeadNumbers {
    constructor(view) {
        this.view = view;
        this.readout = el('p', { class: 'readout' });
        this.pinned = el('div', { class: 'pinned', hidden: true });
        this.pinHint = el(
            'p',
            { class: 'pinned-none hint' },
            'A click pins a cell, a label its row or column. Shift adds to the sum, Esc unpins.',
        );
        this.pinHint.title = this.pinHint.textContent;
        // Both are always there, as high as they are: the maps below them must not move under the pointer. Where tokens and
        // weights do not fit beside each other, each has two lines.
        this.lines = el('div', { class: 'head-lines' }, this.readout, this.pinned, this.pinHint);
        this.profile = new Profile();
    }

    tokenLabel(kind, token) {
        return el(
            'span',
            { class: 'place' },
            `${kind} `,
            tokenNode(this.view.data[kind === 'query' ? 'queries' : 'keys'][token] ?? ''),
            el('span', { class: 'index' }, ` ${countText(token)}`),
        );
    }

    weightTexts(before, after) {
        const parts = [];
        const add = (kind, name, text) =>
            parts.push(el('span', { class: `weight weight-${kind}` }, `${name} `, el('b', {}, text)));
        if (after === undefined) add('weight', 'weight', numberText(before, DIGITS));
        else {
            add('before', this.view.nameOf('before'), numberText(before, DIGITS));
            add('after', this.view.nameOf('after'), numberText(after, DIGITS));
            add('change', 'change', changeText(after - before, 4));
        }
        return parts;
    }

    showReadout() {
        const { query, key } = this.view.hover,
            { readout } = this;
        if (!this.view.data || (query < 0 && key < 0)) {
            if (readout.firstChild?.className === 'hint') return;
            readout.replaceChildren(
                el('span', { class: 'hint' }, 'Point at a cell for its numbers.'),
            );
            readout.title = '';
            return;
        }
        const places = [],
            weights = [];
        if (query >= 0) places.push(this.tokenLabel('query', query));
        if (key >= 0) places.push(this.tokenLabel('key', key));
        if (query >= 0 && key >= 0) {
            weights.push(
                ...this.weightTexts(this.view.weight('before', query, key), this.view.weight('after', query, key)),
            );
            if (this.view.data.step > 1) weights.push(el('span', { class: 'hint' }, 'largest of its block'));
        } else if (this.view.data.sink && query >= 0) {
            const { before, after } = this.view.data.sink;
            weights.push(el('span', {}, 'learned sink'), ...this.weightTexts(before[query], after?.[query]));
        }
        readout.replaceChildren(...groups(places, weights));
        readout.title = fullText([...places, ...weights]);
    }

    showPinned() {
        const { queries, keys } = this.view.settings.pins,
            { pinned } = this;
        pinned.hidden = !this.view.data || (!queries.length && !keys.length);
        this.pinHint.hidden = !pinned.hidden;
        if (pinned.hidden) return this.profile.show(null);
        const close = el(
            'button',
            {
                type: 'button',
                class: 'quiet close',
                title: 'Unpin (Esc)',
                'aria-label': 'Unpin',
                onclick: () => this.view.unpin(),
            },
            '✕',
        );
        const places = [el('span', { class: 'pin-mark' }, 'pinned')],
            weights = [];
        const list = (kind, tokens) => {
            if (!tokens.length) return;
            if (tokens.length === 1) places.push(this.tokenLabel(kind, tokens[0]));
            else {
                const nodes = tokens
                    .slice(0, 8)
                    .flatMap((t) => [
                        tokenNode(this.view.data[kind === 'query' ? 'queries' : 'keys'][t] ?? ''),
                        ' ',
                    ]);
                if (tokens.length > 8) nodes.push('…');
                places.push(
                    el(
                        'span',
                        { class: 'place several' },
                        `${tokens.length} ${kind === 'query' ? 'queries' : 'keys'} `,
                        ...nodes,
                    ),
                );
            }
        };
        list('query', queries);
        list('key', keys);
        if (queries.length && keys.length) {
            const sum = (name) =>
                this.view.values[name]
                    ? queries.reduce(
                          (total, q) =>
                              total + keys.reduce((row, k) => row + (this.view.weight(name, q, k) ?? 0), 0),
                          0,
                      )
                    : undefined;
            const several = queries.length * keys.length > 1;
            weights.push(...(several ? [el('span', {}, 'sum')] : []), ...this.weightTexts(sum('before'), sum('after')));
        }
        pinned.replaceChildren(...groups(places, weights), close);
        pinned.title = fullText([...places, ...weights]);
        this.showProfile(queries, keys);
    }

    // Rows pinned: their sum over the keys. Columns alone: what each query gives them.
    showProfile(queries, keys) {
        const [r0, r1, c0, c1] = this.view.zoomShown(),
            byKey = queries.length > 0;
        const from = byKey ? c0 : r0,
            count = byKey ? c1 - c0 : r1 - r0;
        const add = (name) => {
            if (!this.view.values[name]) return null;
            const out = this.view.reuse(`profile-${name}`, count);
            out.fill(0);
            for (let i = 0; i < count; i++) {
                for (const token of byKey ? queries : keys) {
                    out[i] +=
                        (byKey
                            ? this.view.weight(name, token, from + i)
                            : this.view.weight(name, from + i, token)) ?? 0;
                }
            }
            return out;
        };
        const several = (byKey ? queries : keys).length > 1;
        const title = byKey
            ? `Where ${several ? `these ${queries.length} queries look, summed` : 'this query looks'}`
            : `Who looks at ${several ? `these ${keys.length} keys, summed` : 'this key'}`;
        this.profile.show({
            title: this.view.values.after ? `${title}: ${this.view.nameOf('before')} (outline), ${this.view.nameOf('after')} (filled)` : title,
            labels: byKey ? this.view.data.keys : this.view.data.queries,
            before: add('before'),
            after: add('after'),
            from,
        });
    }
}

// What a line says, in full: where there is no room, long tokens are cut.
function fullText(parts) {
    return parts.map((part) => part.textContent).join(', ');
}

// The tokens, and their weights: on one line or two.
function groups(places, weights) {
    const group = (name, parts) => el('span', { class: name }, ...listed(parts));
    return listed([group('places', places), ...(weights.length ? [group('weights', weights)] : [])]);
}
