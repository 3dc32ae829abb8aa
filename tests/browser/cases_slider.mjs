// The slider, the edits and what they do to the maps.
import assert from 'node:assert/strict';
import path from 'node:path';
import { assertNear, assertPageEqualsRun, headOf, PROMPT, clickCell, pixelOf, runHead } from './helpers.mjs';
import { qkv } from './stage.mjs';

const START = '#l=5&h=0&gn=0';

// What an edit changed is what it changed in the shown map, also where the next token does not need it: queries of the
// last layer but the last one.
export async function case_report_of_what_ran(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: `${START}&e=pattern@5.h0[3]=set:0.1` });
    const report = () => page.textContent('.edit-report');
    const said = await report();
    const [, changed, selected] = said.match(/^changed (\d+) of (\d+) values$/) ?? [];
    assert.ok(Number(changed) > 0 && changed === selected, said);
    await page.fill('.edit-text', 'mlp_out@5=zero');
    await stage.ready();
    assert.match(await report(), /^changed [1-9][\d,]* of/, 'the run to the next token has it, the map has not');
    await page.fill('.edit-text', 'pattern@5.h0[3]=set:0.2');
    await stage.ready();
    assert.equal(await report(), said);
}

// The slider is dragged with the mouse: the text, the box and the maps follow, bit for bit as `qkv run` has them.
export async function case_slider_mouse(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const range = page.locator('.slider input[type=range]'),
        box = await range.boundingBox();
    const before = await headOf(page);
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
    await page.mouse.down();
    for (const part of [0.6, 0.5, 0.4, 0.35])
        await page.mouse.move(box.x + box.width * part, box.y + box.height / 2, { steps: 4 });
    await page.mouse.up();
    await stage.ready();
    const edit = await page.inputValue('.edit-text'),
        factor = Number(edit.split(':')[1]);
    assert.match(edit, /^q@5\.h0=scale:/);
    assert.ok(factor > 1e-3 && factor < 0.05, `${factor} lies where the mouse let go`);
    assert.equal(Number(await page.inputValue('.slider .number')), factor);
    const shown = await assertPageEqualsRun(stage, page);
    assert.notDeepEqual(shown.after, before.after);
    assert.equal(await page.textContent('.edit-report'), 'changed 480 of 480 values');
}

const vectors = path.join(path.dirname(new URL(import.meta.url).pathname), '..', 'vectors');

// What the page shows before the server has answered is what the server will say, but for the last digits: with a
// soft-cap, a learned sink, shared keys, no RoPE, factors of some tokens; and what is not a factor waits for the server.
export async function case_slider_preview(stage) {
    const edits = [
        'q@1.h1=scale:0.5',
        'k@1.h1[1:3]=scale:0.5',
        'q_rot@1.h1=scale:3 + k@1.g0=scale:0.5 + v@1.h1=zero',
        'q@1.h0=scale:0.5',
    ];
    for (const [family, n] of [['gpt_oss', 4], ['gemma2', 2], ['gpt2', 1]]) {
        const model = ['-m', path.join(vectors, family, 'model.gguf')],
            tokens = '5,9,6,7,8,9',
            prompt = ['--tokens', tokens];
        const server = await stage.serve(model);
        for (const edit of edits.slice(0, n)) {
            const hash = `#tok=${tokens}&l=1&h=1&gn=0&e=${encodeURIComponent(edit)}`;
            const page = await stage.open(server.url, { hash });
            for (const factor of ['0', '7', '1']) {
                const { shown, maps, edits: now } = await movedUnanswered(page, factor);
                assert.equal(shown, now, 'shown at once');
                const wanted = runHead(stage, { layer: 1, head: 1, edits: now, prompt, model });
                assertNear(maps, wanted.after, 2e-6, `${family} ${now}`);
                if (factor === '1' && edit === edits[0]) assert.deepEqual(maps, [...wanted.before], 'no change at all');
            }
            await stage.ready();
            await assertPageEqualsRun(stage, page, { prompt, model });
            await page.context().close();
        }
        const page = await stage.open(server.url, { hash: `#tok=${tokens}&l=1&h=1&gn=0&e=q@0=scale:0.5` });
        const { shown, edits: now } = await movedUnanswered(page, '0.25');
        assert.notEqual(shown, now, 'an edit in a layer below changes the scores themselves');
        await stage.ready();
        await assertPageEqualsRun(stage, page, { prompt, model });
        await server.stop();
    }
}

// A number into the first slider's box; what is shown then, in the same task, before any answer can be there.
async function movedUnanswered(page, factor) {
    return page.evaluate((text) => {
        const box = document.querySelector('.slider .number');
        box.value = text;
        box.dispatchEvent(new Event('change', { bubbles: true }));
        const { head, editsText } = window.explorer;
        return { shown: document.documentElement.dataset.shown, maps: [...head.data.after], edits: editsText };
    }, factor);
}

// By keyboard: 0 and 1 are in reach, and the box takes any number.
export async function case_slider_keyboard(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const edit = () => page.inputValue('.edit-text');
    await page.focus('.slider input[type=range]');
    await page.keyboard.press('Home');
    assert.equal(await edit(), 'q@5.h0=scale:0');
    await page.keyboard.press('ArrowRight');
    assert.equal(await edit(), 'q@5.h0=scale:1e-10');
    await page.keyboard.press('End');
    assert.equal(await edit(), 'q@5.h0=scale:10');
    for (let i = 0; i < 16; i++) await page.keyboard.press('ArrowLeft');
    assert.equal(await edit(), 'q@5.h0=scale:1');
    await stage.ready();
    let shown = await assertPageEqualsRun(stage, page);
    assert.deepEqual(shown.after, shown.before, 'a factor of 1 is the identity');
    assert.equal(await page.textContent('.panel-after .panel-note'), 'bit for bit as before');
    assert.equal(await page.getAttribute('.slider input[type=range]', 'aria-valuetext'), '1');
    await page.fill('.slider .number', '-0.25');
    await page.keyboard.press('Enter');
    assert.equal(await edit(), 'q@5.h0=scale:-0.25');
    await stage.ready();
    shown = await assertPageEqualsRun(stage, page);
    const asItWas = await page.inputValue('.edit-text');
    await page.fill('.slider .number', '0x10');
    await page.keyboard.press('Enter');
    assert.equal(await page.getAttribute('.slider .number', 'aria-invalid'), 'true');
    assert.equal(await page.inputValue('.edit-text'), asItWas);
    await page.fill('.slider .number', 'abc');
    await page.keyboard.press('Enter');
    assert.equal(await page.getAttribute('.slider .number', 'aria-invalid'), 'true');
    assert.equal(await edit(), 'q@5.h0=scale:-0.25', 'what is not a number changes nothing');
}

// Presets of the two figures, several edits at once, the form, removing.
export async function case_edits_form(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    await page.click('[data-preset="k scale"]');
    await stage.ready();
    assert.equal(await page.inputValue('.edit-text'), 'k@5.h0=scale:0.5');
    await assertPageEqualsRun(stage, page);
    await page.click('[data-preset="q mean"]');
    await stage.ready();
    assert.equal(await page.inputValue('.edit-text'), 'q@5.h0=mean:head');
    assert.equal(await page.isVisible('.slider'), false, 'a mean has no factor');
    await assertPageEqualsRun(stage, page);
    await page.click('text=+ Add edit');
    await stage.ready();
    assert.equal(await page.locator('.edit').count(), 2);
    const second = page.locator('.edit').nth(1);
    await second.locator('summary').click();
    await second.getByLabel('Site').selectOption('v');
    await second.getByLabel('Layers').fill('2-3');
    await second.getByLabel('Layers').press('Tab');
    await second.getByLabel('Query heads (h) or key/value heads (g)').selectOption('g');
    await second.getByRole('textbox', { name: 'Heads', exact: true }).fill('1');
    await second.getByRole('textbox', { name: 'Tokens', exact: true }).fill('1:');
    await second.getByLabel('Operation').selectOption('zero');
    assert.equal(await second.locator('.edit-text').inputValue(), 'v@2-3.g1[1:]=zero');
    await stage.ready();
    const shown = await assertPageEqualsRun(stage, page);
    assert.deepEqual(shown.edits, ['q@5.h0=mean:head', 'v@2-3.g1[1:]=zero']);
    await page.getByLabel('Remove edit 1').click();
    const left = page.locator('.edit').first();
    await left.locator('summary').click();
    await left.getByRole('textbox', { name: 'Heads', exact: true }).fill('');
    await left.getByLabel('Query heads (h) or key/value heads (g)').selectOption('g');
    await left.getByRole('textbox', { name: 'Heads', exact: true }).fill('0');
    await left.getByRole('textbox', { name: 'Heads', exact: true }).press('Tab');
    assert.equal(await left.locator('.edit-text').inputValue(), 'v@2-3.g0[1:]=zero', 'g waits for its heads');
    // Values come after their own layer's map: what changed is known from the run of all layers.
    await page.fill('.edit-text', 'v@5.h0=scale:0.5 + q@5.h0=scale:0.5');
    await stage.ready();
    assert.equal(await page.textContent('.edit-report'), 'changed 960 of 960 values');
    await page.fill('.edit-text', 'v@5.h0=scale:0.5');
    await stage.ready();
    assert.equal(await page.textContent('.edit-report'), 'changed 480 of 480 values');
    await page.getByLabel('Remove edit 1').click();
    await stage.ready();
    assert.equal(await page.isVisible('.panel-after'), false, 'without an edit there is no after');
    await assertPageEqualsRun(stage, page);
}

// A wrong edit: the error stands where it is wrong, the maps stay, and correcting it continues.
export async function case_edits_error(stage) {
    stage.allow(/status of 4\d\d/);
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const before = await headOf(page);
    await page.fill('.edit-text', 'q@5.h9=scale:0.5');
    await page.waitForFunction(() => document.querySelector('.edit-error mark')?.textContent === '9');
    assert.equal(await page.getAttribute('.edit-text', 'aria-invalid'), 'true');
    await page.fill('.edit-text', 'q@5.h0=skale:0.5');
    await page.waitForFunction(() => document.querySelector('.edit-error mark')?.textContent === 'skale');
    const where = await page.textContent('.edit-error .where');
    assert.equal(where, 'q@5.h0=skale:0.5');
    assert.match(await page.textContent('.edit .edit-error'), /there is no operation 'skale'/);
    await stage.ready();
    assert.deepEqual((await headOf(page)).after, before.after, 'the last good maps stay');
    await page.fill('.edit-text', 'q@5.h0=scale:nan');
    await page.waitForFunction(() => document.querySelector('.edit-error mark')?.textContent === 'nan');
    await page.fill('.edit-text', '');
    await page.click('text=+ Add edit');
    await page.locator('.edit-text').nth(1).fill('q@5.h7=scale:0.5');
    await page.waitForFunction(() => document.querySelector('#edit-error-1 mark')?.textContent === '7');
    assert.equal(await page.isVisible('#edit-error-0'), false, 'an empty edit is not the wrong one');
    await page.getByLabel('Remove edit 2').click();
    await page.fill('.edit-text', 'q@5.h0=scale:0.25');
    await page.waitForFunction(() => document.querySelector('.edit .edit-error').hidden);
    await stage.ready();
    await assertPageEqualsRun(stage, page);
}

// Every site and every operation that the form offers is one that works here; those that cannot are barred. What the text
// says of channels stays when the form changes something else.
export async function case_edits_form_choices(stage) {
    stage.allow(/status of 4\d\d/);
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    await page.fill('.edit-text', 'q@5.h0[1:]{0:8}=scale:0.5');
    const edit = page.locator('.edit').first(),
        text = () => edit.locator('.edit-text').inputValue(),
        box = (name) => edit.getByRole('textbox', { name, exact: true });
    await edit.locator('summary').click();
    assert.equal(await box('Channels').inputValue(), '0:8');
    await box('Tokens').fill('2:');
    await box('Tokens').press('Tab');
    assert.equal(await text(), 'q@5.h0[2:]{0:8}=scale:0.5');
    await stage.ready();
    assert.equal(await page.textContent('.edit-report'), 'changed 104 of 104 values');
    await assertPageEqualsRun(stage, page);
    const known = await page.evaluate(() => ({
        // The model has no gates.
        sites: window.explorer.info.sites.map(({ name }) => name).filter((name) => name !== 'gate'),
        ops: window.explorer.info.ops.map(({ name }) => name),
    }));
    const options = (label) => edit.getByLabel(label, { exact: true }).locator('option');
    assert.deepEqual(await options('Site').evaluateAll((list) => list.map(({ value }) => value)), known.sites);
    assert.deepEqual(await options('Operation').evaluateAll((list) => list.map(({ value }) => value)), known.ops);
    for (const name of ['mlp_act', 'final_norm', 'scores']) assert.ok(known.sites.includes(name), name);
    const barred = await options('Operation').evaluateAll((list) =>
        list.filter(({ disabled }) => disabled).map(({ value }) => value),
    );
    assert.deepEqual(barred, ['remove', 'patch']);
    const works = async (what) => {
        await stage.ready();
        assert.equal(await page.locator('.edit-error:visible').allTextContents().then(String), '', `${what}: ${await text()}`);
    };
    for (const op of known.ops.filter((name) => !barred.includes(name) && name !== 'freeze')) {
        await edit.getByLabel('Operation', { exact: true }).selectOption(op);
        await works(op);
        if (['mask', 'keep', 'quant'].includes(op)) await assertPageEqualsRun(stage, page);
        if (op === 'mask') assert.equal(await text(), 'scores@5.h0[2:]=mask:sink=1,recent=4');
        if (op === 'keep') await edit.getByLabel('Site', { exact: true }).selectOption('scores');
        if (op === 'keep') await page.fill('.edit-text', 'k@5.h0=scale:0.5');
    }
    await edit.getByLabel('Operation', { exact: true }).selectOption('scale');
    for (const site of known.sites) {
        await edit.getByLabel('Site', { exact: true }).selectOption(site);
        await works(site);
    }
    // Frozen: the map of layer 5 is the unedited one, whatever happens below it.
    await page.fill('.edit-text', 'q@1=scale:0.5 + freeze:q_rot@5 + freeze:k_rot@5');
    await stage.ready();
    const { before, after } = await assertPageEqualsRun(stage, page);
    assert.deepEqual(after, before);
    await page.fill('.edit-text', 'resid_post@1=add:@dir.safetensors#happy');
    await page.waitForFunction(() => document.querySelector('.edit-error mark')?.textContent === '@dir.safetensors#happy');
    assert.match(await page.textContent('.edit .edit-error'), /vectors from files are not available here/);
}

// A row of pixels is what each value's colour is, on every scale.
export async function case_colour_rows(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const bad = await page.evaluate(() => {
        const { weights } = window.explorer.head,
            Scale = weights.constructor,
            wrong = [];
        const values = new Float32Array(6000);
        values.forEach((_, i) => {
            values[i] = (i % 7 === 0 ? -1 : 1) * (i % 3 ? Math.random() : 10 ** (-12 * Math.random()));
        });
        values.set([0, -0, 1, -1, 2, NaN, Infinity, -Infinity, 1e-45, 3e38]);
        for (const kind of ['linear', 'log', 'power'])
            for (const diverging of [false, true])
                for (const [low, high] of [[0, 1], [0, 0.013], [0.1, 0.7]]) {
                    const scale = new Scale(weights.table, { kind, diverging, low, high, floor: 1e-4 * high, gamma: 1 / 3 });
                    const out = new Uint32Array(values.length);
                    scale.paintRow(values, 0, values.length, out, 0);
                    values.forEach((value, i) => {
                        const step = (pixel) => weights.table.pixels.indexOf(pixel);
                        if (out[i] === scale.pixel(value)) return;
                        // At the very edge of a step either side is right.
                        const edge = Math.abs(((scale.place(value) * 1024) % 1) - 0.5) < 1e-4;
                        if (!edge) wrong.push([kind, diverging, low, high, value, step(out[i]), step(scale.pixel(value))]);
                    });
                }
        return wrong.slice(0, 5);
    });
    assert.deepEqual(bad, []);
}

// Text comes in parts, the first ones soon; the last are those of `qkv generate`.
export async function case_text_in_parts(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const asked = [],
        page = await stage.tab({ origin: new URL(server.url).origin });
    page.on('request', (request) => {
        if (request.url().endsWith('/api/generate')) asked.push(JSON.parse(request.postData()).n);
    });
    await page.goto(`${server.url}#l=2&h=1&e=v@2.g0=scale:0.5&gn=60`);
    // Read at once: the rest may be there a moment later.
    const seen = await page.waitForFunction(() => {
        const verdict = window.explorer?.follow?.verdict.textContent ?? ''; // the page may not be there yet
        if (!/^generating… (6|24) of 60 tokens$/.test(verdict)) return null;
        const texts = [...document.querySelectorAll('.generated dd')].map((entry) => entry.textContent);
        const marks = [...document.querySelectorAll('.follow-part .older-mark')];
        return { texts, isMarked: marks.some((mark) => mark.getClientRects().length > 0) };
    });
    const early = await seen.jsonValue();
    assert.equal(early.isMarked, true, 'not all of it is there');
    await stage.ready(page);
    assert.deepEqual(asked, [6, 24, 60]);
    const texts = JSON.parse(
        qkv(['generate', '-p', PROMPT, '-n', '60', '--variant', 'v@2.g0=scale:0.5', '--json']),
    )[0].variants.map(({ text }) => text);
    assert.deepEqual(await page.locator('.generated dd').allTextContents(), texts);
    early.texts.forEach((text, i) => assert.ok(text && texts[i].startsWith(text.replace(/\uFFFD$/, '')), text));
    assert.equal(await page.locator('.older-mark:visible').count(), 0);
}

// What comes when the slider rests is marked as older until it has come, and is then the program's.
export async function case_what_follows(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: '#l=2&h=1&e=v@2.g0=scale:0.5&gn=12' });
    await page.focus('.slider input[type=range]');
    await page.keyboard.press('Home');
    assert.equal(
        await page.locator('.follow-part .older-mark:visible').count(),
        2,
        'next tokens and text are older',
    );
    await stage.ready();
    assert.equal(await page.locator('.older-mark:visible').count(), 0);
    const edits = 'v@2.g0=scale:0';
    const { columns, rows: tokens } = JSON.parse(
        qkv(['next', '-p', PROMPT, '--variant', edits, '--top', '10', '--json']),
    ).tables.find(({ name }) => name === 'tokens');
    const row = tokens.find((cells) => cells[columns.indexOf('variant')] === edits);
    const next = Object.fromEntries(columns.map((name, i) => [name, row[i]]));
    const rows = await page.evaluate(() =>
        [...document.querySelectorAll('.follow-part tbody tr')].map((row) =>
            [...row.children].map((cell) => cell.textContent),
        ),
    );
    const shown = (value) => String(Number(value.toPrecision(3)));
    assert.equal(rows[0][0], next.text.replace(/ /g, '·'));
    assert.equal(rows[0][2], shown(next.probability));
    assert.equal(rows[0][1], shown(next.probability - next.probability_change));
    const kl = Number((await page.textContent('.follow-part .numbers b >> nth=2')).replace('−', '-'));
    assert.ok(Math.abs(kl / next.kl - 1) < 1e-3, `KL ${kl} is ${next.kl}`);
    const texts = JSON.parse(qkv(['generate', '-p', PROMPT, '-n', '12', '--variant', edits, '--json']))[0].variants;
    const pieces = await page.locator('.generated dd').allTextContents();
    assert.deepEqual(
        pieces,
        texts.map(({ text }) => text),
    );
    // At temperature 0 there is nothing to draw, so no seed; above it the text is that of the program with the same seed.
    const tool = (name) => page.locator(`.generate-tools input[aria-label=${name}]`);
    assert.ok(await tool('seed').isDisabled());
    await tool('temperature').fill('0.8');
    await tool('temperature').press('Enter');
    await tool('seed').fill('7');
    await tool('seed').press('Enter');
    await stage.ready();
    const drawn = ['--temperature', '0.8', '--seed', '7'];
    const told = JSON.parse(qkv(['generate', '-p', PROMPT, '-n', '12', '--variant', edits, ...drawn, '--json']))[0].variants;
    assert.deepEqual(
        await page.locator('.generated dd').allTextContents(),
        told.map(({ text }) => text),
    );
}

// The curve's points, and the number at the cursor, are those of `qkv measure`.
export async function case_curve(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: `${START}&e=q@5.h0=scale:0.5&fm=entropy` });
    const measured = JSON.parse(
        qkv([
            'measure',
            '-p',
            PROMPT,
            '--variant',
            'q@5.h0=scale:0.5',
            '--variant',
            'q@5.h0=scale:0',
            '--metrics',
            'entropy',
            '--layers',
            '5',
            '--heads',
            '0',
            '--json',
        ]),
    );
    const value = (variant) => measured.tables.find(({ name }) => name === 'values').rows[variant].at(-1);
    const curve = await page.evaluate(() => window.explorer.follow.curve);
    assert.ok(Math.abs(curve.baseline - value(0)) < 1e-9);
    assert.ok(Math.abs(curve.values[curve.factors.indexOf(0.5)] - value(1)) < 1e-9);
    assert.ok(Math.abs(curve.values[curve.factors.indexOf(0)] - value(2)) < 1e-9);
    assert.equal(await page.textContent('#metric-now'), String(Number(value(1).toPrecision(6))));
    assert.equal(await page.locator('.curve .cursor').count(), 1);
    const x = () => page.evaluate(() => Number(document.querySelector('.curve .here').getAttribute('cx')));
    const old = await x();
    await page.focus('.slider input[type=range]');
    await page.keyboard.press('PageDown');
    await page.waitForFunction(
        (at) => Number(document.querySelector('.curve .here').getAttribute('cx')) < at - 5,
        old,
    );
}

// The sink: hidden keys, rows that sum to 1 again, the log scale, a range, another colour map.
export async function case_sink_controls(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: `${START}&show=ba` });
    const drowned = await pixelOf(page, 'before', 10, 4);
    await page.getByLabel('Hide first keys').fill('1');
    await page.getByLabel('Hide first keys').press('Tab');
    assert.deepEqual(await page.evaluate(() => window.explorer.head.maps.before.zoom), [0, 15, 1, 15]);
    assert.notDeepEqual(await pixelOf(page, 'before', 10, 4), drowned);
    await page.getByLabel('renormalise').check();
    const sums = await page.evaluate(() => {
        const {
            values,
            data: { n },
        } = window.explorer.head;
        return Array.from({ length: n - 1 }, (_, i) =>
            Array.from({ length: n }, (_, j) => values.after[(i + 1) * n + j]).reduce((a, b) => a + b, 0),
        );
    });
    for (const sum of sums) assert.ok(Math.abs(sum - 1) < 1e-5, `a row sums to ${sum}`);
    const linear = await pixelOf(page, 'before', 10, 4);
    await page.getByLabel('Scale', { exact: true }).selectOption('log');
    assert.notDeepEqual(await pixelOf(page, 'before', 10, 4), linear);
    assert.match(await page.textContent('.panel-before .legend'), /log/);
    await page.getByLabel('Colours', { exact: true }).selectOption('viridis');
    await page.getByLabel('Highest weight of the colours').fill('0.2');
    await page.getByLabel('Highest weight of the colours').press('Tab');
    assert.match(await page.textContent('.panel-before .legend'), /0\.2/);
    await stage.ready();
    assert.match(await page.evaluate(() => location.hash), /hi=0\.2/);
    assert.match(await page.textContent('.command pre'), /--colormap viridis/);
    await page.getByLabel('Highest weight of the colours').fill('');
    await page.getByLabel('Lowest weight of the colours').fill('0.01');
    await page.getByLabel('Lowest weight of the colours').press('Tab');
    await stage.ready();
    assert.match(await page.textContent('.command pre'), /--range 0\.01,1 /, 'the lower end alone is a range too');
    await page.getByLabel('Hide first keys').fill('99');
    await page.getByLabel('Hide first keys').press('Tab');
    assert.equal(await page.inputValue('[aria-label="Hide first keys"]'), '14', 'one key stays');
}

// A weight has the colour that the figures give it.
export async function case_colours(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: `${START}&show=bd&mz=1` });
    const shown = await headOf(page),
        at = (q, k) => shown.before[q * shown.n + k];
    const tables = (await page.evaluate(() => window.explorer.info.colormaps)).coolwarm;
    for (const [q, k] of [
        [0, 0],
        [5, 0],
        [9, 3],
        [14, 14],
        [2, 9],
    ]) {
        const color = tables[Math.round(at(q, k) * (tables.length - 1))];
        const [red, green, blue] = await pixelOf(page, 'before', q, k);
        assert.equal(
            '#' + [red, green, blue].map((c) => c.toString(16).padStart(2, '0')).join(''),
            color,
            `the cell ${q}, ${k}`,
        );
    }
    assert.equal(tables[0], '#3b4cc0');
    assert.equal(tables.at(-1), '#b40426');
    await clickCell(page, 'before', 3, 1);
}
