// The prompt's tokens as chips. Pointing at one, or moving to it with the arrow keys, tells its id, probability and
// loss; a click pins it as the query. Long prompts show a part at a time.
import { countText, el, numberText, tokenText } from './text.js';

const PAGE = 300;

export class Chips {
    constructor(element) {
        this.list = el('div', {
            class: 'chips',
            role: 'listbox',
            'aria-label': 'Tokens of the prompt',
            'aria-orientation': 'horizontal',
        });
        this.tip = el('div', { class: 'tip', role: 'status', 'aria-live': 'polite' });
        this.more = el('div', { class: 'more' });
        element.append(this.list, this.more, this.tip);
        this.ids = this.texts = [];
        this.losses = null;
        this.pins = { queries: [], keys: [] };
        this.from = 0;
        this.onpick = () => {};
        this.list.addEventListener('pointerover', (event) => this.point(event.target));
        this.list.addEventListener('focusin', (event) => this.point(event.target));
        this.list.addEventListener('click', (event) => {
            const chip = event.target.closest('.chip');
            if (chip) this.onpick(Number(chip.dataset.at), event.shiftKey);
        });
        this.list.addEventListener('keydown', (event) => this.keyPressed(event));
    }

    setTokens(ids, texts) {
        this.ids = ids;
        this.texts = texts;
        this.losses = null;
        this.from = 0;
        this.build();
    }

    // Per token: probability, loss, rank; with edits those too. The first token has none.
    setLosses(losses) {
        this.losses = losses;
        if (this.pointed !== undefined) this.showTip(this.pointed);
    }

    build() {
        const to = Math.min(this.from + PAGE, this.ids.length);
        const chips = [];
        for (let i = this.from; i < to; i++) {
            chips.push(
                el(
                    'span',
                    {
                        class: 'chip',
                        role: 'option',
                        dir: 'auto',
                        'data-at': i,
                        tabindex: i === this.from ? '0' : '-1',
                        'aria-selected': 'false',
                    },
                    tokenText(this.texts[i]) || '∅',
                ),
            );
        }
        this.list.replaceChildren(...chips);
        this.setPinned(this.pins.queries, this.pins.keys);
        this.pointed = undefined;
        this.buildMore(to);
        this.tip.textContent = this.ids.length ? `${countText(this.ids.length)} tokens` : '';
    }

    buildMore(to) {
        const n = this.ids.length;
        this.more.hidden = n <= PAGE;
        if (this.more.hidden) return;
        const go = (text, from, off) =>
            el(
                'button',
                {
                    type: 'button',
                    class: 'quiet',
                    disabled: off,
                    onclick: () => {
                        this.from = from;
                        this.build();
                    },
                },
                text,
            );
        this.more.replaceChildren(
            go('‹ earlier', Math.max(0, this.from - PAGE), this.from === 0),
            `${countText(this.from)} to ${countText(to - 1)} of ${countText(n)}`,
            go('later ›', this.from + PAGE, to >= n),
        );
    }

    point(target) {
        const chip = target.closest?.('.chip');
        if (chip) this.showTip(Number(chip.dataset.at));
    }

    showTip(i) {
        this.pointed = i;
        const parts = [`${countText(i)}: id ${this.ids[i]}`];
        const loss = this.losses?.[i];
        if (loss) {
            const pair = (name, before, after) =>
                `${name} ${numberText(before)}${after === undefined ? '' : ` → ${numberText(after)}`}`;
            parts.push(
                pair('probability', loss.probability, loss.probability_after),
                pair('loss', loss.loss, loss.loss_after),
            );
            if (loss.rank) parts.push(`rank ${countText(loss.rank)}`);
        } else if (i === 0) parts.push('the first token has no probability');
        this.tip.textContent = parts.join(' · ');
    }

    setPinned(queries, keys) {
        this.pins = { queries, keys };
        for (const chip of this.list.children) {
            const i = Number(chip.dataset.at),
                isQuery = queries.includes(i),
                isKey = keys.includes(i);
            chip.classList.toggle('pinned-query', isQuery);
            chip.classList.toggle('pinned-key', isKey);
            chip.setAttribute('aria-selected', String(isQuery || isKey));
        }
    }

    keyPressed(event) {
        const chip = event.target.closest('.chip');
        const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!chip) return;
        if (step) {
            const next = step > 0 ? chip.nextElementSibling : chip.previousElementSibling;
            if (next) {
                chip.tabIndex = -1;
                next.tabIndex = 0;
                next.focus();
            }
        } else if (event.key === 'Enter' || event.key === ' ') this.onpick(Number(chip.dataset.at), event.shiftKey);
        else return;
        event.preventDefault();
    }
}
