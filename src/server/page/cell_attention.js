// The attention that a cell of a chart was computed from: the head view of its layer and head, under the cell's edit, for one of the
// first prompts of the sweep. Edits that scale q or k have a slider; other edits cannot be made without an engine.
import { ScoredHead, decodeMap } from './attention.js';
import { FactorSlider } from './factor_slider.js';
import { HeadView } from './head.js';
import { el, fillSelect } from './text.js';

const AXES = { q: 'query', q_rot: 'query', k: 'key', k_rot: 'key' };

export class CellAttention {
    constructor(data, palette) {
        this.data = data;
        this.prompt = 0;
        this.name = el('h2', {});
        this.choice = el('select', { 'aria-label': 'Prompt', onchange: () => this.choosePrompt(Number(this.choice.value)) });
        fillSelect(this.choice, data.attention.prompts.map(({ id, tokens }, i) => [i, `prompt ${id}, ${tokens.length} tokens`]));
        this.controls = el('div', { class: 'factors' });
        const place = el('div', {});
        this.element = el('section', { class: 'card cell-attention', 'aria-label': 'The attention of the open cell' },
            el('div', { class: 'panel-head' }, this.name, this.choice), this.controls, place);
        this.view = new HeadView(place, { palette, maxHeight: () => window.innerHeight * 0.7 });
        this.view.options = { show: { before: true, after: true, diff: true, lines: false } };
    }

    choosePrompt(prompt) {
        this.prompt = prompt;
        this.prepare();
        this.update();
    }

    // at: { target, epsilon, place }, numbers of the chart.
    open(at) {
        this.at = at;
        this.name.textContent = `Attention: ${at.name}`;
        this.prepare();
        this.buildControls();
        this.update();
    }

    // The head's scores, and its map without the edit.
    prepare() {
        const { attention, heads } = this.data, { tokens, scores } = attention.prompts[this.prompt];
        const map = scores[this.at.place], layer = Math.floor(this.at.place / heads.length);
        this.head = map && new ScoredHead({ n: tokens.length, scores: decodeMap(map), causal: attention.causal, window: attention.windows[layer],
                                            softcap: attention.softcap, sink: attention.sinks[this.at.place] });
        if (!this.head) return;
        const n = tokens.length;
        this.share = { before: new Float32Array(n), after: new Float32Array(n) };
        this.before = this.head.weights([], new Float32Array(n * n), this.share.before);
        this.after = new Float32Array(n * n);
    }

    // The cell's edit as a factor; null where it is none.
    factor() {
        const { data, at } = this, target = data.targets[at.target], isScaled = data.op === 'scale' || data.op === 'zero';
        if (!isScaled || (!AXES[target] && target !== 'v')) return null;
        return { target, axis: AXES[target] ?? 'none', eps: data.op === 'zero' ? 0 : data.epsilons[at.epsilon], tokens: null };
    }

    buildControls() {
        const { data, at } = this, layer = data.layers[Math.floor(at.place / data.heads.length)], head = data.heads[at.place % data.heads.length];
        this.edit = this.factor();
        if (!this.edit || !this.head) {
            this.controls.replaceChildren(el('p', { class: 'hint' }, this.head ? 'Without the edit: only factors of q and k can be made without an engine.'
                : 'The cell is about several heads together: no single map.'));
            return;
        }
        const note = this.edit.axis === 'none' ? 'v has no part in the weights of its own layer: nothing moves, at any factor.' : '';
        const slider = new FactorSlider({ label: `${this.edit.target}@${layer}.h${head}`, eps: this.edit.eps,
                                          marks: data.op === 'scale' ? data.epsilons : [0], note });
        slider.oninput = (eps) => {
            this.edit.eps = eps;
            this.update();
        };
        slider.onhold = (held) => this.view.hold(held);
        this.controls.replaceChildren(slider.element);
    }

    update() {
        const { head, edit } = this;
        if (!head) return;
        const { tokens } = this.data.attention.prompts[this.prompt], hasSink = head.sink !== null;
        const moves = edit && edit.axis !== 'none';
        if (moves) head.weights([edit], this.after, this.share.after);
        const after = !edit ? null : moves ? this.after : this.before;
        this.view.setData({ queries: tokens, keys: tokens, n: tokens.length, causal: head.causal, window: head.window, before: this.before, after,
                            sink: hasSink ? { before: this.share.before, after: after && (moves ? this.share.after : this.share.before) } : null,
                            same: Boolean(edit) && !moves });
    }

    forgetTheme() {
        this.view.forgetTheme();
    }
}
