// What follows from the edits: a metric of the head against ε, the next tokens, the text that is generated. They come
// when the slider rests; until then what is shown is marked as older (belongs.js).
//
//     const follow = new Follow(element, { metrics });
//     follow.set({ metric, generate, hasLogits });
//     follow.setCurve(reply); follow.setNext(reply); follow.setGenerated(reply, edited); follow.clear();
//     follow.setCursor(edit, { before, after });      // at every move: the cursor on the curve
import { el, fillSelect, listed, numberText, shortPower, svgEl } from './text.js';
import { curveFactors, FACTOR_STEPS, FACTOR_TICKS, placeOf } from './factor.js';
import { factorOf, withFactor } from './notation.js';
import { NextTable } from './next.js';

const WIDTH = 340,
    HEIGHT = 176,
    LEFT = 48,
    RIGHT = 8,
    TOP = 10,
    FOOT = 22;

export class Follow {
    constructor(element, { metrics }) {
        this.onmetric = this.ongenerate = () => {};
        this.curve = null;
        this.cursor = null;
        this.parts = { curve: this.buildCurve(metrics), next: this.buildNext(), generate: this.buildGenerate() };
        element.append(...Object.values(this.parts).map((part) => part.element));
    }

    buildPart(title, ...body) {
        const older = el('span', { class: 'older-mark', hidden: true });
        const content = el('div', { class: 'follow-body' }, ...body);
        return { element: el('div', { class: 'follow-part' }, el('h3', {}, `${title} `, older), content), content, older };
    }

    buildCurve(metrics) {
        this.metric = el('select', {
            'aria-label': 'Metric of the curve',
            onchange: () => this.onmetric(this.metric.value),
        });
        fillSelect(
            this.metric,
            metrics.map(({ name, title }) => [name, title || name]),
        );
        this.svg = svgEl('svg', {
            class: 'curve',
            viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
            role: 'img',
            'aria-label': 'The metric against ε',
        });
        this.nowText = el('b', { id: 'metric-now' });
        this.beforeText = el('b');
        this.curveText = el(
            'p',
            { class: 'numbers' },
            ...listed([el('span', {}, 'before ', this.beforeText), el('span', {}, 'now ', this.nowText)]),
        );
        return this.buildPart('This head against ε', this.metric, this.svg, this.curveText);
    }

    buildNext() {
        this.next = new NextTable();
        return this.buildPart('Next tokens', this.next.element);
    }

    buildGenerate() {
        const number = (name, label, extra) =>
            el(
                'label',
                { class: 'soft' },
                label,
                (this[name] = el('input', {
                    type: 'number',
                    class: 'number',
                    'aria-label': label,
                    ...extra,
                    onchange: () => this.generateChanged(),
                })),
            );
        this.without = el('dd', { dir: 'auto' });
        this.withEdit = el('dd', { dir: 'auto' });
        this.verdict = el('p', { class: 'soft', role: 'status' });
        return this.buildPart(
            'Text from here',
            el(
                'div',
                { class: 'row generate-tools' },
                number('n', 'tokens', { min: '0', max: '512', step: '8' }),
                number('temperature', 'temperature', { min: '0', step: '0.1' }),
                number('seed', 'seed', { min: '0', step: '1' }),
            ),
            el(
                'dl',
                { class: 'generated' },
                el('dt', {}, 'without the edit'),
                this.without,
                el('dt', {}, 'with the edit'),
                this.withEdit,
            ),
            this.verdict,
        );
    }

    set({ metric, generate, hasLogits }) {
        this.metric.value = metric;
        for (const name of ['n', 'temperature', 'seed']) this[name].value = generate[name];
        this.offerSeed(generate);
        this.parts.next.element.hidden = this.parts.generate.element.hidden = !hasLogits;
    }

    // At temperature 0 nothing is drawn, so a seed would change nothing.
    offerSeed({ temperature }) {
        this.seed.disabled = temperature === 0;
        this.seed.title = temperature === 0 ? 'Tokens are drawn where the temperature is above 0' : '';
    }

    generateChanged() {
        const value = (name) => Math.max(0, Number(this[name].value) || 0);
        const generate = {
            n: Math.min(512, Math.round(value('n'))),
            temperature: value('temperature'),
            seed: Math.round(value('seed')),
        };
        this.offerSeed(generate);
        this.ongenerate(generate);
    }

    // ---- the curve ----

    // What to ask for: the edits with the active one's factor left open; null where it has none.
    curveRequest(edits, active) {
        if (factorOf(edits[active] ?? '') === null) return null;
        const open = edits.map((edit, i) => (i === active ? withFactor(edit, '{eps}') : edit));
        return { edits: open.join(' + '), epsilons: curveFactors() };
    }

    setCurve(reply) {
        this.curve = reply && { factors: reply.epsilons, values: reply.values, baseline: reply.baseline };
        this.parts.curve.element.hidden = !reply;
        if (reply) this.drawCurve();
    }

    setCursor(edit, metric) {
        const factor = factorOf(edit);
        this.cursor =
            factor === null ? null : { factor, value: metric?.after ?? null, before: metric?.before ?? null };
        this.drawCursor();
    }

    // y of a value; null for one that is undefined.
    height(value) {
        const [low, high] = this.range;
        return Number.isFinite(value)
            ? HEIGHT - FOOT - ((value - low) / (high - low)) * (HEIGHT - FOOT - TOP)
            : null;
    }

    place(factor) {
        return LEFT + (placeOf(factor) / FACTOR_STEPS) * (WIDTH - LEFT - RIGHT);
    }

    drawCurve() {
        const { factors, values, baseline } = this.curve;
        this.range = niceRange([...values, baseline]);
        const points = factors
            .map((factor, i) => [this.place(factor), this.height(values[i])])
            .filter(([, y]) => y !== null);
        const ticks = FACTOR_TICKS.map(([factor, label]) =>
            svgEl('text', { x: this.place(factor), y: HEIGHT - 6, 'text-anchor': 'middle' }, label),
        );
        const ends = this.range.map((value, i) =>
            svgEl(
                'text',
                { x: LEFT - 5, y: i ? TOP + 4 : HEIGHT - FOOT + 3, 'text-anchor': 'end' },
                endText(value),
            ),
        );
        const base = this.height(baseline);
        this.cursorLayer = svgEl('g');
        this.svg.replaceChildren(
            svgEl('path', { class: 'axis', d: `M${LEFT} ${TOP}V${HEIGHT - FOOT}H${WIDTH - RIGHT}` }),
            ...ticks,
            ...ends,
            ...(base === null ? [] : [svgEl('path', { class: 'base', d: `M${LEFT} ${base}H${WIDTH - RIGHT}` })]),
            svgEl('path', {
                class: 'line',
                d: points.map(([x, y], i) => `${i ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join(''),
            }),
            ...points.map(([x, y]) =>
                svgEl('circle', { class: 'point', cx: x.toFixed(1), cy: y.toFixed(1), r: 1.8 }),
            ),
            this.cursorLayer,
        );
        this.drawCursor();
    }

    drawCursor() {
        if (!this.curve || !this.cursorLayer) return;
        if (!this.cursor) return this.cursorLayer.replaceChildren();
        const { factor } = this.cursor,
            now = this.cursor.value ?? this.onCurve(factor),
            x = this.place(factor),
            y = this.height(now);
        // At every move: the nodes stay, their places change.
        if (!this.cursorLayer.firstChild)
            this.cursorLayer.append(svgEl('path', { class: 'cursor' }), svgEl('circle', { class: 'here', r: 4.5 }));
        const [line, here] = this.cursorLayer.children;
        line.setAttribute('d', `M${x} ${TOP}V${HEIGHT - FOOT}`);
        here.style.display = y === null ? 'none' : '';
        if (y !== null) {
            here.setAttribute('cx', x);
            here.setAttribute('cy', Math.min(Math.max(y, TOP - 4), HEIGHT - FOOT + 4));
        }
        const known = this.cursor.value !== null || this.curve.factors.includes(factor);
        this.nowText.textContent = known || y === null ? numberText(now, 6) : `≈ ${numberText(now, 3)}`;
        this.beforeText.textContent = numberText(this.cursor.before ?? this.curve.baseline, 6);
    }

    // The curve's value at a factor, between its points by a straight line: pooled maps have no metrics of their own. null
    // where there is none; a negative factor is not on the curve.
    onCurve(factor) {
        const { factors, values } = this.curve,
            after = factors.findIndex((other) => other >= factor);
        if (factor < 0 || after < 0) return null;
        if (factors[after] === factor) return values[after];
        const [low, high] = [factors[after - 1], factors[after]].map((other) => this.place(other)),
            part = high > low ? (this.place(factor) - low) / (high - low) : 0;
        if (!Number.isFinite(values[after - 1]) || !Number.isFinite(values[after])) return null;
        return values[after - 1] + part * (values[after] - values[after - 1]);
    }

    forgetTheme() {
        // Its colours are the style sheet's.
    }

    // ---- next tokens and text ----

    setNext(reply) {
        this.next.show(reply);
    }

    // The mean loss of the prompt, from /api/losses.
    setLoss(reply) {
        this.next.showLoss(reply.mean_loss, reply.mean_loss_after);
    }

    // Nothing is known of this model yet.
    clear() {
        this.setCurve(null);
        this.cursor = null;
        this.next.clear();
        for (const node of [this.without, this.withEdit, this.verdict]) node.replaceChildren();
    }

    generating(done, all) {
        this.verdict.textContent = done ? `generating… ${done} of ${all} tokens` : 'generating…';
    }

    setGenerated(reply, edited) {
        const { baseline, variant, differs_at: differsAt } = reply;
        const [plain, changed] = edited ? differences(baseline, variant) : [[], []];
        this.without.replaceChildren(...markedPieces(baseline, plain));
        this.withEdit.replaceChildren(...markedPieces(edited ? variant : baseline, changed));
        const others = changed.filter(Boolean).length;
        this.verdict.textContent = !edited
            ? 'There is no edit.'
            : differsAt === null
              ? 'The edit does not change the text.'
              : `The first difference is at token ${differsAt + 1}; ${others} of ${variant.length} tokens are marked as different.`;
    }
}

// Which pieces of two texts are not in the other, at their place: all but a longest series of pieces that both have, in
// their order.
export function differences(first, second) {
    const width = second.length + 1,
        common = new Uint16Array((first.length + 1) * width);
    for (let i = first.length - 1; i >= 0; i--) {
        for (let k = second.length - 1; k >= 0; k--)
            common[i * width + k] =
                first[i] === second[k]
                    ? common[(i + 1) * width + k + 1] + 1
                    : Math.max(common[(i + 1) * width + k], common[i * width + k + 1]);
    }
    const own = [first.map(() => true), second.map(() => true)];
    for (let i = 0, k = 0; i < first.length && k < second.length; ) {
        if (first[i] === second[k]) own[0][i++] = own[1][k++] = false;
        else if (common[(i + 1) * width + k] >= common[i * width + k + 1]) i++;
        else k++;
    }
    return own;
}

// Pieces of one kind that follow each other are one node.
function markedPieces(pieces, marks) {
    const nodes = [];
    for (let i = 0; i < pieces.length; ) {
        let end = i;
        while (end < pieces.length && Boolean(marks[end]) === Boolean(marks[i])) end++;
        const text = pieces.slice(i, end).join('');
        nodes.push(marks[i] ? el('span', { class: 'differs' }, text) : text);
        i = end;
    }
    return nodes;
}

// Short enough for the room beside the axis.
function endText(value) {
    const text = numberText(value, 3);
    return text.length <= 6 ? text : shortPower(value, 2).replace(/^-/, '−');
}

// A little above and below what there is.
function niceRange(values) {
    const known = values.filter(Number.isFinite);
    if (!known.length) return [0, 1];
    const low = Math.min(...known),
        high = Math.max(...known),
        room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [
        low >= 0 ? Math.max(0, low - room) : low - room,
        high <= 1 && low >= 0 ? Math.min(1, high + room) : high + room,
    ];
}
