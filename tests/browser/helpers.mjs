// What several cases ask a page, and what they compare it with.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pageFolder } from './attention.mjs';
import { qkv, readSafetensors } from './stage.mjs';

export const PROMPT = 'The river runs past the old mill and down to the sea.';

// The maps that the page holds: { before, after, n, layer, head, edits }.
export async function headOf(page) {
    return page.evaluate(() => {
        const { data } = window.explorer.head,
            { layer, head, edits } = window.explorer.state;
        return {
            before: [...data.before],
            after: data.after && [...data.after],
            n: data.n,
            rows: data.rows,
            cols: data.cols,
            step: data.step,
            r0: data.r0,
            c0: data.c0,
            layer,
            head,
            edits,
        };
    });
}

// The same head as `qkv run` has it, variant by variant.
export function runHead(stage, { layer, head, edits = '', prompt = ['-p', PROMPT], model = [] }) {
    const out = stage.file('run.safetensors'),
        variant = edits ? ['--variant', edits] : [];
    qkv(['run', ...model, ...prompt, ...variant, '--capture', `pattern@${layer}.h${head}`, '-o', out, '--quiet']);
    const { tensors } = readSafetensors(stage.read(out));
    return { before: tensors[`v0/pattern.${layer}`].values, after: tensors[`v1/pattern.${layer}`]?.values ?? null };
}

// Bit for bit: floats of both sides have the same 32 bits.
export function assertSameBits(ours, theirs, what) {
    const a = Float32Array.from(ours),
        b = Float32Array.from(theirs);
    assert.equal(a.length, b.length, `${what}: as many values`);
    for (let i = 0; i < a.length; i++)
        assert.ok(Object.is(a[i], b[i]), `${what}: value ${i} is ${a[i]}, not ${b[i]}`);
}

export function assertNear(ours, theirs, allowed, what) {
    assert.equal(ours.length, theirs.length, `${what}: as many values`);
    ours.forEach((value, i) =>
        assert.ok(Math.abs(value - theirs[i]) <= allowed, `${what}: value ${i} is ${value}, not ${theirs[i]}`),
    );
}

export async function assertPageEqualsRun(stage, page, { prompt, model } = {}) {
    const shown = await headOf(page),
        edits = shown.edits.join(' + ');
    const run = runHead(stage, { ...shown, edits, prompt, model });
    assertSameBits(shown.before, run.before, 'before');
    if (edits) assertSameBits(shown.after, run.after, 'after');
    return shown;
}

// The middle of a cell of one of the maps, in pixels of the page.
export async function cellAt(page, name, query, key) {
    return page.evaluate(
        ([map, q, k]) => {
            const m = window.explorer.head.maps[map],
                box = m.over.getBoundingClientRect();
            const x = k < 0 ? m.left - 8 : m.plotLeft + ((k - m.zoom[2] + 0.5) / m.cols) * m.plotWidth;
            const y = q < 0 ? m.plotHeight + 8 : 1 + ((q - m.zoom[0] + 0.5) / m.rows) * m.plotHeight;
            return { x: box.left + x, y: box.top + y };
        },
        [name, query, key],
    );
}

export async function clickCell(page, name, query, key, options) {
    await page.evaluate((map) => window.explorer.head.maps[map].element.scrollIntoView({ block: 'center' }), name);
    const { x, y } = await cellAt(page, name, query, key);
    if (options?.shift) await page.keyboard.down('Shift');
    await page.mouse.click(x, y);
    if (options?.shift) await page.keyboard.up('Shift');
}

// The colour of a map's pixel, as [red, green, blue, alpha].
export async function pixelOf(page, name, query, key) {
    return page.evaluate(
        ([map, q, k]) => {
            const m = window.explorer.head.maps[map],
                ratio = window.devicePixelRatio;
            const x = m.plotLeft + ((k - m.zoom[2] + 0.15) / m.cols) * m.plotWidth;
            const y = 1 + ((q - m.zoom[0] + 0.15) / m.rows) * m.plotHeight;
            return [
                ...m.base.getContext('2d').getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data,
            ];
        },
        [name, query, key],
    );
}

// The model that comes with qkv, with a chat template: one more field at the beginning of its metadata, as long as keeps
// the tensors aligned.
export function chatModel(stage) {
    const key = 'tokenizer.chat_template',
        template = '{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] ',
        used = 8 + key.length + 4 + 8 + template.length,
        text = `${template}{#${'-'.repeat(32 + (32 - ((used + 4) % 32)))}#}`;
    const model = fs.readFileSync(path.join(process.env.MODELS ?? path.join(pageFolder, '../../../models'), 'default.gguf')),
        field = Buffer.alloc(8 + key.length + 12);
    field.writeBigUInt64LE(BigInt(key.length), 0);
    field.write(key, 8);
    field.writeUInt32LE(8, 8 + key.length); // a string
    field.writeBigUInt64LE(BigInt(text.length), 12 + key.length);
    const head = Buffer.from(model.subarray(0, 24));
    head.writeBigUInt64LE(head.readBigUInt64LE(16) + 1n, 16);
    const file = stage.file('chatty.gguf');
    fs.writeFileSync(file, Buffer.concat([head, field, Buffer.from(text), model.subarray(24)]));
    return file;
}
