// The attention of a cell: the head view of its layer and head for one of the prompts in the file, beside it the same head
// under the cell's edit, or that of a second prompt or model. Edits that scale q or k have a slider; other edits cannot be
// made without an engine.
import { ScoredHead, decodeMap } from './attention.js';
import { FactorSlider } from './factor_slider.js';
import { HeadView } from './head.js';
import { el, fillSelect } from './text.js';

const REVEAL_GAP = 12; // pixels
const LEAST_SEEN = 0.4; // of the window: so much of a card is seen beside the cell that opened it
const SEEN_ENOUGH = 0.6; // of the window: a card that takes as much stays where it is

// Scrolls no farther than is needed to see a card; the cell that opened it, `top` pixels from the window's, stays in sight
// where there is room for both. mustSee: else the card is what counts.
export function revealCard(card, top, mustSee = true) {
    const box = card.getBoundingClientRect(), room = window.innerHeight;
    if (box.top >= 0 && Math.min(box.bottom, room) - box.top >= Math.min(box.height, room * SEEN_ENOUGH)) return;
    const wanted = Math.min(box.bottom + REVEAL_GAP - room, box.top - REVEAL_GAP), kept = top - REVEAL_GAP;
    const both = box.top - kept <= room * (1 - LEAST_SEEN);
    const by = wanted > kept && (both || !mustSee) ? kept : wanted;
    if (by > 0 || mustSee) window.scrollBy(0, by);
}

// What the weights of each row leave to a learned sink.
const restOfRows = (map, n) => Float32Array.from({ length: n }, (_, row) => 1 - map.subarray(row * n, (row + 1) * n).reduce((sum, weight) => sum + weight, 0));

export class CellAttention {
    constructor(attention, palette) {
        this.attention = attention;
        this.name = el('h2', {});
        this.choice = el('select', { onchange: () => this.choose(Number(this.choice.value)) });
        this.controls = el('div', { class: 'factors' });
        const place = el('div', {}), [before, after] = attention.names ?? ['Attention weight', null];
        this.element = el('section', { class: 'card cell-attention', 'aria-label': 'The attention of the open cell', 'aria-live': 'polite' },
            el('div', { class: 'panel-head' }, this.name, this.choice), this.controls, place);
        this.view = new HeadView(place, { palette, names: { before, after }, maxHeight: () => Math.min(620, window.innerHeight * 0.65) });
        this.view.options = { show: { before: true, after: after !== null, diff: after !== null, lines: false } };
        this.cell = { prompt: 0, head: 0 };
    }

    // Number of the prompt of this id; -1: the file does not have it.
    find(id) {
        return this.attention.prompts.findIndex((prompt) => prompt.id === id);
    }

    // cell: { layer, head, prompt, query, title, edit, still }; a head or prompt that is left out is the one shown already. The
    // prompt can be chosen where it is left out, else the head can. The row of `query` is marked; null: none, left out: those that are. edit: a factor with its label, marks and note; still: why there is none.
    open(cell) {
        const { attention } = this;
        this.chosen = cell.prompt === undefined ? 'prompt' : 'head';
        this.cell = { ...this.cell, query: undefined, edit: null, title: null, still: null, ...cell };
        fillSelect(this.choice, this.chosen === 'prompt' ? attention.prompts.map(({ id, tokens }, i) => [i, `prompt ${id}, ${tokens.length} tokens`])
            : Array.from({ length: attention.heads }, (_, head) => [head, `head ${head}`]));
        this.choice.setAttribute('aria-label', this.chosen === 'prompt' ? 'Prompt' : 'Head');
        this.choice.value = String(this.cell[this.chosen]);
        this.prepare();
        this.buildControls();
        this.update();
    }

    choose(number) {
        this.cell[this.chosen] = number;
        if (this.chosen === 'head') this.cell.query = null;
        this.prepare();
        this.update();
    }

    // The head's scores, and its map without the edit.
    prepare() {
        const { attention, cell } = this, { tokens, scores, second } = attention.prompts[cell.prompt], n = tokens.length;
        const place = cell.layer * attention.heads + cell.head, map = scores[place];
        this.name.textContent = `Attention: ${cell.title ?? `layer ${cell.layer}, head ${cell.head}`}`;
        this.head = map && new ScoredHead({ n, scores: decodeMap(map), causal: attention.causal, window: attention.windows[cell.layer],
                                            softcap: attention.softcap, sink: attention.sinks[place], slope: attention.slopes[place] });
        if (!this.head) return;
        this.share = { before: new Float32Array(n), after: new Float32Array(n) };
        this.before = this.head.weights([], new Float32Array(n * n), this.share.before);
        this.after = cell.edit ? new Float32Array(n * n) : second ? decodeMap(second[place]) : null;
        if (this.after && !cell.edit) this.share.after = restOfRows(this.after, n);
        if (cell.query !== undefined) this.view.settings.pins = { queries: cell.query === null ? [] : [cell.query], keys: [] };
    }

    buildControls() {
        const { edit, still } = this.cell;
        this.controls.hidden = !edit && !still;
        if (!edit || !this.head) {
            const why = this.head ? still : 'The cell is about several heads together: no single map.';
            this.controls.replaceChildren(...(why ? [el('p', { class: 'hint' }, why)] : []));
            return;
        }
        const slider = new FactorSlider({ label: edit.label, eps: edit.eps, marks: edit.marks, note: edit.note });
        slider.oninput = (eps) => {
            edit.eps = eps;
            this.update();
        };
        slider.onhold = (held) => this.view.hold(held);
        this.controls.replaceChildren(slider.element);
    }

    update() {
        const { head, share, cell: { edit, prompt } } = this;
        if (!head) return;
        const { tokens } = this.attention.prompts[prompt], moves = edit && edit.axis !== 'none';
        if (moves) head.weights([edit], this.after, share.after);
        const after = edit && !moves ? this.before : this.after, afterShare = edit && !moves ? share.before : share.after;
        this.view.setData({ queries: tokens, keys: tokens, n: tokens.length, causal: head.causal, window: head.window, before: this.before, after,
                            sink: head.sink === null ? null : { before: share.before, after: after && afterShare }, same: Boolean(edit) && !moves });
    }

    forgetTheme() {
        this.view.forgetTheme();
    }
}
