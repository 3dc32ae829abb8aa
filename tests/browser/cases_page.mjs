// The page itself: pinning, the address, the overview, prompts in several scripts, long texts, light and dark, keyboard.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pageFolder } from './attention.mjs';
import { assertPageEqualsRun, assertSameBits, cellAt, clickCell, headOf, PROMPT, runHead } from './helpers.mjs';
import { qkv, randomModel } from './stage.mjs';

const START = '#l=5&h=0&gn=0';

// Pointing tells a cell's numbers; a click pins, Shift sums, Esc and the cross unpin.
export async function case_pin_unpin(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const shown = await headOf(page),
        at = (list, q, k) => list[q * shown.n + k];
    const six = (value) => Number(value.toPrecision(6));
    const { x, y } = await cellAt(page, 'before', 9, 0);
    await page.mouse.move(x, y);
    const weights = async (place) =>
        (await page.locator(`${place} .weight b`).allTextContents()).map((text) => Number(text.replace('−', '-')));
    let [before, after] = await weights('.readout');
    assert.equal(before, six(at(shown.before, 9, 0)));
    assert.equal(after, six(at(shown.after, 9, 0)));
    assert.match(await page.textContent('.readout'), /query ·and 9.*key <\|bos\|> 0/);
    await page.mouse.click(x, y);
    assert.deepEqual(await page.evaluate(() => window.explorer.state.view.pins), { queries: [9], keys: [0] });
    await clickCell(page, 'after', 12, 0, { shift: true });
    assert.deepEqual(
        await page.evaluate(() => window.explorer.state.view.pins),
        { queries: [9, 12], keys: [0] },
        'Shift adds a cell of the same column',
    );
    [before] = await weights('.pinned');
    assert.ok(Math.abs(before - at(shown.before, 9, 0) - at(shown.before, 12, 0)) < 1e-5);
    await clickCell(page, 'after', 12, 0, { shift: true });
    assert.deepEqual(
        await page.evaluate(() => window.explorer.state.view.pins),
        { queries: [9], keys: [0] },
        'Shift on what is in the sum already takes it out',
    );
    await clickCell(page, 'after', 12, 0, { shift: true });
    await clickCell(page, 'diff', -1, 3, { shift: true });
    [before, after] = await weights('.pinned');
    const sum = (list) => [0, 3].reduce((all, key) => all + at(list, 9, key) + at(list, 12, key), 0);
    assert.ok(Math.abs(before - sum(shown.before)) < 1e-5);
    assert.ok(Math.abs(after - sum(shown.after)) < 1e-5);
    await page.keyboard.press('Escape');
    assert.equal(await page.isVisible('.pinned'), false);
    await clickCell(page, 'before', 4, -1);
    assert.deepEqual(await page.evaluate(() => window.explorer.state.view.pins), { queries: [4], keys: [] });
    assert.equal(await page.isVisible('.profile'), true);
    assert.match(await page.textContent('.profile figcaption'), /Where this query looks/);
    await page.getByLabel('Unpin', { exact: true }).click();
    assert.equal(await page.isVisible('.pinned'), false);
    assert.equal(await page.isVisible('.profile'), false);
}

// The maps stay where they are while the pointer moves over them, while something is pinned, and with long tokens: what is
// pressed is what was pointed at. A double click shows all again, and leaves the pins as they were.
export async function case_maps_stay(stage) {
    const longest = 'a pneumonoultramicroscopicsilicovolcanoconiosis\u00a0\u00a0\u00a0\u00a0 end';
    for (const [width, height, prompt] of [
        [1280, 800, PROMPT],
        [1280, 800, longest],
        [700, 800, PROMPT],
        [3840, 2160, PROMPT],
    ]) {
        const server = await stage.serve(['-p', prompt]);
        const page = await stage.open(server.url, { hash: START, viewport: { width, height } });
        const place = () => page.evaluate(() => ({ ...document.querySelector('.panel-before .map').getBoundingClientRect().toJSON() }));
        const pins = () => page.evaluate(() => window.explorer.state.view.pins);
        await page.evaluate(() => document.querySelector('.panel-before .map').scrollIntoView({ block: 'center' }));
        const before = await place(),
            n = (await headOf(page)).n;
        // As if all tokens were as long as can be.
        if (prompt === longest)
            await page.evaluate(() => {
                const { data } = window.explorer.head;
                data.queries.forEach((_, i) => (data.queries[i] = `token ${i} ${'of many letters '.repeat(20)}`));
            });
        for (const [query, key] of [[5, 0], [n - 1, 3], [5, -1], [-1, 2], [6, 1]]) {
            const { x, y } = await cellAt(page, 'before', query, key);
            await page.mouse.move(x, y);
            assert.deepEqual(await place(), before, `${width}: pointing at ${query}, ${key}`);
            await page.mouse.down();
            await page.mouse.up();
            assert.deepEqual(await pins(), { queries: query < 0 ? [] : [query], keys: key < 0 ? [] : [key] });
            assert.deepEqual(await place(), before, `${width}: pinning ${query}, ${key}`);
        }
        const cut = await page.evaluate(() => {
            const line = document.querySelector('.readout');
            return [...line.querySelectorAll('.weight')].some((node) => node.getBoundingClientRect().right > line.getBoundingClientRect().right);
        });
        assert.equal(cut, false, `${width}: the weights are not cut`);
        await page.evaluate(() => {
            window.explorer.head.setPins({ queries: [4, 6], keys: [1] });
            window.explorer.head.setZoom([2, 8, 0, 6]);
        });
        const cell = await cellAt(page, 'before', 5, 2);
        await page.mouse.dblclick(cell.x, cell.y);
        assert.equal(await page.evaluate(() => window.explorer.head.options.zoom), null);
        assert.deepEqual(await pins(), { queries: [4, 6], keys: [1] }, 'a double click leaves the pins');
    }
}

// The link at the beginning of the page moves the focus, and nothing else; a fragment that is none of the page's changes
// nothing.
export async function case_skip_link(stage) {
    const server = await stage.serve();
    const page = await stage.open(server.url, { hash: '#p=The+old+mill&e=k@3.h1=scale:0.25&l=3&h=1&gn=0&pq=2&pk=1' });
    const told = () => page.evaluate(() => JSON.stringify(window.explorer.state));
    const before = await told(),
        address = await page.evaluate(() => location.hash);
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'head-title');
    await page.waitForTimeout(400);
    await stage.ready();
    assert.equal(await told(), before);
    assert.equal(await page.evaluate(() => location.hash), address);
    await page.evaluate(() => (location.hash = '#somewhere-else'));
    await page.waitForFunction((hash) => location.hash === hash, address);
    assert.equal(await told(), before);
    assert.equal(await page.inputValue('.edit-text'), 'k@3.h1=scale:0.25');
}

// A map by keyboard alone: arrows, Enter, R, C, Escape, zoom.
export async function case_map_keyboard(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const pins = () => page.evaluate(() => window.explorer.state.view.pins);
    await page.focus('.panel-before .map');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowUp');
    assert.match(await page.textContent('.head-view [role=status]'), /^query ·sea 13, key The 1, before /);
    await page.keyboard.press('Enter');
    assert.deepEqual(await pins(), { queries: [13], keys: [1] });
    await page.keyboard.press('c');
    assert.deepEqual(await pins(), { queries: [], keys: [1] });
    await page.keyboard.press('r');
    assert.deepEqual(await pins(), { queries: [13], keys: [] });
    await page.keyboard.press('Escape');
    assert.deepEqual(await pins(), { queries: [], keys: [] });
    await page.keyboard.press('+');
    const zoom = await page.evaluate(() => window.explorer.head.options.zoom);
    assert.ok(zoom[1] - zoom[0] < 15 && zoom[0] <= 13 && zoom[1] > 13, `${zoom} holds the query`);
    await page.keyboard.press('0');
    assert.equal(await page.evaluate(() => window.explorer.head.options.zoom), null);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#why canvas');
}

// Everything is in the address: a reload and another tab bring it back, and the back button goes back.
export async function case_url_restored(stage) {
    const server = await stage.serve();
    const page = await stage.open(server.url);
    await page.fill('textarea[aria-label=Prompt]', 'The old mill & the "sea" = 50% + more #1');
    await page.waitForTimeout(500);
    await stage.ready();
    await page.fill('.edit-text', 'k@3.g1[1:]=scale:0.125');
    await page.evaluate(() => window.explorer.openHead(3, 2));
    await clickCell(page, 'before', 5, 2);
    await page.getByLabel('Hide first keys').fill('1');
    await page.getByLabel('Hide first keys').press('Tab');
    await page.getByLabel('Colours', { exact: true }).selectOption('magma');
    await page.getByLabel('Order').selectOption('change');
    await page.getByLabel('Metric of the curve').selectOption('entropy');
    await page.getByLabel('What is drawn').selectOption('mean');
    await stage.ready();
    const told = (tab) =>
        tab.evaluate(() =>
            JSON.stringify({
                ...window.explorer.state,
                model: window.explorer.model.name,
                text: document.querySelector('textarea').value,
                edit: document.querySelector('.edit-text').value,
                pinned: document.querySelector('.pinned').textContent,
                drawn: document.querySelector('[aria-label="What is drawn"]').value,
                title: document.querySelector('#head-title').textContent,
                after: [...window.explorer.head.data.after],
            }),
        );
    const before = await told(page),
        address = await page.evaluate(() => location.href);
    await page.reload();
    await stage.ready();
    assert.equal(await told(page), before);
    assert.doesNotMatch(address, /token=/, 'a link holds no token');
    const other = await stage.open(server.url, { hash: new URL(address).hash });
    assert.equal(await told(other), before);
    await assertPageEqualsRun(stage, other, { prompt: ['-p', 'The old mill & the "sea" = 50% + more #1'] });
    await other.evaluate(() => {
        location.hash = '#l=0&h=1&e=&gn=0';
    });
    await other.waitForFunction(() =>
        document.querySelector('#head-title').textContent.startsWith('Layer 0, head 1'),
    );
    await other.goBack();
    await other.waitForFunction(() =>
        document.querySelector('#head-title').textContent.startsWith('Layer 3, head 2'),
    );
}

// All heads: arrows move, Enter opens, the edit follows; what changed is marked; sorted by a metric.
export async function case_overview(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: `${START}&e=q@5.h0=scale:0.1` });
    const data = await page.evaluate(() => ({
        tv: [...window.explorer.overview.data.tv],
        before: [...window.explorer.overview.data.before],
    }));
    const out = stage.file('measure.csv');
    qkv(['measure', '-p', PROMPT, '--variant', 'q@5.h0=scale:0.1', '--metrics', 'sink,tv', '-o', out, '--quiet']);
    const table = stage
        .read(out)
        .toString()
        .trim()
        .split('\n')
        .map((line) => line.split(','));
    const column = (name) => table[0].indexOf(name);
    const value = (variant, layer, head, metric) =>
        Number(
            table.find(
                (row) =>
                    row[column('variant')] === variant &&
                    row[column('layer')] === String(layer) &&
                    row[column('head')] === String(head) &&
                    row[column('metric')] === metric,
            )[column('value')],
        );
    const v0 = table[1][column('variant')],
        v1 = table.at(-1)[column('variant')];
    for (const [layer, head] of [
        [0, 0],
        [2, 3],
        [5, 0],
        [5, 3],
    ]) {
        assert.ok(
            Math.abs(data.before[layer * 4 + head] - value(v0, layer, head, 'sink')) < 1e-6,
            `sink of ${layer}.${head}`,
        );
        assert.ok(
            Math.abs(data.tv[layer * 4 + head] - value(v1, layer, head, 'tv')) < 1e-6,
            `change of ${layer}.${head}`,
        );
    }
    assert.deepEqual(
        data.tv.map((change) => change > 0),
        data.tv.map((_, i) => i === 20),
        'the edit reaches one head',
    );
    assert.match(await page.textContent('#overview .tip'), /layer 5, head 0 .* changed, total variation/);
    await page.focus('.overview-canvas');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowRight');
    assert.match(await page.textContent('#overview .tip'), /layer 4, head 1 .* not changed/);
    assert.match(await page.textContent('#head-title'), /Layer 5, head 0/);
    await page.keyboard.press('Enter');
    await stage.ready();
    assert.match(await page.textContent('#head-title'), /Layer 4, head 1/);
    assert.equal(await page.inputValue('.edit-text'), 'q@4.h1=scale:0.1', 'the edit went along');
    await assertPageEqualsRun(stage, page);
    await page.getByLabel('Order').selectOption('metric');
    await page.getByLabel('How heads are shown').selectOption('cells');
    await stage.ready();
    const order = await page.evaluate(() =>
        window.explorer.overview.list.map((head) => window.explorer.overview.data.after[head]),
    );
    assert.deepEqual(
        order,
        [...order].sort((a, b) => b - a),
    );
    await page.getByLabel('Order').selectOption('place');
    const box = await page.locator('.overview-canvas canvas').boundingBox();
    const corner = await page.evaluate(() => [
        ...window.explorer.overview.corner(6),
        window.explorer.overview.size,
    ]);
    await page.mouse.click(box.x + corner[0] + corner[2] / 2, box.y + corner[1] + corner[2] / 2);
    await stage.ready();
    assert.match(await page.textContent('#head-title'), /Layer 1, head 2/);
}

// Arabic, Chinese, emoji: tokens are the program's, isolated from each other, and drawn.
export async function case_scripts(stage) {
    const text = 'النهر يجري إلى البحر 河流入海 🌊🚣 and back';
    const server = await stage.serve(['-p', text]);
    const page = await stage.open(server.url, { hash: '#l=2&h=0&gn=4' });
    const ids = JSON.parse(qkv(['tokens', text, '--json'])),
        list = ids.tokens ?? ids.ids ?? ids;
    const chips = await page.locator('.chip').count();
    assert.equal(chips, await page.evaluate(() => window.explorer.tokens.n));
    assert.deepEqual(
        await page.evaluate(() => window.explorer.tokens.ids),
        list.map((entry) => entry.id ?? entry),
    );
    const isolation = await page.evaluate(() =>
        [...document.querySelectorAll('.chip')].map((chip) => getComputedStyle(chip).unicodeBidi),
    );
    assert.ok(
        isolation.every((value) => value === 'isolate' || value === 'plaintext'),
        isolation.join(),
    );
    assert.ok((await page.locator('.chip').first().getAttribute('dir')) === 'auto');
    await assertPageEqualsRun(stage, page, { prompt: ['-p', text] });
    await clickCell(page, 'before', 6, 2);
    assert.equal(await page.locator('.pinned bdi').count(), 2);
}

// Nothing that can be seen is nothing: spaces and marks of format are written as codes, and joiners stay where they join.
export async function case_unseen_letters(stage) {
    const page = await stage.tab();
    const source = fs.readFileSync(path.join(pageFolder, 'text.js'), 'utf8').replace(/^export /gm, '');
    await page.setContent('<!DOCTYPE html><title>letters</title>');
    await page.addScriptTag({ content: `${source}\nwindow.tokenText = tokenText; window.tokenNode = tokenNode;` });
    for (const [text, shown] of [
        ['\u200b', '\\u200B'],
        ['\u3000a\u2003', '\\u3000a\\u2003'],
        ['\u00ad\u2060\ufeff', '\\u00AD\\u2060\\uFEFF'],
        ['\u202eab', '\\u202Eab'],
        ['\u2028', '\\u2028'],
        ['\u0085', '\\u0085'],
        ['\u00a0\t\n', '⍽⇥↵'],
        [' a b', '·a·b'],
        ['\u200d', '\\u200D'],
        ['a\u200db', 'a\\u200Db'],
        ['👩🏽\u200d🚀', '👩🏽\u200d🚀'],
        ['❤\ufe0f\u200d🔥', '❤\ufe0f\u200d🔥'],
        ['\u200d🚀', '\\u200D🚀'],
        ['\ufe0f', '\\uFE0F'],
        ['می\u200cخواهم', 'می\u200cخواهم'],
        ['क्\u200dष', 'क्\u200dष'],
        ['🏴\u{e0067}\u{e0062}\u{e007f}', '🏴\u{e0067}\u{e0062}\u{e007f}'],
        ['\u0600', '\u0600'],
    ]) {
        assert.equal(await page.evaluate((token) => window.tokenText(token), text), shown);
    }
    assert.equal(await page.evaluate(() => window.tokenNode('').textContent), '∅');
}

// Labels are not printed over each other, where they are thinned, and where tokens are pinned or pointed at; what is
// written into boxes and beside axes is read in full.
export async function case_labels_apart(stage) {
    const server = await stage.serve(['-p', Array(4).fill(PROMPT).join(' ')]);
    for (const [width, height] of [
        [1280, 800],
        [1500, 700],
        [3840, 2160],
    ]) {
        const hash = `${START}&e=q@5.h0=scale:0.001&lo=0.001&pq=9,10,11,30&pk=0,1,13`;
        const page = await stage.open(server.url, { hash, viewport: { width, height } });
        await page.evaluate(() => window.explorer.head.setHover({ query: 31, key: 12 }));
        const near = await page.evaluate(() => {
            const { maps, lines } = window.explorer.head,
                map = maps.before,
                found = [];
            const check = (what, places, least) => {
                if (places.length < 2) found.push(`${what}: ${places.length} labels`);
                places.sort((a, b) => a - b).forEach((at, i) => i && at - places[i - 1] < least - 0.01 && found.push(`${what}: ${at} and ${places[i - 1]}`));
            };
            check('rows', map.rowLabels.map(([, , at]) => at), map.fontSize);
            check('columns', map.colLabels.map(([, , at]) => at), map.fontSize);
            // What is written, and where: the matrix and the place in it.
            const written = (context, paint) => {
                const list = [];
                context.fillText = (text, x, y) => list.push([text, context.getTransform().transformPoint({ x, y }), context.textAlign]);
                paint();
                delete context.fillText;
                return list.map(([text, { x, y }, align]) => ({ text, x: x / devicePixelRatio, y: y / devicePixelRatio, align }));
            };
            const tags = written(map.overContext, () => map.paintOver());
            check('tags of rows', tags.filter(({ x }) => x < map.plotLeft - 1).map(({ y }) => y), map.fontSize + 1);
            lines.tokensKey = null;
            const tokens = written(lines.canvas.getContext('2d'), () => lines.paint());
            for (const align of ['left', 'right']) check(`lines, ${align}`, tokens.filter((one) => one.align === align).map(({ y }) => y), 9);
            return found;
        });
        assert.deepEqual(near, [], `${width}`);
        const low = page.getByLabel('Lowest weight of the colours');
        assert.equal(await low.inputValue(), '0.001');
        assert.ok(await low.evaluate((box) => box.scrollWidth <= box.clientWidth && getComputedStyle(box).appearance === 'textfield'), 'the box shows its number');
        await page.evaluate(() => {
            const { follow } = window.explorer;
            follow.setCurve({ epsilons: [0, 1], values: [0.000968, 0.00123456], baseline: 0.001 });
        });
        const left = await page.$$eval('.curve text', (texts) => Math.min(...texts.map((text) => text.getBBox().x)));
        assert.ok(left >= 0, `an axis label begins at ${left}`);
    }
}

// 4,096 tokens: pooled, few nodes, and a zoom shows the very weights.
export async function case_long_text(stage) {
    const model = randomModel(stage.file('models'), 'llama:2,4,2,64,128,512,8192');
    const ids = Array.from({ length: 4096 }, (_, i) => 3 + ((i * 97) % 500)).join(',');
    const server = await stage.serve(['-m', model]);
    const page = await stage.open(server.url, { hash: `#tok=${ids}&l=1&h=2&gn=0&e=q@1.h2=scale:0.5` });
    let shown = await headOf(page);
    assert.deepEqual([shown.n, shown.rows, shown.step], [4096, 512, 8]);
    const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
    assert.ok(nodes < 2000, `${nodes} nodes`);
    assert.match(await page.textContent('.panel-before .panel-note'), /largest of 8 × 8/);
    const cut = (selector) =>
        page.$$eval(selector, (nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.textContent));
    assert.deepEqual(await cut('.panel-note'), [], 'notes are read in full');
    // Pooled maps have no metrics: the curve knows them.
    const curve = await page.evaluate(() => ({
        text: document.querySelector('.numbers').textContent,
        dot: Number(document.querySelector('.curve .here').getAttribute('cy')),
        ...window.explorer.follow.curve,
    }));
    const [, before, now] = curve.text.match(/^before ([\d.e-]+) now ([\d.e-]+)$/) ?? [];
    assert.ok(Math.abs(before - curve.baseline) < 1e-5 * curve.baseline, curve.text);
    assert.ok(Math.abs(now - curve.values[curve.factors.indexOf(0.5)]) < 1e-5 * now, curve.text);
    assert.ok(curve.dot > 10 && curve.dot < 160, `the dot is at ${curve.dot}`);
    await page.fill('.slider .number', '0.4321');
    await page.keyboard.press('Enter');
    await stage.ready();
    assert.match(await page.textContent('#metric-now'), /^≈ 0/);
    await page.fill('.slider .number', '-1');
    await page.keyboard.press('Enter');
    await stage.ready();
    assert.equal(await page.textContent('#metric-now'), '–', 'a negative factor is not on the curve');
    assert.equal(await page.isVisible('.curve .here'), false);
    await page.fill('.slider .number', '0.5');
    await page.keyboard.press('Enter');
    await stage.ready();
    const tall = await page.evaluate(() => document.querySelector('.command pre').getBoundingClientRect().height);
    assert.ok(tall < 200, `a command line of ${tall} pixels`);
    // Other chips and back: what is pinned is still marked.
    const marked = () => page.locator('.chip.pinned-query').allTextContents();
    await page.click('.chip >> nth=2');
    const one = await marked();
    assert.equal(one.length, 1);
    await page.getByText('later ›').click();
    assert.deepEqual(await marked(), []);
    await page.getByText('‹ earlier').click();
    assert.deepEqual(await marked(), one);
    await page.evaluate(() => window.explorer.head.setZoom([4000, 4064, 4000, 4064]));
    await stage.ready();
    shown = await headOf(page);
    assert.deepEqual([shown.rows, shown.cols, shown.step, shown.r0, shown.c0], [64, 64, 1, 4000, 4000]);
    const run = runHead(stage, {
        layer: 1,
        head: 2,
        edits: 'q@1.h2=scale:0.5',
        prompt: ['--tokens', ids],
        model: ['-m', model],
    });
    const part = (whole) =>
        Array.from({ length: 64 * 64 }, (_, i) => whole[(4000 + Math.floor(i / 64)) * 4096 + 4000 + (i % 64)]);
    assertSameBits(shown.before, part(run.before), 'before, zoomed');
    assertSameBits(shown.after, part(run.after), 'after, zoomed');
    await page.keyboard.press('Tab');
    await page.focus('.slider input[type=range]');
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowLeft');
    await stage.ready();
    assert.notDeepEqual((await headOf(page)).after, shown.after, 'the slider works on a part, too');
}

// Light and dark: as the system has it, and by the switch, which is kept.
export async function case_dark_mode(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START, colorScheme: 'dark' });
    const light = () =>
        page.evaluate(() => {
            const [red, green, blue] = getComputedStyle(document.querySelector('.card'))
                .backgroundColor.match(/\d+/g)
                .map(Number);
            return (red + green + blue) / 765;
        });
    // A masked cell is the page showing through: the canvas was drawn for the theme.
    const masked = () =>
        page.evaluate(() => {
            const m = window.explorer.head.maps.before;
            return m.base.getContext('2d').getImageData(m.plotLeft + m.plotWidth - 8, 8, 1, 1).data[0] / 255;
        });
    assert.ok((await light()) < 0.2);
    assert.ok((await masked()) < 0.2);
    await page.click('#theme');
    assert.equal(await page.textContent('#theme'), 'Theme: light');
    assert.ok((await light()) > 0.9);
    assert.ok((await masked()) > 0.9);
    await page.reload();
    await stage.ready();
    assert.ok((await light()) > 0.9, 'the choice is kept');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.click('#theme');
    assert.ok((await light()) < 0.2, 'dark, whatever the system has');
}

// Both sizes: nothing is cut off at the side, and the maps are seen without scrolling.
export async function case_sizes(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    for (const [width, height, least] of [
        [1280, 800, 200],
        [3840, 2160, 600],
    ]) {
        const page = await stage.open(server.url, { hash: START, viewport: { width, height } });
        const seen = await page.evaluate(() => ({
            wide: document.documentElement.scrollWidth,
            font: parseFloat(getComputedStyle(document.body).fontSize),
            top: document.querySelector('.panel-before .map').getBoundingClientRect().top,
            side: window.explorer.head.side,
            unused:
                document.querySelector('.panels').getBoundingClientRect().right -
                document.querySelector('.panel-after').getBoundingClientRect().right,
            slider: document.querySelector('.slider input').getBoundingClientRect().bottom,
        }));
        assert.ok(seen.wide <= width, `${seen.wide} pixels at ${width}`);
        assert.ok(seen.side >= least, `a map of ${seen.side} pixels`);
        assert.ok(seen.unused < 8, `${seen.unused} pixels beside the maps are empty`);
        assert.ok(
            seen.top + seen.side < height && seen.slider < height,
            'slider and first map are on the first screen',
        );
        assert.ok(seen.font >= 13.5 && (width < 2000 || seen.font > 18), `letters of ${seen.font} pixels`);
    }
}

// For users who do not see the page: names for all controls, headings, live regions; the slider is reached by Tab.
export async function case_accessible(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const nameless = await page.evaluate(() =>
        [...document.querySelectorAll('button, input, select, textarea, [role=application], [role=img]')]
            .filter(
                (node) =>
                    !(
                        node.getAttribute('aria-label') ||
                        (node.textContent.trim() && node.tagName === 'BUTTON') ||
                        (node.labels?.length && node.labels[0].textContent.trim())
                    ),
            )
            .map((node) => node.outerHTML.slice(0, 120)),
    );
    assert.deepEqual(nameless, []);
    assert.ok((await page.locator('h2').count()) >= 6);
    assert.ok((await page.locator('[aria-live], [role=status], [role=alert]').count()) >= 4);
    let reached = false;
    for (let i = 0; i < 60 && !reached; i++) {
        await page.keyboard.press('Tab');
        reached = await page.evaluate(() => document.activeElement.matches('.slider input[type=range]'));
    }
    assert.ok(reached, 'Tab reaches the slider');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, 'none', 'the focus is seen');
}
