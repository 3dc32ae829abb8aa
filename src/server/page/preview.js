// The shown head's map while a slider moves, made in the page: factors of q and k in the head's own layer are factors of
// its scores (attention.js). The server's own numbers follow a few milliseconds later and replace it; they differ by
// less than 1e-6.
//
//     preview.set(key, { tokens, scores, facts, before, sink });   // key: previewKey(about, edits)
//     preview.make(key, edits);                                    // { after, sink } or null: the server must say
import { ScoredHead } from './attention.js';
import { factorOf, parseEdit, withFactor } from './notation.js';

const LEAST_FACTOR = 1e-37,
    MOST_FACTOR = 1e30; // beyond these a factor may not fit single precision: the server's to judge

// What a preview holds for: the head, and the edits but for their factors.
export function previewKey(about, edits) {
    return JSON.stringify([about, edits.map((edit) => (factorOf(edit) === null ? edit : withFactor(edit, 'ε')))]);
}

// The number that an edit multiplies by; null where it is none, or none that can be used here.
function usableFactor(edit) {
    const factor = parseEdit(edit)?.op === 'zero' ? 0 : factorOf(edit),
        size = Math.abs(factor);
    return factor === null || (size > 0 && size < LEAST_FACTOR) || size > MOST_FACTOR ? null : factor;
}

export class Preview {
    constructor() {
        this.key = null;
    }

    // facts: what /api/head says with only = "scores". before, sink: the server's own map and shares, unedited.
    set(key, { n, scores, facts, before, sink }) {
        this.key = key;
        this.factors = facts.factors;
        if (!this.factors) return;
        this.head = new ScoredHead({
            n,
            scores,
            causal: facts.causal,
            window: facts.window,
            softcap: facts.soft_cap,
            slope: facts.slope,
            sink: facts.sink,
        });
        this.masks = this.factors.map(({ tokens }) => tokens && maskOf(tokens, n));
        this.after = new Float32Array(n * n);
        this.share = new Float32Array(n);
        // How the server's unedited map differs from the one made here: with a factor of 1 there is no change at all.
        this.rest = this.head.weights([], new Float32Array(n * n), this.share);
        for (let i = 0; i < this.rest.length; i++) this.rest[i] = before[i] - this.rest[i];
        this.shareRest = sink && sink.map((value, i) => value - this.share[i]);
    }

    make(key, edits) {
        if (key !== this.key || !this.factors || this.factors.length !== edits.length) return null;
        const values = edits.map(usableFactor);
        const factors = this.factors.map(({ axis }, i) => ({ axis, eps: values[i], tokens: this.masks[i] }));
        if (factors.some(({ axis, eps }) => axis !== 'none' && eps === null)) return null;
        const { after, rest, share, shareRest } = this;
        this.head.weights(factors, after, share);
        for (let i = 0; i < after.length; i++) after[i] = Math.max(0, after[i] + rest[i]);
        if (shareRest) for (let i = 0; i < share.length; i++) share[i] += shareRest[i];
        return { after, sink: shareRest ? share : null };
    }
}

function maskOf(tokens, n) {
    const mask = new Uint8Array(n);
    for (const token of tokens) mask[token] = 1;
    return mask;
}
