// The numbers of pages in files against the engine's, for every family of models and the whole range of factors: soft-caps,
// learned sinks, windows, chunks, ALiBi, models without RoPE, encoders, shared keys. No browser: attention.js runs in node.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { figureData, headOf } from './attention.mjs';
import { qkv, readSafetensors } from './stage.mjs';

const vectors = path.join(path.dirname(new URL(import.meta.url).pathname), '..', 'vectors');
const FACTORS = [0, 1e-10, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1, 1.1, 2, 3.3, 5, 7.7, 10, 100, -1];

// What a factor of F32 numbers may differ in the last digits: a score of size x is off by some of its last bits, and a
// weight by that share of itself.
function tolerance(head, eps) {
    let most = 0;
    for (const score of head.scores) most = Math.max(most, Math.abs(score));
    return 3e-7 * Math.max(1, Math.abs(eps) * most + head.slope * head.n);
}

function largestDifference(a, b) {
    assert.equal(a.length, b.length);
    let most = 0;
    for (let i = 0; i < a.length; i++) most = Math.max(most, Math.abs(a[i] - b[i]));
    return most;
}

// One model, layer and head: the page's maps for factors of q, of k, of both, and of some tokens. `effects`: how far off
// they would be without the cap, the sink and the bias, so that a model that hardly has them proves nothing.
function compareHead(stage, model, layer, head, tokens, effects) {
    const file = stage.file('figure.html'), ids = tokens.join(',');
    const place = `@${layer}.h${head}`;
    qkv(['figure', 'grid', '-m', model, '--tokens', ids, '--layer', String(layer), '--head', String(head), '-q',
         '--col', `Query=q${place}=scale:0.5`, '--col', `Key=k${place}=scale:0.5`, '--col', `Rotated=q_rot${place}=scale:2`,
         '--col', `Some=q${place}[1:4]=scale:3 + k${place}[0]=scale:0.25`, '-o', file]);
    const data = figureData(file), own = headOf(data);
    const n = tokens.length, out = new Float32Array(n * n), share = new Float32Array(n);
    const variants = [], expected = [];
    for (const eps of FACTORS) {
        data.panels.forEach((panel) => {
            variants.push(panel.factors.map(({ target }) => `${target}=scale:${eps}`).join(' + '));
            expected.push({ eps, factors: panel.factors.map((factor) => ({ ...factor, eps })) });
        });
    }
    const result = stage.file('run.safetensors');
    qkv(['run', '-m', model, '--tokens', ids, '-q', ...variants.flatMap((text) => ['--variant', text]),
         '--capture', `pattern${place}`, '-o', result]);
    const { tensors } = readSafetensors(fs.readFileSync(result));
    const uncapped = headOf({ ...data, softcap: 0 }), unsunk = headOf({ ...data, sink: null }), unbiased = headOf({ ...data, slope: 0 });
    let worst = 0;
    expected.forEach(({ eps, factors }, i) => {
        const wanted = tensors[`v${i + 1}/pattern.${layer}`];
        for (const [name, without] of [['softcap', uncapped], ['sink', unsunk], ['slope', unbiased]]) {
            effects[name] = Math.max(effects[name], largestDifference(without.weights(factors, out), wanted.values));
        }
        own.weights(factors, out, share);
        const difference = largestDifference(out, wanted.values), allowed = tolerance(own, eps);
        worst = Math.max(worst, difference / allowed);
        assert.ok(difference <= allowed, `${model} ${variants[i]}: the page is off by ${difference}, allowed ${allowed}`);
        for (let row = 0; row < n; row++) {
            const sum = out.subarray(row * n, (row + 1) * n).reduce((total, w) => total + w, share[row]);
            assert.ok(Math.abs(sum - 1) < 1e-5, `row ${row} sums to ${sum}`);
        }
    });
    return worst;
}

export async function case_offline_numbers(stage) {
    const families = fs.readdirSync(vectors).filter((name) => fs.existsSync(path.join(vectors, name, 'hf')));
    assert.ok(families.length > 20);
    const seen = { softcap: 0, sink: 0, slope: 0, window: 0, chunks: 0, bidirectional: 0 };
    for (const family of families) {
        const file = path.join(vectors, family, 'model.gguf');
        const model = ['exaone4', 'llama4', 'mistral'].includes(family) || !fs.existsSync(file) ? path.join(vectors, family, 'hf') : file;
        const expected = JSON.parse(fs.readFileSync(path.join(vectors, family, 'expect.json')));
        const { tokens } = expected.prompts[0], [first, second = first] = expected.attention_layers ?? [0, 1];
        let worst = 0;
        const effects = { softcap: 0, sink: 0, slope: 0 };
        for (const [layer, head] of [[first, 1], [second, 2]]) worst = Math.max(worst, compareHead(stage, model, layer, head, tokens, effects));
        const data = figureData(stage.file('figure.html'));
        seen.softcap += data.softcap > 0 && effects.softcap > 0.05;
        seen.sink += data.sink !== null && effects.sink > 0.05;
        seen.slope += data.slope > 0 && effects.slope > 0.05;
        seen.window += data.window > 0;
        seen.chunks += data.window < 0;
        seen.bidirectional += !data.causal;
        console.log(`${family}: ${worst.toFixed(3)} of what is allowed`);
    }
    for (const [name, count] of Object.entries(seen)) assert.ok(count > 0, `no model with ${name} was looked at`);
}
