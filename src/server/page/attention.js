// Attention maps from stored scores: exact at every factor, without an engine.
//
// Why it is exact. A head's score of a query i and a key j is s = scale * (R_i q_i) . (R_j k_j), where R turns
// channels by the position (RoPE; the identity in models without). Turning and the product are linear in q and in k.
// So q times a and k times b, edited before or after RoPE, give a*b*s: one number for each cell, whatever happens
// inside. QK-norm and biases come before the edit and are in s already. After the product nothing is linear any
// more, and it is done here as the engine does it, in its order:
//
//     x = c * tanh(a*b*s / c)                     where the model caps its scores; else x = a*b*s
//     x = a*b*s + m * (j - i)                     where a bias stands for positions (ALiBi); m is the head's slope
//     weight = exp(x) / (sum of exp(x) + exp(t))  over the keys that the mask leaves; t is the head's learned
//                                                 sink, where it has one, which takes its share and has no column
//
// That is why s is stored before the cap and without the bias: the cap of a scaled score is not the scaled cap. Sums are taken in double
// precision; the engine's own are in F32, and tests/browser/attention.mjs holds both together over the whole range.

// The keys that a query sees: from first on, before end. Of a bidirectional window both sides are cut.
// A negative window is chunks of so many keys: a query sees its own, up to itself.
export function visibleKeys(query, n, causal, window) {
    const first = window < 0 ? query - (query % -window) : window > 0 ? Math.max(0, query - window + 1) : 0;
    const end = causal ? query + 1 : window > 0 ? Math.min(n, query + window) : n;
    return [first, end];
}

export function cappedScore(score, cap) {
    return cap > 0 ? cap * Math.tanh(score / cap) : score;
}

// One row of weights into out[at + first .. at + end); what the learned sink took is returned, 0 where there is
// none. `x` are the capped scores of the keys from first on.
function softmaxRow(x, count, sink, out, at) {
    let most = sink === null ? -Infinity : sink;
    for (let j = 0; j < count; j++) if (x[j] > most) most = x[j];
    const taken = sink === null ? 0 : Math.exp(sink - most);
    let sum = taken;
    for (let j = 0; j < count; j++) {
        x[j] = Math.exp(x[j] - most);
        sum += x[j];
    }
    for (let j = 0; j < count; j++) out[at + j] = x[j] / sum;
    return taken / sum;
}

// The factor of every query or key: the product of those that select the token, of q and of q_rot, say. Edits of one
// site never overlap.
export function tokenFactors(n, factors, axis) {
    const list = new Float64Array(n).fill(1);
    for (const { axis: own, eps, tokens } of factors) {
        if (own !== axis) continue;
        // The engine keeps factors in F32.
        for (let i = 0; i < n; i++) if (!tokens || tokens[i]) list[i] *= Math.fround(eps);
    }
    return list;
}

// A head's scores as they are stored, and maps made of them.
export class ScoredHead {
    // scores: n x n, row by row; what a query does not see is never read.
    constructor({ n, scores, causal, window = 0, softcap = 0, sink = null, slope = 0 }) {
        Object.assign(this, { n, scores, causal, window, softcap, sink, slope });
        this.row = new Float64Array(n);
    }

    // The weights under the factors, into `out` (n x n); the sink's share of each query into `share` (n).
    weights(factors, out, share = null) {
        const { n, scores, softcap, slope, row } = this;
        const byQuery = tokenFactors(n, factors, 'query');
        const byKey = tokenFactors(n, factors, 'key');
        for (let i = 0; i < n; i++) {
            const [first, end] = visibleKeys(i, n, this.causal, this.window);
            for (let j = first; j < end; j++) {
                row[j - first] = cappedScore(byQuery[i] * byKey[j] * scores[i * n + j], softcap) + slope * (j - i);
            }
            out.fill(0, i * n, (i + 1) * n);
            const taken = softmaxRow(row, end - first, this.sink, out, i * n + first);
            if (share) share[i] = taken;
        }
        return out;
    }

    // The scores under the factors as the site `scores` has them: capped, with the bias, before the mask.
    capped(factors, out) {
        const { n, scores, softcap, slope } = this;
        const byQuery = tokenFactors(n, factors, 'query');
        const byKey = tokenFactors(n, factors, 'key');
        for (let i = 0; i < n; i++) {
            for (let j = 0; j < n; j++) {
                out[i * n + j] = cappedScore(byQuery[i] * byKey[j] * scores[i * n + j], softcap) + slope * (j - i);
            }
        }
        return out;
    }
}

// ---- what files hold ----

function halfToNumber(bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const power = (bits >> 10) & 31;
    const rest = bits & 1023;
    if (power === 31) return rest ? NaN : sign * Infinity;
    return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : 2 ** -14 * (rest / 1024));
}

function bytesOf(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
}

// Stored numbers, one after the other: F32 or F16, little-endian.
export function decodeNumbers(type, base64) {
    const bytes = bytesOf(base64);
    const view = new DataView(bytes.buffer);
    const size = type === 'F16' ? 2 : 4;
    const numbers = new Float32Array(bytes.length / size);
    for (let i = 0; i < numbers.length; i++) {
        numbers[i] = size === 2 ? halfToNumber(view.getUint16(2 * i, true)) : view.getFloat32(4 * i, true);
    }
    return numbers;
}

// A stored map as rows x cols. `masked` ones hold what queries see and nothing else.
export function decodeMap({ type, rows, cols, masked, causal, window, data }) {
    const numbers = decodeNumbers(type, data);
    if (!masked) return numbers;
    const out = new Float32Array(rows * cols);
    let at = 0;
    for (let i = 0; i < rows; i++) {
        const [first, end] = visibleKeys(i, cols, causal, window);
        out.set(numbers.subarray(at, at + end - first), i * cols + first);
        at += end - first;
    }
    return out;
}
