// What is shown, and what it belongs to: another prompt, edit or model than those that are chosen is marked or gone, and
// all heads have the colours and keys of the one that is open.
import assert from 'node:assert/strict';
import { assertPageEqualsRun, assertSameBits, clickCell, headOf, PROMPT } from './helpers.mjs';
import { qkv, randomModel, readSafetensors } from './stage.mjs';

const START = '#l=5&h=0&gn=4';
const LONG_SHAPE = 'llama:2,4,2,64,128,512,2048';

const MARKS = ['head', 'overview', 'tokens', 'edits', 'out'].map((name) => [name, `#${name}-older`]);
const FOLLOWING = ['This head against', 'Next tokens', 'Text from here'];

// What each part says about its age; parts that say nothing are left out.
async function marksOf(page) {
    const marks = {};
    for (const [name, selector] of MARKS) if (await page.isVisible(selector)) marks[name] = await page.textContent(selector);
    for (const title of FOLLOWING) {
        const mark = page.locator('.follow-part:visible', { hasText: title }).locator('.older-mark');
        if (await mark.isVisible()) marks[title] = await mark.textContent();
    }
    return marks;
}

async function waitForMark(page, name, text) {
    await page.waitForFunction(
        ([selector, wanted]) => {
            const mark = document.querySelector(selector);
            return !mark.hidden && mark.textContent === wanted;
        },
        [`#${name}-older`, text],
    );
}

const typePrompt = (page, text) => page.getByRole('textbox', { name: 'Prompt' }).fill(text);

// A wrong edit, an empty prompt: the maps, the curve and all the rest belong to what was there before, and say so.
export async function case_older_wrong(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    stage.allow(/400 \(Bad Request\)/);
    const page = await stage.open(server.url, { hash: START });
    assert.deepEqual(await marksOf(page), {}, 'all of it is what was asked for');
    const shown = await headOf(page);
    for (const [wrong, curve] of [['q@9.h0=scale:0.5', 'older: another edit'], ['q@9.h0=', 'older']]) {
        await page.fill('.edit-text', wrong);
        await waitForMark(page, 'head', 'older: another edit');
        await page.waitForSelector('.edit-error:visible');
        assert.deepEqual(await headOf(page).then(({ after }) => after), shown.after, 'the maps are those of the edit before');
        const older = 'older: another edit';
        assert.deepEqual(await marksOf(page), {
            head: older,
            overview: older,
            out: older,
            [FOLLOWING[0]]: curve,
            [FOLLOWING[1]]: older,
            [FOLLOWING[2]]: older,
        });
    }
    const faded = await page.evaluate(() => getComputedStyle(document.querySelector('.panels')).opacity);
    assert.ok(faded < 0.7, 'what is older is faded');
    await page.fill('.edit-text', shown.edits[0]);
    await stage.ready();
    await page.waitForFunction(() => !document.querySelector('.older-mark:not([hidden])'));
    await typePrompt(page, '');
    await waitForMark(page, 'head', 'older: another prompt');
    const marks = await marksOf(page);
    assert.deepEqual(Object.keys(marks).sort(), [...MARKS.map(([name]) => name), ...FOLLOWING].sort());
    assert.ok(Object.values(marks).every((text) => text === 'older: another prompt'), JSON.stringify(marks));
    await typePrompt(page, 'The old mill stands by the river.');
    await page.waitForFunction(() => window.explorer.tokens.n < 12);
    await stage.ready();
    assert.deepEqual(await marksOf(page), {});
    await assertPageEqualsRun(stage, page, { prompt: ['-p', 'The old mill stands by the river.'] });
}

// A new prompt that takes long, a server that is gone: the maps say whose they are until the new ones come.
export async function case_older_waiting(stage) {
    stage.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/);
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    let release;
    const held = new Promise((resolve) => {
        release = resolve;
    });
    await page.route(/api\/(head|overview|curve|next)$/, async (route) => {
        await held;
        await route.continue().catch(() => {}); // it may have been given up
    });
    await typePrompt(page, 'The old mill stands by the river.');
    for (const name of ['head', 'overview', 'edits']) await waitForMark(page, name, 'older: another prompt');
    assert.match(await page.textContent('.edit-report.older'), /^changed \d+ of/, 'what the edit changed is marked');
    assert.equal((await marksOf(page))[FOLLOWING[0]], 'older: another prompt', 'the curve');
    assert.equal((await headOf(page)).n, await page.evaluate(() => window.explorer.head.data.n), 'the old maps are there');
    release();
    await page.unroute(/api\/(head|overview|curve|next)$/);
    await page.waitForFunction(() => document.querySelector('#head-older').hidden);
    await stage.ready();
    assert.deepEqual(await marksOf(page), {});
    await server.stop('SIGKILL');
    await typePrompt(page, 'A boat waits at the shore.');
    await page.waitForSelector('#banner:visible');
    await waitForMark(page, 'head', 'older: another prompt');
    await waitForMark(page, 'overview', 'older: another prompt');
}

// Another metric is chosen: until its numbers are there, those that are shown have their own name, and the mark says why.
export async function case_older_metric(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START }),
        tip = () => page.textContent('#overview .tip');
    const before = await tip();
    assert.match(before, /· sink \d/);
    let release;
    const held = new Promise((resolve) => {
        release = resolve;
    });
    const slow = /api\/(overview|curve)$/;
    await page.route(slow, async (route) => {
        await held;
        await route.continue().catch(() => {});
    });
    await page.getByLabel('Metric', { exact: true }).first().selectOption('previous');
    await waitForMark(page, 'overview', 'older: another metric');
    assert.equal(await tip(), before);
    await page.evaluate(() => window.explorer.follow.onmetric('entropy'));
    await page.waitForFunction(() => [...document.querySelectorAll('.follow-part .older-mark')].some((mark) => mark.textContent === 'older: another metric'));
    release();
    await page.unroute(slow);
    await page.waitForFunction(() => document.querySelector('#overview-older').hidden);
    await stage.ready();
    assert.match(await tip(), /· previous \d/);
    assert.deepEqual(await marksOf(page), {});
}

// While a slider is dragged the maps follow it and are not called older.
export async function case_older_not_while_following(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: '#l=2&h=1&e=q@2.h1=scale:0.5&gn=0' });
    await page.evaluate(() => {
        window.seen = 0;
        new MutationObserver(() => (window.seen += document.querySelector('#head-older').hidden ? 0 : 1)).observe(
            document.querySelector('#head-older'), { attributes: true });
    });
    await page.focus('.slider input[type=range]');
    for (let i = 0; i < 25; i++) await page.keyboard.press('ArrowLeft');
    await stage.ready();
    assert.equal(await page.evaluate(() => window.seen), 0);
    assert.deepEqual(await marksOf(page), {});
}

// A model that takes fewer tokens than the prompt has: nothing of the other model is left to be opened, the page says what
// is wrong, and works again with a shorter prompt.
export async function case_shorter_context(stage) {
    stage.allow(/400 \(Bad Request\)/);
    const model = randomModel(stage.file('models'), LONG_SHAPE);
    const ids = Array.from({ length: 200 }, (_, i) => 3 + ((i * 97) % 500)).join(',');
    const server = await stage.serve(['-m', model]);
    const page = await stage.open(server.url, { hash: `#tok=${ids}&l=1&h=3&gn=0` });
    const canvas = await page.locator('.overview-canvas').boundingBox();
    assert.match(await page.textContent('.edit-report'), /^changed /);
    await page.getByLabel('Model').selectOption('default');
    await page.waitForSelector('#nothing:visible');
    assert.match(await page.textContent('#nothing'), /^There is nothing to show: .*128/);
    await stage.ready();
    assert.equal(await page.isVisible('.overview-canvas canvas'), false, 'no maps of another model');
    assert.equal(await page.isVisible('.panels'), false);
    assert.equal(await page.textContent('.edit-report'), '', 'nothing is said about values of another model');
    await page.mouse.click(canvas.x + 40, canvas.y + 40);
    await page.evaluate(() => window.explorer.overview.keyPressed(new KeyboardEvent('keydown', { key: 'Enter' })));
    // The chosen head goes along to a model that has such a one; nothing else was opened.
    assert.deepEqual(await page.evaluate(() => [window.explorer.state.layer, window.explorer.state.head]), [1, 3]);
    assert.deepEqual(await marksOf(page), {}, 'nothing is shown, so nothing is older');
    await typePrompt(page, PROMPT);
    await page.waitForSelector('#nothing', { state: 'hidden' });
    await stage.ready();
    assert.equal(await page.isVisible('.overview-canvas canvas'), true);
    assert.match(await page.textContent('#head-title'), /Layer \d, head \d/);
    await assertPageEqualsRun(stage, page);
}

// Edits that do not go along to another model are not listed either, also where that model cannot take the prompt.
export async function case_shorter_context_edits(stage) {
    stage.allow(/400 \(Bad Request\)/);
    const server = await stage.serve(['-m', randomModel(stage.file('models'), 'llama:1,2,2,32,64,512,32')]),
        ids = Array.from({ length: 60 }, (_, i) => 3 + ((i * 97) % 500)).join(',');
    const edits = encodeURIComponent('q@0.h1=scale:0.5 + k@4.h1=scale:0.5');
    const page = await stage.open(server.url, { hash: `#m=default&tok=${ids}&l=5&h=0&gn=0&e=${edits}` });
    const other = (await page.locator('#model option').evaluateAll((all) => all.map(({ value }) => value))).find((name) => /llama/.test(name));
    await page.selectOption('#model', other);
    await page.waitForSelector('#nothing:visible');
    await stage.ready();
    const texts = () => page.locator('.edit-text').evaluateAll((all) => all.map(({ value }) => value));
    assert.deepEqual(await texts(), ['q@0.h1=scale:0.5']);
    await page.click('#undo');
    await page.waitForFunction(() => document.querySelectorAll('.edit-text').length === 2);
    await stage.ready();
}

// A click on maps of the last prompt, while those of a shorter one are computed, pins no token that this one has not got.
export async function case_older_pins(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START }),
        last = (await headOf(page)).n - 1,
        slow = /api\/(head|overview)$/;
    let release;
    const held = new Promise((resolve) => {
        release = resolve;
    });
    await page.route(slow, async (route) => {
        await held;
        await route.continue().catch(() => {});
    });
    await typePrompt(page, 'The old mill.');
    await page.waitForFunction((n) => window.explorer.tokens?.n < n, last);
    const pins = () => page.evaluate(() => window.explorer.state.view.pins);
    await clickCell(page, 'before', last, 1);
    assert.deepEqual(await pins(), { queries: [], keys: [1] });
    assert.equal(await page.locator('.chip.pinned-key').count(), 1);
    release();
    await page.unroute(slow);
    await page.waitForFunction(() => document.querySelector('#head-older').hidden);
    await stage.ready();
    assert.deepEqual(await pins(), { queries: [], keys: [1] });
    assert.deepEqual(await page.evaluate(() => window.explorer.head.settings.pins), { queries: [], keys: [1] });
    // An address may say such tokens, too: another prompt has none of them.
    await page.goto(`${server.url}${START}&p=The+old+mill.&pq=40`);
    await stage.ready();
    await typePrompt(page, PROMPT);
    await page.waitForFunction((n) => window.explorer.tokens?.n > n, last);
    await stage.ready();
    assert.deepEqual(await pins(), { queries: [], keys: [] });
}

// A link with an empty prompt says what is wrong with it, and the page works as soon as there is a prompt.
export async function case_empty_prompt(stage) {
    stage.allow(/400 \(Bad Request\)/);
    const server = await stage.serve(['-p', PROMPT]);
    for (const hash of ['#p=', '#p=&l=5&h=0&gn=0']) {
        const page = await stage.open(server.url, { hash });
        assert.equal(await page.textContent('#nothing'), 'There is nothing to show: the prompt is empty.');
        const empty = await page.$$eval('main > section > div', (nodes) => nodes.filter((node) => node.offsetHeight > 0).length);
        assert.equal(empty, 0, 'no empty panels');
        assert.deepEqual(await marksOf(page), {});
        await typePrompt(page, PROMPT);
        await page.waitForSelector('#nothing', { state: 'hidden' });
        await stage.ready();
        await assertPageEqualsRun(stage, page);
        await page.context().close();
    }
}

// The curve of one edit comes back after another one, of which there is none; and after a metric and back.
export async function case_curve_returns(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: '#l=5&h=0&e=q@5.h0=scale:0.5&gn=0' });
    const drawn = () => page.locator('.curve .line').getAttribute('d');
    const first = await drawn();
    for (const [preset, seen] of [['q mean', false], ['q scale', true], ['k mean', false], ['q scale', true]]) {
        await page.click(`[data-preset="${preset}"]`);
        await stage.ready();
        assert.equal(await page.isVisible('.curve'), seen, preset);
        if (seen) assert.equal(await drawn(), first, preset);
    }
}

// Of a new prompt the open head is asked for first, and all heads after it.
export async function case_head_first(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const asked = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await typePrompt(page, 'The old mill stands by the river.');
    await page.waitForFunction(() => window.explorer.tokens.n < 12);
    await stage.ready();
    const [tokens, head, overview] = ['tokens', 'head', 'overview'].map((name) => asked.indexOf(`/api/${name}`));
    assert.ok(tokens < head && head < overview, asked.join(' '));
}

// All heads without the first keys: the largest weight of each block of those that are left, as `qkv run` has them; and
// the scale, the range and the mask of the open head. The saved picture has the same.
export async function case_overview_display(stage) {
    const model = randomModel(stage.file('models'), LONG_SHAPE),
        ids = Array.from({ length: 90 }, (_, i) => 3 + ((i * 97) % 500));
    const server = await stage.serve(['-m', model]);
    const page = await stage.open(server.url, { hash: `#tok=${ids.join(',')}&l=1&h=2&e=q@0.h1=scale:3&gn=0` });
    const shown = () =>
        page.evaluate(() => {
            const { data, mapScale } = window.explorer.overview;
            const { kind, low, high } = mapScale;
            return { kind, low, high, rows: data.rows, cols: data.cols, maps: [...data.maps] };
        });
    const plain = await shown();
    assert.deepEqual([plain.kind, plain.low, plain.high, plain.rows, plain.cols], ['log', 0, 1, 32, 32]);
    const skip = 7;
    await page.getByLabel('Hide first keys').fill(String(skip));
    await page.keyboard.press('Enter');
    await stage.ready();
    const hidden = await shown(),
        { maps } = hidden;
    const out = stage.file('all.safetensors');
    qkv(['run', '-m', model, '--tokens', ids.join(','), '--variant', 'q@0.h1=scale:3', '--capture', 'pattern@*', '-o', out, '--quiet']);
    const { tensors } = readSafetensors(stage.read(out));
    const expected = [],
        n = ids.length,
        cell = (token) => Math.floor((token * 32) / n);
    for (let layer = 0; layer < 2; layer++) {
        const whole = tensors[`v1/pattern.${layer}`].values;
        for (let head = 0; head < 4; head++) {
            const cells = Array(32 * hidden.cols).fill(0);
            for (let query = 0; query < n; query++) {
                for (let key = skip; key < n; key++) {
                    const at = cell(query) * hidden.cols + cell(key - skip);
                    cells[at] = Math.max(cells[at], whole[(head * n + query) * n + key]);
                }
            }
            expected.push(...cells);
        }
    }
    assert.equal(hidden.cols, cell(n - 1 - skip) + 1);
    assertSameBits(maps, expected, 'without the first keys');
    assert.ok(Math.abs(hidden.high - Math.max(...expected)) < 1e-7, 'colours end at the largest weight that is left');
    await page.getByLabel('Scale', { exact: true }).selectOption('power');
    await page.getByLabel('Highest weight of the colours').fill('0.25');
    await page.keyboard.press('Enter');
    await stage.ready();
    const chosen = await shown();
    assert.deepEqual([chosen.kind, chosen.low, chosen.high], ['power', 0, 0.25]);
    assert.match(await page.textContent('#overview .legend'), /0\.25 power$/);
    // What is painted has these colours, and masked cells those of 0 where that is chosen.
    const corner = () =>
        page.evaluate(() => {
            const { overview } = window.explorer,
                [x, y] = overview.corner(0).map(Math.round),
                { data, size, mapScale } = overview,
                read = (right, down) => overview.canvas.getContext('2d').getImageData(x + right, y + down, 1, 1).data.join(),
                last = data.maps[(data.rows - 1) * data.cols];
            const css = (value) => [0, 8, 16, 24].map((shift) => (mapScale.pixel(value) >>> shift) & 255).join();
            return { bottom: read(0, size - 1), expected: css(last), masked: read(size - 8, 2), zero: css(0) };
        });
    let pixels = await corner();
    assert.equal(pixels.bottom, pixels.expected);
    assert.notEqual(pixels.masked, pixels.zero);
    await page.getByLabel('mask as 0').check();
    await stage.ready();
    pixels = await corner();
    assert.equal(pixels.masked, pixels.zero, 'masked cells look like 0');
    assert.deepEqual(await marksOf(page), {});
}

// Of a long prompt whose maps are pooled, hidden keys are not in one block with those that are shown.
export async function case_hidden_keys_of_long_maps(stage) {
    const model = randomModel(stage.file('models'), LONG_SHAPE),
        ids = Array.from({ length: 700 }, (_, i) => 3 + ((i * 97) % 500));
    const server = await stage.serve(['-m', model]);
    const page = await stage.open(server.url, { hash: `#tok=${ids.join(',')}&l=1&h=2&gn=0&e=` });
    await page.getByLabel('Hide first keys').fill('1');
    await page.keyboard.press('Enter');
    await stage.ready();
    const shown = await headOf(page);
    assert.equal(shown.c0, 1, 'the first block begins at the first key that is shown');
    const out = stage.file('head.safetensors');
    qkv(['run', '-m', model, '--tokens', ids.join(','), '--capture', 'pattern@1.h2', '-o', out, '--quiet']);
    const whole = readSafetensors(stage.read(out)).tensors['v0/pattern.1'].values;
    const rows = [0, 1].map((query) => whole[query * 700 + 1]); // the block of queries 0 and 1, keys 1 and 2
    assert.equal(shown.before[0], Math.max(...rows));
}
