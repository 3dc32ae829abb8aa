// Figures and charts in files, opened as a person would: from disk, without a network, in frames of a notebook.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import url from 'node:url';
import { attention, figureData, headOf, pageFolder, partsOf } from './attention.mjs';
import { qkv, readSafetensors, randomModel } from './stage.mjs';

const vectors = path.join(path.dirname(new URL(import.meta.url).pathname), '..', 'vectors');
const PROMPT = 'The river runs past the old mill.';

// ---- what the cases share ----

function makeFigure(stage, name, args) {
    const file = stage.file(name);
    qkv(['figure', ...args, '-q', '-o', file]);
    return file;
}

// Opens a file with the network off. The file itself is the only thing that is asked for.
async function openFile(stage, file, options = {}) {
    const page = await stage.tab({ origin: 'null', offline: true, ...options });
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    page.on('dialog', () => stage.problems.push('a dialog was opened'));
    await page.goto(url.pathToFileURL(file).href);
    await stage.ready(page);
    assert.deepEqual(asked, [url.pathToFileURL(file).href]);
    return page;
}

// The engine's own map under edits.
function enginePattern(stage, { model = [], prompt, layer, head, edits }) {
    const file = stage.file('engine.safetensors');
    qkv(['run', ...model, ...prompt, '-q', ...(edits ? ['--variant', edits] : []), '--capture', `pattern@${layer}.h${head}`, '-o', file]);
    return readSafetensors(fs.readFileSync(file)).tensors[`v${edits ? 1 : 0}/pattern.${layer}`].values;
}

// What the page says about a cell of a panel, whose place is gone to with the arrow keys from the corner of the map.
async function pointAt(page, panel, query, key, n) {
    await page.locator(`.panel-${panel} .map`).focus();
    for (let i = 0; i < n; i++) await page.keyboard.press('ArrowUp');
    for (let i = 0; i < n; i++) await page.keyboard.press('ArrowLeft');
    for (let i = 0; i < query; i++) await page.keyboard.press('ArrowDown');
    for (let i = 0; i < key; i++) await page.keyboard.press('ArrowRight');
    return (await page.locator('.head-view .readout').innerText()).replace(/\s+/g, ' ');
}

function shownNumber(readout, name) {
    const found = readout.match(new RegExp(`${name} (−?[0-9.e-]+)`));
    assert.ok(found, `no ${name} in "${readout}"`);
    return Number(found[1].replace('−', '-'));
}

const nearly = (a, b) => Math.abs(a - b) <= 2e-6 + 6e-6 * Math.abs(b);

// Pointing and pinning do not move the maps of a figure in a file either.
export async function case_offline_maps_stay(stage) {
    const file = makeFigure(stage, 'stays.html', ['modify', '--layer', '5', '--head', '0', '-p', PROMPT]);
    for (const width of [600, 1280, 2560]) {
        const page = await openFile(stage, file, { viewport: { width, height: 900 } });
        const map = page.locator('.panel-before .map');
        await map.scrollIntoViewIfNeeded();
        const before = await map.boundingBox();
        for (const part of [0.4, 0.6, 0.75]) {
            await page.mouse.move(before.x + before.width * 0.4, before.y + before.height * part);
            assert.deepEqual(await map.boundingBox(), before, `${width}: pointing`);
            await page.mouse.down();
            await page.mouse.up();
            assert.equal(await page.isVisible('.pinned'), true);
            assert.deepEqual(await map.boundingBox(), before, `${width}: pinning`);
        }
    }
}

// ---- numbers ----

export async function case_offline_from_disk(stage) {
    const file = makeFigure(stage, 'modify.html', ['modify', '--layer', '5', '--head', '0', '-p', PROMPT]);
    const page = await openFile(stage, file);
    const n = figureData(file).prompts[0].tokens.length;
    const at = { prompt: ['-p', PROMPT], layer: 5, head: 0 };
    const before = enginePattern(stage, at), after = enginePattern(stage, { ...at, edits: 'q@5.h0=scale:5e-1' });
    for (const [query, key] of [[n - 1, 0], [4, 3], [n - 1, n - 2]]) {
        const readout = await pointAt(page, 'after', query, key, n);
        assert.ok(nearly(shownNumber(readout, 'before'), before[query * n + key]), readout);
        assert.ok(nearly(shownNumber(readout, 'after'), after[query * n + key]), readout);
    }
    assert.equal(await page.locator('.thumb-button').count(), 9);
    assert.match(await page.locator('.figure-notes').innerText(), /kB of numbers in this file/);
}

export async function case_offline_slider(stage) {
    const file = makeFigure(stage, 'modify.html', ['modify', '--layer', '5', '--head', '0', '-p', PROMPT]);
    const page = await openFile(stage, file);
    const n = figureData(file).prompts[0].tokens.length;
    const range = page.locator('.factor input[type=range]'), box = page.locator('.factor-box'), edits = page.locator('.panel-edits');
    const check = async (site, eps) => {
        assert.equal(await edits.innerText(), `${site}@5.h0=scale:${eps}`);
        const wanted = enginePattern(stage, { prompt: ['-p', PROMPT], layer: 5, head: 0, edits: `${site}@5.h0=scale:${eps}` });
        for (const [query, key] of [[n - 1, 0], [5, 2]]) {
            const readout = await pointAt(page, 'after', query, key, n);
            assert.ok(nearly(shownNumber(readout, 'after'), wanted[query * n + key]), `${site} ${eps}: ${readout}, wanted ${wanted[query * n + key]}`);
        }
    };
    // By the mouse, dragged through several places.
    const place = await range.boundingBox();
    await page.mouse.move(place.x + place.width * 0.7, place.y + place.height / 2);
    await page.mouse.down();
    await page.mouse.move(place.x + place.width * 0.5, place.y + place.height / 2, { steps: 5 });
    await page.mouse.up();
    const dragged = Number(await box.inputValue());
    assert.ok(dragged > 1e-4 && dragged < 0.5, `dragged to ${dragged}`);
    await check('q', await box.inputValue());
    // By the keyboard: a step changes it a little, Home is 0, End the largest.
    await range.focus();
    await page.keyboard.press('ArrowRight');
    const stepped = Number(await box.inputValue());
    assert.ok(stepped > dragged && stepped < dragged * 1.2, `${dragged} to ${stepped}`);
    await check('q', await box.inputValue());
    await range.focus();
    await page.keyboard.press('End');
    assert.equal(await box.inputValue(), '10');
    await range.focus();
    await page.keyboard.press('Home');
    assert.equal(await box.inputValue(), '0');
    await check('q', '0');
    // By the number, also one that no place of the slider has; nonsense changes nothing.
    await box.fill('-0.75');
    await box.press('Enter');
    await check('q', '-0.75');
    await box.fill('much');
    await box.press('Enter');
    assert.equal(await box.getAttribute('aria-invalid'), 'true');
    assert.equal(await edits.innerText(), 'q@5.h0=scale:-0.75');
    // Another panel, and back to what was drawn.
    await page.locator('.thumb-button').nth(4).click();
    await check('k', '1e-3');
    await page.getByRole('button', { name: '1', exact: true }).click();
    await check('k', '1');
    await page.getByRole('button', { name: 'as drawn' }).click();
    await check('k', '1e-3');
    // Values: the slider is there, and nothing moves.
    await page.locator('.thumb-button').nth(7).click();
    await page.locator('.factor-box').fill('5');
    await page.locator('.factor-box').press('Enter');
    assert.match(await page.locator('.factors').innerText(), /no part in the weights/);
    assert.match(await page.locator('.panel-after .panel-note').innerText(), /bit for bit as before/);
}

// attention.js in Chromium against the engine, with a cap and with a learned sink, over the whole range.
export async function case_offline_numbers_in_browser(stage) {
    const page = await stage.tab();
    const source = fs.readFileSync(path.join(pageFolder, 'attention.js'), 'utf8').replace(/^export /gm, '');
    await page.setContent('<!DOCTYPE html><title>numbers</title>');
    await page.addScriptTag({ content: `${source}\nwindow.ScoredHead = ScoredHead; window.decodeMap = decodeMap;` });
    for (const family of ['gemma2', 'gpt_oss', 'gemma3', 'bert', 'llama_gqa']) {
        const model = path.join(vectors, family, 'model.gguf');
        const { tokens } = JSON.parse(fs.readFileSync(path.join(vectors, family, 'expect.json'))).prompts[0];
        const ids = tokens.join(',');
        const file = makeFigure(stage, 'family.html', ['modify', '-m', model, '--tokens', ids, '--layer', '1', '--head', '1']);
        const data = figureData(file), head = headOf(data);
        let most = 1;
        for (const score of head.scores) most = Math.max(most, Math.abs(score));
        for (const eps of [1e-10, 1e-4, 0.03, 0.5, 1, 3, 10]) {
            const shown = await page.evaluate(({ data, eps }) => {
                const { tokens, scores } = data.prompts[0], n = tokens.length;
                const own = new window.ScoredHead({ n, scores: window.decodeMap(data.maps[scores]), causal: data.causal, window: data.window,
                                                    softcap: data.softcap, sink: data.sink, slope: data.slope });
                return [...own.weights([{ axis: 'query', eps, tokens: null }], new Float32Array(n * n))];
            }, { data, eps });
            const wanted = enginePattern(stage, { model: ['-m', model], prompt: ['--tokens', ids], layer: 1, head: 1, edits: `q@1.h1=scale:${eps}` });
            const worst = Math.max(...shown.map((value, i) => Math.abs(value - wanted[i])));
            assert.ok(worst <= 3e-7 * Math.max(1, eps * most), `${family}, ${eps}: off by ${worst}`);
        }
    }
    assert.ok(attention.ScoredHead);
}

// ---- every kind ----

export async function case_offline_kinds(stage) {
    const base = ['-p', PROMPT];
    const kinds = {
        mean: ['mean', ...base, '-p', 'A red boat waits.'], heads: ['heads', ...base, '--variant', 'q@2=scale:0.1'],
        rows: ['rows', ...base, '--variant', 'q@2=scale:0.1', '--baseline'], rows_one: ['rows', ...base, '--layer', '3'],
        pattern: ['pattern', ...base, '--layer', '2', '--head', '1', '--variant', 'q@2=scale:0.1'],
        patterns: ['pattern', ...base, '--layer', '2', '--head', '0-2', '--variant', 'q@2=scale:0.1'],
        scores: ['grid', '--layer', '5', '--head', '0', ...base, '--show', 'scores', '--col', 'Half=q@5.h0=scale:0.5'],
        diff: ['modify', ...base, '--diff'], skipped: ['modify', ...base, '--skip-keys', '1', '--baseline'],
        bert: ['modify', '-m', path.join(vectors, 'bert', 'model.gguf'), '--tokens', '5,6,7,8,9', '--layer', '0', '--head', '0'],
        sink: ['modify', '-m', path.join(vectors, 'gpt_oss', 'model.gguf'), '--tokens', '5,6,7,8,9', '--layer', '0', '--head', '0', '--sink-column'],
    };
    for (const [name, args] of Object.entries(kinds)) {
        const file = makeFigure(stage, `${name}.html`, args), data = figureData(file);
        const page = await openFile(stage, file);
        const panels = data.panels.length;
        assert.equal(await page.locator('.thumb-button').count(), panels);
        if (panels > 1) {
            await page.locator('.thumb-button').nth(panels - 1).click();
            assert.equal(await page.locator('.thumb-button').nth(panels - 1).getAttribute('aria-pressed'), 'true');
            await page.keyboard.press('ArrowLeft');
            assert.equal(await page.locator('.thumb-button').nth(panels - 2).getAttribute('aria-pressed'), 'true');
        }
        // Something is painted in every map that is shown.
        const inked = await page.locator('.panel:not([hidden]) .map-base').evaluateAll((all) => all.map((canvas) => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(pixels.buffer)).size;
        }));
        assert.ok(inked.length > 0 && inked.every((colors) => colors > 3), `${name}: ${inked}`);
        await page.context().close();
    }
}

export async function case_offline_report(stage) {
    const file = stage.file('report.html');
    qkv(['figure', 'modify', '--layer', '5', '--head', '0', '-p', PROMPT, '-q', '--report', file]);
    const page = await openFile(stage, file);
    assert.equal(await page.locator('.facts li').count() > 5, true);
    assert.equal(await page.locator('.mark.no').count(), 0);
    assert.equal(await page.locator('.badge').count(), 9);
    assert.match(await page.locator('.panel-numbers').innerText(), /first column/);
    // Its maps live, too.
    await page.locator('.factor input[type=range]').focus();
    await page.keyboard.press('Home');
    assert.equal(await page.locator('.panel-edits').innerText(), 'q@5.h0=scale:0');
}

// ---- frames ----

export async function case_offline_srcdoc(stage) {
    const first = fs.readFileSync(makeFigure(stage, 'a.html', ['modify', '-p', PROMPT]), 'utf8');
    const second = fs.readFileSync(makeFigure(stage, 'b.html', ['heads', '-p', 'A red boat waits.']), 'utf8');
    const page = await stage.tab({ offline: true });
    await page.setContent('<!DOCTYPE html><title>notebook</title><h1>Notebook</h1>');
    // As notebooks do it: several in one page, one of them without any rights but scripts.
    await page.evaluate(([a, b]) => {
        for (const [text, sandbox] of [[a, null], [b, 'allow-scripts'], [a, 'allow-scripts']]) {
            const frame = document.createElement('iframe');
            frame.srcdoc = text;
            frame.style.width = '1200px';
            frame.style.height = '760px';
            if (sandbox) frame.sandbox = sandbox;
            document.body.append(frame);
        }
    }, [first, second]);
    for (const index of [0, 1, 2]) {
        const frame = page.frameLocator('iframe').nth(index);
        await frame.locator('html[data-ready="yes"]').waitFor();
        assert.ok(await frame.locator('.thumb-button').count() > 5);
    }
    // They do not know of each other.
    const frames = [0, 2].map((index) => page.frameLocator('iframe').nth(index));
    await frames[1].locator('.factor input[type=range]').focus();
    await page.keyboard.press('Home');
    assert.equal(await frames[1].locator('.factor-box').inputValue(), '0');
    assert.equal(await frames[0].locator('.factor-box').inputValue(), '0.5');
}

// ---- look ----

export async function case_offline_dark(stage) {
    const file = makeFigure(stage, 'dark.html', ['modify', '-p', PROMPT]);
    const light = (text) => {
        const [red, green, blue] = text.match(/[\d.]+/g).map(Number);
        return red + green + blue;
    };
    const page = await openFile(stage, file, { colorScheme: 'dark' });
    const colors = () => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]);
    let [back, ink] = await colors();
    assert.ok(light(back) < 150 && light(ink) > 500, `${back} ${ink}`);
    await page.emulateMedia({ colorScheme: 'light' });
    [back, ink] = await colors();
    assert.ok(light(back) > 600 && light(ink) < 200, `${back} ${ink}`);
    // The switch overrides the system.
    const theme = page.locator('.theme');
    await theme.click();
    await theme.click();
    assert.equal(await theme.innerText(), 'Theme: dark');
    [back] = await colors();
    assert.ok(light(back) < 150);
}

export async function case_offline_scripts_of_the_world(stage) {
    const text = 'مرحبا 你好 мир 🚢👩‍🚀 e\u0301 \u202eabc';
    const file = makeFigure(stage, 'world.html', ['modify', '--layer', '5', '--head', '0', '-p', text]);
    const page = await openFile(stage, file);
    // Marks that turn the direction are shown, and do not act.
    assert.equal((await page.locator('.figure-header .prompt bdi').innerText()).includes('مرحبا 你好 мир'), true);
    const n = figureData(file).prompts[0].tokens.length;
    const readout = await pointAt(page, 'before', n - 1, 0, n);
    assert.match(readout, /query .* key /);
}

export async function case_offline_hostile_texts(stage) {
    const text = '</script><script>alert(1)</script><img src=x onerror=alert(2)><!-- &lt; "quoted" \u0000 end';
    const file = makeFigure(stage, 'hostile.html', ['grid', '--layer', '5', '--head', '0', '-p', text.replace('\u0000', ''),
        '--title', '</title><script>alert(3)</script>', '--col', '<b>x</b><i/onclick>=q@5.h0=scale:0.5', '--col', 'B=']);
    const page = await openFile(stage, file);
    assert.equal(await page.locator('img, b, i').count(), 0);
    assert.equal(await page.locator('script').count(), 3);
    assert.equal(await page.locator('.thumb-title').first().innerText(), '<b>x</b><i/onclick>');
    assert.match(await page.locator('.figure-header').innerText(), /<\/script><script>alert\(1\)/);
    assert.equal(await page.title(), '</title><script>alert(3)</script>');
    // Even a script that got in would not run: the policy names the page's own.
    await page.evaluate(() => {
        const script = document.createElement('script');
        script.textContent = 'window.intruder = true';
        document.body.append(script);
    });
    assert.equal(await page.evaluate(() => window.intruder), undefined);
    stage.allow(/violates the following Content Security Policy/);
}

// ---- size ----

export async function case_offline_long_prompt(stage) {
    const ids = Array.from({ length: 1200 }, (_, i) => 5 + ((i * 7) % 120)).join(',');
    const model = path.join(vectors, 'falcon', 'model.gguf');
    const file = makeFigure(stage, 'long.html', ['modify', '-m', model, '--tokens', ids, '--layer', '1', '--head', '1']);
    const data = figureData(file);
    assert.equal(data.storage.made, true);
    assert.ok(fs.statSync(file).size < 6e6, `${fs.statSync(file).size} bytes`);
    const page = await openFile(stage, file);
    assert.match(await page.locator('.figure-notes').innerText(), /2\.9 MB of numbers.*scores in F32, of which/s);
    await page.locator('.factor-box').fill('0.3');
    await page.locator('.factor-box').press('Enter');
    const wanted = enginePattern(stage, { model: ['-m', model], prompt: ['--tokens', ids], layer: 1, head: 1, edits: 'q@1.h1=scale:0.3' });
    const readout = await pointAt(page, 'after', 20, 10, 1);
    const n = 1200, query = Number(readout.match(/query \S+ ([\d,]+)/)[1].replace(',', '')), key = Number(readout.match(/key \S+ ([\d,]+)/)[1].replace(',', ''));
    assert.ok(nearly(shownNumber(readout, 'after'), wanted[query * n + key]), `${readout}, wanted ${wanted[query * n + key]}`);
    // The slider stays usable: a move is computed and painted in a fraction of a second.
    const range = page.locator('.factor input[type=range]');
    const took = await range.evaluate((input) => {
        const times = [];
        for (let i = 0; i < 5; i++) {
            const start = performance.now();
            input.value = String(500 + 40 * i);
            input.dispatchEvent(new Event('input'));
            times.push(performance.now() - start);
        }
        return times.sort((a, b) => a - b)[2];
    });
    console.log(`1,200 tokens: a move of the slider takes ${took.toFixed(0)} ms`);
    assert.ok(took < 1500, `${took} ms`);
}

// Maps that scores do not give, too many for F32: pooled, and the page says so.
export async function case_offline_pooled(stage) {
    const ids = Array.from({ length: 1500 }, (_, i) => 5 + ((i * 7) % 120)).join(',');
    const columns = Array.from({ length: 8 }, (_, i) => ['--col', `N${i}=q@1.h1=noise:0.5,seed=${i}`]).flat();
    const file = makeFigure(stage, 'pooled.html', ['grid', '-m', path.join(vectors, 'falcon', 'model.gguf'), '--tokens', ids,
        '--layer', '1', '--head', '1', ...columns]);
    const page = await openFile(stage, file);
    assert.match(await page.locator('.figure-notes').innerText(), /half precision.*pooled: a cell is the largest of 3 × 3/s);
    assert.match(await page.locator('.panel-before .panel-note').innerText(), /largest of 3 × 3/);
    assert.ok(fs.statSync(file).size < 12e6);
}

// Longer than a file holds scores of: no slider, and the page says why, and how coarse its maps are.
export async function case_offline_too_long(stage) {
    const model = randomModel(stage.file('long'), 'llama:1,2,2,32,64,512,8192');
    const ids = Array.from({ length: 2600 }, (_, i) => 5 + ((i * 7) % 120)).join(',');
    const file = makeFigure(stage, 'toolong.html', ['modify', '-m', model, '--tokens', ids, '--layer', '0', '--head', '1']);
    const page = await openFile(stage, file);
    assert.match(await page.locator('.figure-notes').innerText(), /half precision.*pooled: a cell is the largest of \d × \d/s);
    await page.locator('.thumb-button').first().click();
    assert.match(await page.locator('body').innerText(), /The prompt is too long for scores in this file/);
    assert.equal(await page.locator('.factor input[type=range]').count(), 0);
    assert.ok(fs.statSync(file).size < 12e6, `${fs.statSync(file).size} bytes`);
}

// ---- charts ----

export async function case_offline_plot(stage) {
    const results = stage.file('r.sqlite'), file = stage.file('plot.html');
    qkv(['sweep', '-p', PROMPT, '-p', 'A red boat waits at the pier.', '--targets', 'none,q,k', '--epsilon', '0.01,0.1,1',
         '--metrics', 'sink,tv', '-q', '-o', results]);
    qkv(['plot', results, '--metric', 'sink', '--kind', 'heatmap', '--epsilon', '0.1', '-o', file]);
    const csv = stage.file('r.csv');
    qkv(['sweep', 'export', results, '-o', csv]);
    const [head, ...lines] = fs.readFileSync(csv, 'utf8').trim().split('\n').map((line) => line.split(','));
    const rows = lines.map((line) => Object.fromEntries(head.map((name, i) => [name, line[i]])));
    const mean = (metric, target, layer, head2, eps) => {
        const found = rows.filter((row) => row.metric === metric && row.target === target && row.layer === String(layer) &&
            row.head === String(head2) && Number(row.epsilon) === eps).map((row) => Number(row.value));
        assert.equal(found.length, 2);
        return (found[0] + found[1]) / 2;
    };
    const page = await openFile(stage, file);
    const maps = page.locator('.plot-page .map');
    assert.equal(await maps.count(), 2);
    // By the keyboard: the cell of layer 2, head 1 of q.
    await maps.first().focus();
    for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowUp');
    for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    const detail = page.locator('.detail');
    assert.equal(await detail.locator('h2').innerText(), 'Query, layer 2, head 1');
    const cell = async (metric, column) => Number((await detail.locator(`tr:has(th:text-is("${metric}")) td`).nth(column).innerText()).replace('−', '-'));
    for (const metric of ['sink', 'tv']) {
        assert.ok(Math.abs(await cell(metric, 1) - mean(metric, 'q', 2, 1, 0.1)) < 1e-3 * Math.abs(mean(metric, 'q', 2, 1, 0.1)) + 1e-6);
    }
    assert.ok(Math.abs(await cell('sink', 0) - rows.filter((row) => row.metric === 'sink' && row.target === 'none' && row.layer === '2' && row.head === '1')
        .reduce((sum, row) => sum + Number(row.value) / 2, 0)) < 1e-3);
    assert.match(await detail.locator('code').innerText(), /qkv figure grid --layer 2 --head 1 .*q@2\.h1=scale:0\.1/);
    // Another ε and metric.
    await page.locator('.eps-choice input').focus();
    await page.keyboard.press('End');
    assert.equal(await page.locator('.eps-text').innerText(), '1');
    await page.getByLabel('Metric').selectOption({ label: 'tv' });
    assert.ok(Math.abs(await cell('tv', 1) - mean('tv', 'q', 2, 1, 1)) < 1e-6);
    // By the mouse.
    const place = await maps.nth(1).boundingBox();
    await page.mouse.click(place.x + place.width * 0.9, place.y + place.height * 0.2);
    assert.match(await detail.locator('h2').innerText(), /^Key, layer \d, head 3$/);
}

// With the sweep's model a cell opens the attention of its head, and its numbers are the engine's.
export async function case_offline_plot_attention(stage) {
    const results = stage.file('r.sqlite'), file = stage.file('plot.html'), model = path.join(process.env.MODELS, 'default.gguf');
    qkv(['sweep', '-m', model, '-p', PROMPT, '-p', 'A red boat waits at the pier.', '--targets', 'none,q,k,v,z', '--epsilon', '0.1,1',
         '--metrics', 'sink,tv', '-q', '-o', results]);
    qkv(['plot', results, '--metric', 'sink', '--kind', 'heatmap', '--epsilon', '0.1', '-m', model, '-o', file]);
    const page = await openFile(stage, file);
    const open = async (target, layer, head) => {
        const map = page.locator('.plot-page .map').nth(target);
        await map.focus();
        for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowUp');
        for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowLeft');
        for (let i = 0; i < layer; i++) await page.keyboard.press('ArrowDown');
        for (let i = 0; i < head; i++) await page.keyboard.press('ArrowRight');
        await page.keyboard.press('Enter');
    };
    const check = async (prompt, layer, head, edits) => {
        const n = Number((await page.locator('.cell-attention select').first().locator('option:checked').innerText()).match(/(\d+) tokens/)[1]);
        const wanted = enginePattern(stage, { model: ['-m', model], prompt: ['-p', prompt], layer, head, edits });
        const readout = await pointAt(page, 'after', n - 1, 1, n);
        assert.ok(nearly(shownNumber(readout, 'after'), wanted[(n - 1) * n + 1]), `${readout}, wanted ${wanted[(n - 1) * n + 1]}`);
    };
    await open(0, 2, 1);
    assert.equal(await page.locator('.cell-attention h2').innerText(), 'Attention: Query, layer 2, head 1');
    await check(PROMPT, 2, 1, 'q@2.h1=scale:0.1');
    await page.locator('.cell-attention .factor-box').fill('0.37');
    await page.locator('.cell-attention .factor-box').press('Enter');
    await check(PROMPT, 2, 1, 'q@2.h1=scale:0.37');
    await page.locator('.cell-attention select').first().selectOption('1');
    await check('A red boat waits at the pier.', 2, 1, 'q@2.h1=scale:0.37');
    await open(1, 4, 3);
    await check('A red boat waits at the pier.', 4, 3, 'k@4.h3=scale:0.1');
    await open(2, 4, 3);
    assert.match(await page.locator('.cell-attention .panel-after .panel-note').innerText(), /bit for bit as before/);
    // What acts after the weights is not a factor of them.
    await open(3, 4, 3);
    assert.match(await page.locator('.cell-attention').innerText(), /only factors of q and k/);
}

export async function case_offline_plot_kinds(stage) {
    const results = stage.file('r.sqlite');
    qkv(['sweep', '-p', PROMPT, '--targets', 'none,q,k', '--epsilon', '0.001,0.01,0.1,1', '--metrics', 'sink,tv', '-q', '-o', results]);
    for (const args of [['--kind', 'lines'], ['--kind', 'lines', '--by', 'head', '--layers', '2', '--target', 'q'], ['--kind', 'ranking', '--epsilon', '0.1', '--change']]) {
        const file = stage.file('plot.html');
        qkv(['plot', results, '--metric', 'sink', ...args, '-o', file]);
        const page = await openFile(stage, file);
        assert.equal(await page.locator('.chart svg').count(), 1);
        if (args[1] === 'ranking') {
            await page.locator('.bar-row').nth(3).click();
            const name = await page.locator('.bar-row').nth(3).getAttribute('aria-label');
            assert.ok(name.startsWith((await page.locator('.detail h2').innerText()).replace(', ', ' ').slice(0, 20)), name);
        } else assert.ok(await page.locator('.chart circle').count() >= 8);
        await page.context().close();
    }
}

// ---- studies ----

export async function case_offline_study(stage) {
    const file = stage.file('lens.html');
    qkv(['lens', '-p', PROMPT, '--answer', ' river', '--heads', '-q', '-o', file]);
    const page = await openFile(stage, file);
    // A cell of layers and heads: its number, and the map that it opens is the engine's.
    const map = page.locator('.study-map .map').first();
    await map.focus();
    for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowUp');
    for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowLeft');
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    const readout = (await page.locator('.study-map .readout').first().innerText()).replace(/\s+/g, ' ');
    assert.match(readout, /layer 3 head 1/);
    const rows = qkv(['lens', '-p', PROMPT, '--answer', ' river', '--heads', '-q', '--table', 'parts', '-o', '-', '--format', 'csv']).toString().split('\n');
    const wanted = Number(rows.find((row) => row.startsWith('head,3,1,')).split(',')[3]);
    assert.ok(Math.abs(shownNumber(readout, 'logit') - wanted) <= 1e-4 * (1 + Math.abs(wanted)), `${readout}, not ${wanted}`);
    await page.keyboard.press('Enter');
    assert.match(await page.locator('.cell-attention h2').innerText(), /layer 3, head 1/);
    const pattern = enginePattern(stage, { prompt: ['-p', PROMPT], layer: 3, head: 1 });
    const n = Math.sqrt(pattern.length);
    const shown = shownNumber(await pointAt(page, 'before', 4, 0, n), 'weight');
    assert.ok(Math.abs(shown - pattern[4 * n]) <= 1e-4, `${shown}, not ${pattern[4 * n]}`);
    // A cell of layers and tokens opens the same layer's map, with the head that was shown.
    const tokens = page.locator('[aria-label="top"] .map').first();
    await tokens.focus();
    for (let i = 0; i < 40; i++) await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    assert.match(await page.locator('.cell-attention h2').innerText(), /layer 0, head 1/);
    assert.equal(await page.locator('details.card').count(), 5);
}

// Cells of some layers, heads and tokens open their own; patching shows both prompts, a comparison both models.
export async function case_offline_study_parts(stage) {
    const [clean, corrupt] = ['The river runs past the mill', 'The church runs past the mill'], patched = stage.file('patch.html');
    qkv(['patch', '--clean', clean, '--corrupt', corrupt, '--metric', 'kl', '--layers', '2,4', '--heads', '1,3', '--positions', '2,4', '-q', '-o', patched]);
    const page = await openFile(stage, patched);
    const title = () => page.locator('.cell-attention h2').innerText();
    const openLast = async (name) => {
        await page.locator(`[aria-label="${name}"] .map`).first().focus();
        for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
        for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowRight');
        await page.keyboard.press('Enter');
    };
    await openLast('heads');
    assert.match(await title(), /layer 4, head 3/);
    const [first, second] = [clean, corrupt].map((prompt) => enginePattern(stage, { prompt: ['-p', prompt], layer: 4, head: 3 }));
    const n = Math.sqrt(first.length), readout = await pointAt(page, 'after', n - 1, 2, n), at = (n - 1) * n + 2;
    assert.ok(Math.abs(shownNumber(readout, 'clean') - first[at]) <= 1e-4, readout);
    assert.ok(Math.abs(shownNumber(readout, 'corrupt') - second[at]) <= 1e-4, readout);
    // The column of a token marks that token's row.
    await openLast('positions');
    assert.match(await title(), /layer 4, head 3/);
    assert.match((await page.locator('.cell-attention .pinned').innerText()).replace(/\s+/g, ' '), /query.* 4\b/);
    // Of a run that is noised, colours are the recovery minus 1: a patch without effect is 0.
    const noised = stage.file('noise.html'), table = stage.file('noise.csv');
    qkv(['patch', '--clean', clean, '--corrupt', corrupt, '--metric', 'kl', '--direction', 'noise', '--site', 'resid_pre', '-q', '-o', noised, '-o', table]);
    const noise = await openFile(stage, noised), rows = fs.readFileSync(table, 'utf8').trim().split('\n').map((row) => row.split(','));
    const recovery = Number(rows.find((row) => row[3] === '0' && row[5] === '2')[rows[0].indexOf('recovery')]);
    await noise.locator('.study-map .map').first().focus();
    for (let i = 0; i < 9; i++) await noise.keyboard.press('ArrowUp');
    for (let i = 0; i < 9; i++) await noise.keyboard.press('ArrowLeft');
    for (let i = 0; i < 2; i++) await noise.keyboard.press('ArrowRight');
    const change = (await noise.locator('.study-map .readout').first().innerText()).replace(/\s+/g, ' ');
    assert.ok(Math.abs(recovery) < 1e-6, `${recovery}`);
    assert.equal(shownNumber(change, 'change of recovery'), -1);
    // An edited model: the second map has the edit in it.
    const compared = stage.file('compare.html');
    qkv(['compare', '--edit', 'q@3.h1=zero', '-p', clean, '-q', '-o', compared]);
    const other = await openFile(stage, compared);
    const edited = enginePattern(stage, { prompt: ['-p', clean], layer: 3, head: 1, edits: 'q@3.h1=zero' });
    assert.match(await other.locator('.cell-attention h2').innerText(), /layer 3, head 1/);
    const both = await pointAt(other, 'after', n - 1, 2, n);
    assert.ok(Math.abs(shownNumber(both, 'second') - edited[at]) <= 1e-4, both);
}

// A study whose prompts are not what was run: cells open the text that was, with the answer after it.
export async function case_offline_study_retrieval(stage) {
    const file = stage.file('retrieval.html'), tables = stage.file('retrieval.json');
    qkv(['recipe', 'retrieval-heads', '--set', 'decode=forced', '--set', 'lengths=70,80', '-q', '-o', file, '-o', tables]);
    const page = await openFile(stage, file);
    assert.deepEqual(await page.locator('.study-map .panel-note').allInnerTexts(), ['layers down, heads across', 'depths down, lengths across']);
    await page.locator('[aria-label="heads"] .map').first().focus();
    for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowDown');
    for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    assert.match(await page.locator('.cell-attention h2').innerText(), /layer 5, head 1/);
    const rows = JSON.parse(fs.readFileSync(tables)).tables.find((table) => table.name === 'tokens').rows;
    const tokens = rows.filter((row) => row[0] === 0).map((row) => row[2]).slice(0, -1), n = tokens.length;
    const pattern = enginePattern(stage, { prompt: ['--tokens', tokens.join(',')], layer: 5, head: 1 });
    const key = pattern.slice((n - 1) * n).reduce((best, weight, i, row) => (weight > row[best] ? i : best), 0);
    const shown = shownNumber(await pointAt(page, 'before', n - 1, key, n), 'weight');
    assert.ok(Math.abs(shown - pattern[(n - 1) * n + key]) <= 1e-4, `${shown}, not ${pattern[(n - 1) * n + key]}`);
}

// Texts of cells stand in the map, each in its own cell: the lens page has the tokens of the table, the heads page the letters.
export async function case_offline_study_texts(stage) {
    const long = 'The river runs past the old mill and down to the sea, where boats wait for the wind and the tide.';
    for (const [args, picture, width] of [[['lens', '-p', PROMPT], 'top', 1280], [['lens', '-p', PROMPT], 'top', 1920], [['lens', '-p', long], 'top', 390],
                                          [['roles', '-p', PROMPT], 'labels', 1440]]) {
        const file = stage.file('texts.html');
        qkv([...args, '-q', '-o', file]);
        const page = await stage.tab({ origin: 'null', offline: true, viewport: { width, height: 900 } });
        // What is written on canvases, and where: labels of columns are turned.
        await page.addInitScript(() => {
            const write = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
                const to = this.getTransform(), kind = to.b !== 0 ? 'column' : this.textAlign === 'right' ? 'row' : 'cell';
                (this.canvas.written ??= []).push({ text: text.replace(/[\u2068\u2069]/g, ''), kind, x: to.a * x + to.c * y + to.e, y: to.b * x + to.d * y + to.f,
                                                    width: this.measureText(text).width });
                return write.call(this, text, x, y, ...rest);
            };
        });
        await page.goto(url.pathToFileURL(file).href);
        await stage.ready(page);
        const canvas = page.locator(`[aria-label="${picture}"] .map-base`).first();
        await page.waitForFunction((name) => document.querySelector(`[aria-label="${name}"] .map-base`)?.written, picture);
        const { rows, cols, texts } = partsOf(file, 'heatmap').find(({ name }) => name === picture).panels[0];
        assert.equal(texts.length, rows * cols);
        const written = await canvas.evaluate((node) => node.written), ofKind = (kind) => written.filter((one) => one.kind === kind);
        const rowLabels = ofKind('row').slice(-rows), colLabels = ofKind('column').slice(-cols), cellWidth = colLabels[1].x - colLabels[0].x;
        let seen = 0, whole = 0;
        texts.forEach((text, at) => {
            if (!text) return;
            const { x } = colLabels[at % cols], { y } = rowLabels[Math.floor(at / cols)];
            const found = ofKind('cell').findLast((one) => Math.abs(one.x - x) < 2 && Math.abs(one.y - y) < 2);
            assert.ok(found, `${picture}, ${width} px: nothing is written in cell ${at}, "${text}"`);
            assert.ok(found.text === text || (found.text.endsWith('…') && text.startsWith(found.text.slice(0, -1))), `"${found.text}" in the cell of "${text}"`);
            assert.ok(found.width <= cellWidth, `"${found.text}" is wider than its cell`);
            seen++;
            whole += found.text === text;
        });
        assert.ok(seen >= (picture === 'top' ? rows * cols : 4), `${seen} texts`);
        assert.ok(whole >= seen * 0.9, `${whole} of ${seen} are whole`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the map is scrolled, not the page');
        await page.context().close();
    }
}

// The middle of a cell of a study's map, scrolled to where a person would click it.
async function cellOfStudy(page, name, row, col, [rows, cols]) {
    const map = page.locator(`[aria-label="${name}"] .map`).first();
    await map.evaluate((node) => node.scrollIntoView({ block: 'center' }));
    return map.evaluate((node, { row, col, rows, cols }) => {
        const canvas = node.querySelector('.map-over'), box = canvas.getBoundingClientRect();
        // Labels stand at the left and below: the plot ends at the right edge.
        return { x: box.right - 4 - ((cols - col - 0.5) * (box.width - 30)) / cols, y: box.top + 3 + (row + 0.4) * ((box.height - 40) / rows) };
    }, { row, col, rows, cols });
}

// What a cell opens is in sight, and so is the cell; whichever map of the page it is of.
export async function case_offline_study_in_sight(stage) {
    const file = stage.file('sight.html');
    qkv(['lens', '-p', PROMPT, '--answer', ' river', '--heads', '-q', '-o', file]);
    const pictures = partsOf(file, 'heatmap');
    for (const [width, height] of [[1280, 800], [1440, 900], [1920, 1080], [390, 844]]) {
        const page = await openFile(stage, file, { viewport: { width, height } });
        for (const { name, cells, panels } of [...pictures].reverse()) {
            if (cells === 'none') continue;
            const { x, y } = await cellOfStudy(page, name, 1, 0, [panels[0].rows, panels[0].cols]);
            await page.mouse.click(x, y);
            const seen = await page.evaluate((picture) => {
                const card = document.querySelector('.cell-attention'), title = card.querySelector('h2').getBoundingClientRect();
                const map = document.querySelector(`[aria-label="${picture}"]`), plot = map.querySelector('.map').getBoundingClientRect();
                return { top: title.top, bottom: title.bottom, text: card.querySelector('h2').textContent, isNext: map.nextElementSibling === card,
                         part: (Math.min(innerHeight, card.getBoundingClientRect().bottom) - card.getBoundingClientRect().top) / innerHeight,
                         mapBottom: plot.bottom, room: innerHeight };
            }, name);
            assert.ok(seen.isNext, `${name}: below its map`);
            assert.match(seen.text, /layer 1/);
            assert.ok(seen.top >= 0 && seen.bottom <= seen.room, `${width} px, ${name}: the title is at ${seen.top}`);
            assert.ok(seen.part >= 0.35, `${width} px, ${name}: ${seen.part} of the window shows what was opened`);
            assert.ok(seen.mapBottom > 20, `${width} px, ${name}: something of the map is still seen`);
        }
        await page.context().close();
    }
}

// Cells without attention open their numbers: of every picture that has the same cell, and the rows of the tables.
export async function case_offline_study_numbers(stage) {
    const file = stage.file('weights.html');
    qkv(['weights', 'ov', '-q', '-o', file]);
    let page = await openFile(stage, file);
    const [tables, pictures] = ['table', 'heatmap'].map((type) => partsOf(file, type)), rowsOf = (name) => tables.find((table) => table.name === name);
    assert.deepEqual(await page.locator('.study-map .readout').first().innerText(), 'Point at a cell for its number, click to open all its numbers.');
    const { panels } = pictures.find(({ name }) => name === 'norm');
    const { x, y } = await cellOfStudy(page, 'norm', 3, 1, [panels[0].rows, panels[0].cols]);
    await page.mouse.click(x, y);
    const card = page.locator('.cell-numbers');
    assert.equal(await card.locator('h2').innerText(), 'Layer 3, head 1');
    const heads = rowsOf('heads'), row = heads.rows.find(([layer, head]) => layer === 3 && head === 1);
    for (const name of heads.columns.slice(2)) {
        const shown = await card.locator(`div:has(> dt:text-is("${name}")) dd`).innerText();
        assert.ok(Math.abs(Number(shown.replace('−', '-')) - row[heads.columns.indexOf(name)]) <= 1e-4 * Math.abs(row[heads.columns.indexOf(name)]), `${name}: ${shown}`);
    }
    const singular = rowsOf('singular').rows.filter(([layer, head]) => layer === 3 && head === 1).length;
    assert.equal(await card.locator('table').first().locator('tbody tr').count(), singular);
    const place = await card.boundingBox();
    assert.ok(place.y >= 0 && place.y < 760, `in sight: ${place.y}`);
    assert.equal(await page.locator('[aria-label="norm"] + .cell-numbers').count(), 1);
    // Pairs of heads: all three kinds of composition of the pair.
    qkv(['weights', 'composition', '-q', '-o', file]);
    page = await openFile(stage, file);
    await page.locator('[aria-label="heads"] .map').nth(1).focus();
    for (let i = 0; i < 30; i++) await page.keyboard.press('ArrowDown');
    for (let i = 0; i < 30; i++) await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('.cell-numbers h2').innerText(), 'Later head 5.3, earlier head 0.0');
    assert.deepEqual(await page.locator('.cell-numbers dt').allInnerTexts(), ['Q-composition', 'K-composition', 'V-composition']);
    const pairs = partsOf(file, 'heatmap')[0].panels.map((panel) => attention.decodeMap(panel.values)[(panel.rows - 1) * panel.cols]);
    (await page.locator('.cell-numbers dd').allInnerTexts()).forEach((text, i) => assert.ok(Math.abs(Number(text) - pairs[i]) < 1e-4, `${text}, not ${pairs[i]}`));
}

// No mark of italics is read as text, neither on pages nor in their titles; and of one page no two cards have one title.
export async function case_offline_titles(stage) {
    const results = stage.file('r.sqlite'), file = stage.file('titles.html');
    qkv(['sweep', '-p', PROMPT, '--targets', 'none,q', '--epsilon', '0.1,1', '--metrics', 'sink,tv', '-q', '-o', results]);
    const pages = {
        ranking: ['plot', results, '--metric', 'sink', '--kind', 'ranking', '--epsilon', '0.1', '--target', 'q', '-o', file],
        lines: ['plot', results, '--metric', 'sink', '--kind', 'lines', '--target', 'q', '-o', file],
        modify: ['figure', 'modify', '-p', PROMPT, '--title', 'Scaling *Query* and 2 \\* 2', '-q', '--report', file],
        mean: ['figure', 'mean', '-p', PROMPT, '-q', '-o', file],
        compare: ['compare', '--edit', 'q@3.h1=zero', '-p', PROMPT, '-q', '-o', file],
        roles: ['roles', '-p', PROMPT, '-q', '-o', file],
        lens: ['lens', '-p', PROMPT, '--answer', ' river', '--heads', '-q', '-o', file],
        weights: ['weights', 'qk', '-q', '-o', file],
        patch: ['patch', '--clean', 'The river runs', '--corrupt', 'The church runs', '--metric', 'kl', '-q', '-o', file],
        ships: ['recipe', 'ships', '-q', '-o', file],
        massive: ['recipe', 'massive-activations', '-q', '-o', file],
        sahara: ['recipe', 'sahara', '-q', '-o', file],
    };
    for (const [name, args] of Object.entries(pages)) {
        qkv(args);
        const page = await openFile(stage, file);
        const title = await page.title(), marks = name === 'modify' ? 1 : 0, count = (text) => text.split('*').length - 1;
        assert.ok(title.length > 5 && count(title) === marks && !title.includes('\\'), `${name}: the title is ${title}`);
        if (marks) assert.equal(title, 'Scaling Query and 2 * 2');
        const text = await page.evaluate(() => document.body.innerText);
        assert.ok(count(text) <= marks, `${name}: ${text.split('\n').filter((line) => line.includes('*')).join('; ')}`);
        const titles = await page.locator('#page > .card > h2').allInnerTexts();
        assert.equal(new Set(titles).size, titles.length, `${name}: ${titles.join('; ')}`);
        await page.context().close();
    }
}

// On a phone: nothing is wider than the screen, maps have its width, and what is chosen is in sight.
export async function case_offline_phone(stage) {
    const results = stage.file('r.sqlite'), model = path.join(process.env.MODELS ?? path.join(pageFolder, '../../../models'), 'default.gguf');
    qkv(['sweep', '-m', model, '-p', PROMPT, '--targets', 'none,q,k', '--epsilon', '0.01,0.1,1', '--metrics', 'sink,tv', '-q', '-o', results]);
    const pages = {
        modify: ['figure', 'modify', '-p', PROMPT, '-q', '--report'], rows: ['figure', 'rows', '-p', PROMPT, '--variant', 'q@2=scale:0.1', '--baseline', '-q', '-o'],
        all: ['figure', 'heads', '-p', PROMPT, '-q', '-o'], plot: ['plot', results, '--metric', 'sink', '--kind', 'heatmap', '--epsilon', '0.1', '-m', model, '-o'],
        ranking: ['plot', results, '--metric', 'sink', '--kind', 'ranking', '--epsilon', '0.1', '-o'],
        weights: ['weights', 'ov', '-q', '-o'], lens: ['lens', '-p', PROMPT, '-q', '-o'], compare: ['compare', '--edit', 'q@3.h1=zero', '-p', PROMPT, '-q', '-o'],
    };
    for (const [name, args] of Object.entries(pages)) {
        const file = stage.file(`${name}.html`);
        qkv([...args, file]);
        for (const width of [360, 390]) {
            const page = await openFile(stage, file, { viewport: { width, height: 800 }, hasTouch: true, isMobile: true });
            await page.waitForTimeout(150);
            const seen = await page.evaluate(() => {
                const isScrolled = (node) => node.closest('.wide, .study-map .panels, .thumb-grid.many, .chart-card');
                const outside = [...document.querySelectorAll('button, input, select, h1, h2, p, dl, img, figcaption')].filter((node) => {
                    const box = node.getBoundingClientRect();
                    return box.width > 0 && !isScrolled(node) && (box.right > innerWidth + 0.5 || box.left < -0.5);
                });
                const maps = [...document.querySelectorAll('.panel:not([hidden]) .map')].map((node) => node.getBoundingClientRect().width);
                return { wide: document.documentElement.scrollWidth, room: innerWidth, outside: outside.map((node) => node.outerHTML.slice(0, 80)), least: Math.min(...maps),
                         touch: [...new Set([...document.querySelectorAll('.map')].map((node) => getComputedStyle(node).touchAction))] };
            });
            assert.equal(seen.room, width, `${name}: laid out for the screen`);
            assert.ok(seen.wide <= width, `${name}, ${width} px: ${seen.wide} px wide`);
            assert.deepEqual(seen.outside, [], `${name}, ${width} px`);
            assert.ok(seen.least > width * 0.7, `${name}, ${width} px: a map of ${seen.least} px`);
            assert.ok(seen.touch.every((how) => /pan-y|manipulation/.test(how)), `${name}: a finger on a map scrolls: ${seen.touch}`);
            const thumb = page.locator('.thumb-button:visible').last();
            if (await thumb.count()) {
                await thumb.click();
                const place = await page.locator('.panel-name').boundingBox();
                assert.ok(place.y >= 0 && place.y < 700, `${name}: what was chosen is at ${place.y}`);
            }
            if (name === 'plot') {
                await page.locator('.plot-page .map').first().tap({ position: { x: 120, y: 30 } });
                const place = await page.locator('.detail h2').boundingBox();
                assert.ok(place.y >= 0 && place.y < 700, `what a cell of a chart opens is at ${place.y}`);
            }
            await page.context().close();
        }
    }
}
