// Steps: nothing that was done on the page is lost. Back and Forward, Undo and Redo; presets, models, conversations, pins.
import assert from 'node:assert/strict';
import { assertPageEqualsRun, chatModel, clickCell, PROMPT } from './helpers.mjs';
import { randomModel } from './stage.mjs';

const START = '#l=5&h=0&gn=0';
const textsOf = (page) => page.locator('.edit-text').evaluateAll((all) => all.map((field) => field.value));

// Waits until the page shows these edits, with the server's numbers for them.
async function edited(stage, page, wanted) {
    await page.waitForFunction((text) => [...document.querySelectorAll('.edit-text')].map((field) => field.value).join(' + ') === text, wanted);
    await stage.ready(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.edits), wanted);
}

// Every change by hand is a step, however it was made; moves of a slider that is held are one.
export async function case_steps_back_and_forward(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const first = await page.evaluate(() => history.length);
    assert.equal(await page.isDisabled('#undo'), true, 'there is nothing to undo yet');
    assert.equal(await page.isDisabled('#redo'), true);
    const seen = [await textsOf(page)];
    const step = async (act) => {
        await act();
        await stage.ready();
        seen.push(await textsOf(page));
    };
    await step(() => page.click('[data-preset="k scale"]'));
    await step(() => page.click('text=+ Add edit'));
    await step(() => page.click('[data-preset="v mean"]'));
    assert.deepEqual(seen.at(-1), ['k@5.h0=scale:0.5', 'v@5.h0=mean:head'], 'a preset takes the place of one edit; the other stays');
    await step(() => page.click('[data-preset="k scale"]'));
    assert.deepEqual(seen.at(-1), seen.at(-2), 'that edit is there already');
    seen.pop();
    await step(async () => {
        const range = page.locator('.edit').first().locator('input[type=range]'), box = await range.boundingBox();
        await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 2);
        await page.mouse.down();
        for (const part of [0.8, 0.7, 0.6, 0.5]) {
            await page.mouse.move(box.x + box.width * part, box.y + box.height / 2, { steps: 3 });
            await page.waitForTimeout(300);
        }
        await page.mouse.up();
    });
    await step(() => page.getByLabel('Remove edit 2').click());
    assert.equal(seen.length, 6);
    assert.equal(await page.evaluate(() => history.length), first + 5, 'five steps');
    // By the browser's Back, by the keys and by the button; the maps come along.
    const shown = (at) => edited(stage, page, seen[at].join(' + '));
    await page.goBack();
    await shown(4);
    await page.locator('body').press('Control+z');
    await shown(3);
    await assertPageEqualsRun(stage, page);
    await page.click('#undo');
    await shown(2);
    await page.goBack();
    await shown(1);
    await page.click('#undo');
    await shown(0);
    assert.equal(await page.isDisabled('#undo'), true);
    await page.locator('body').press('Control+z');
    assert.match(page.url(), /#/, 'the page is still there');
    await page.goForward();
    await shown(1);
    await page.locator('body').press('Control+y');
    await shown(2);
    await page.locator('body').press('Control+Shift+Z');
    await shown(3);
    await page.click('#redo');
    await shown(4);
    await page.click('#redo');
    await shown(5);
    assert.equal(await page.isDisabled('#redo'), true);
    await assertPageEqualsRun(stage, page);
    // A reload keeps the steps; another one ends those that were undone.
    await page.click('#undo');
    await shown(4);
    await page.reload();
    await stage.ready();
    await page.click('#redo');
    await shown(5);
    await page.click('#undo');
    await shown(4);
    await page.click('#undo');
    await shown(3);
    await page.click('[data-preset="q mean"]');
    await stage.ready();
    assert.equal(await page.isDisabled('#redo'), true);
}

// A head, a prompt and a dropped figure are steps; in a field with text the keys are the field's.
export async function case_steps_of_heads_and_prompts(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START }), prompt = page.locator('textarea[aria-label=Prompt]');
    await page.focus('.overview-canvas');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await stage.ready();
    assert.match(await page.textContent('#head-title'), /Layer 4, head 0/);
    await prompt.fill('The old');
    await page.waitForTimeout(500);
    await prompt.pressSequentially(' mill');
    await page.waitForTimeout(500);
    await stage.ready();
    const pending = page.evaluate(() => window.explorer.steps.at);
    assert.equal(await pending, 2, 'what is typed without a rest is one step');
    await prompt.press('Control+z');
    assert.equal(await page.evaluate(() => window.explorer.steps.at), 2, 'the keys are the field\u2019s');
    await page.click('#undo');
    await page.waitForFunction((text) => document.querySelector('textarea[aria-label=Prompt]').value === text, PROMPT);
    await stage.ready();
    await page.goBack();
    await page.waitForFunction(() => document.querySelector('#head-title').textContent.startsWith('Layer 5, head 0'));
    await edited(stage, page, 'q@5.h0=scale:0.5');
    await assertPageEqualsRun(stage, page);
    // So are scale, zoom and order.
    const view = () => page.evaluate(() => [window.explorer.state.view.scale, window.explorer.state.view.zoom, window.explorer.state.overview.sort]);
    await page.getByLabel('Scale', { exact: true }).selectOption('log');
    await page.getByLabel('Order').selectOption('metric');
    await page.getByLabel('Zoom in (drag a rectangle, or +)').click();
    const zoomed = await view();
    assert.deepEqual([zoomed[0], Boolean(zoomed[1]), zoomed[2]], ['log', true, 'metric']);
    for (const wanted of [['log', null, 'metric'], ['log', null, 'place'], ['auto', null, 'place']]) {
        await page.goBack();
        await page.waitForFunction((text) => JSON.stringify([window.explorer.state.view.scale, window.explorer.state.view.zoom, window.explorer.state.overview.sort]) === text,
                                   JSON.stringify(wanted));
        await stage.ready();
    }
    assert.equal(await page.getByLabel('Scale', { exact: true }).inputValue(), 'auto');
}

// Another model keeps the head and the edits that it has; others are named, and Undo brings them back.
export async function case_steps_model(stage) {
    const small = randomModel(stage.file('models'), 'llama:3,2,2,32,64,512,256'), ids = '5,6,7,8,9';
    const server = await stage.serve(['-m', small]);
    const names = async () => page.locator('#model option').evaluateAll((all) => all.map((option) => option.value));
    const page = await stage.open(server.url, { hash: `#m=default&tok=${ids}&l=2&h=1&gn=0&e=${encodeURIComponent('q@2.h1=scale:0.25 + v@0.h0=zero + k@4.h3=scale:0.5')}` });
    const own = (await names()).find((name) => name !== 'default' && /llama/.test(name)), notice = page.locator('#banner');
    await page.selectOption('#model', own);
    await page.waitForFunction((name) => window.explorer.model.name === name, own);
    await edited(stage, page, 'q@2.h1=scale:0.25 + v@0.h0=zero');
    assert.match(await page.textContent('#head-title'), /Layer 2, head 1/);
    assert.match(await notice.innerText(), /Left out.*3 layers of 2 heads: k@4\.h3=scale:0\.5/s);
    assert.doesNotMatch(await notice.innerText(), /Problem/, 'nothing is wrong');
    await assertPageEqualsRun(stage, page, { prompt: ['--tokens', ids], model: ['-m', small] });
    await page.click('#undo');
    await page.waitForFunction(() => window.explorer.model.name === 'default');
    await edited(stage, page, 'q@2.h1=scale:0.25 + v@0.h0=zero + k@4.h3=scale:0.5');
    assert.equal(await page.inputValue('#model'), 'default');
    await assertPageEqualsRun(stage, page, { prompt: ['--tokens', ids] });
    // A head that the other model has not got: its edit goes to the one that is shown instead.
    await page.goto(`${server.url}#m=default&tok=${ids}&l=5&h=3&gn=0&e=k@5.h3=scale:0.125`);
    await stage.ready();
    await page.selectOption('#model', own);
    await page.waitForFunction((name) => window.explorer.model.name === name, own);
    await stage.ready();
    const { layer, head } = await page.evaluate(() => window.explorer.state);
    assert.ok(layer < 3 && head < 2);
    await edited(stage, page, `k@${layer}.h${head}=scale:0.125`);
    await page.goBack();
    await edited(stage, page, 'k@5.h3=scale:0.125');
    assert.match(await page.textContent('#head-title'), /Layer 5, head 3/);
}

// A model that is still being opened is not a step yet. Undo, or a step back, leaves the model that is shown, and its answer
// changes nothing when it comes; what was undone can be done again.
export async function case_steps_while_opening(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), 'llama:3,2,2,32,64,512,256')]);
    const page = await stage.open(server.url, { hash: '#m=default&tok=5,6,7,8,9&l=2&h=1&gn=0&e=q@2.h1=scale:0.25' });
    const other = (await page.locator('#model option').evaluateAll((all) => all.map(({ value }) => value))).find((name) => /llama/.test(name));
    const openSlowly = async (act) => {
        let release;
        const held = new Promise((resolve) => (release = resolve));
        await page.route(/api\/model$/, async (route) => {
            await held;
            await route.continue();
        });
        await page.selectOption('#model', other);
        await page.waitForFunction(() => document.querySelector('#work').textContent.startsWith('opening'));
        await act();
        const answered = page.waitForResponse(/api\/model$/);
        release();
        await answered;
        await page.waitForTimeout(100);
        await page.unroute(/api\/model$/);
        await stage.ready();
        assert.equal(await page.evaluate(() => window.explorer.model.name), 'default');
        assert.equal(await page.inputValue('#model'), 'default');
    };
    await openSlowly(() => page.click('#undo'));
    assert.equal(await page.isDisabled('#undo'), true, 'there was nothing else to undo');
    await page.click('[data-preset="k scale"]');
    await edited(stage, page, 'k@2.h1=scale:0.25');
    await openSlowly(() => page.click('#undo'));
    await edited(stage, page, 'k@2.h1=scale:0.25');
    await openSlowly(() => page.goBack());
    await edited(stage, page, 'q@2.h1=scale:0.25');
    await page.click('#redo');
    await edited(stage, page, 'k@2.h1=scale:0.25');
    await page.selectOption('#model', other);
    await page.waitForFunction((name) => window.explorer.model.name === name, other);
    await edited(stage, page, 'k@2.h1=scale:0.25');
}

// A conversation that becomes a text has one turn; its others are there again when it becomes a conversation.
export async function case_steps_chat(stage) {
    const server = await stage.serve(['-m', chatModel(stage)]);
    const chat = { system: 'Be brief.', turns: [{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }, { role: 'user', content: 'What is a mill?' }] };
    const page = await stage.open(server.url, { hash: `#l=5&h=0&gn=0&chat=${encodeURIComponent(JSON.stringify(chat))}` });
    const areas = () => page.locator('.chat textarea').evaluateAll((all) => all.map((area) => area.value));
    await page.click('[data-mode=text]');
    await stage.ready();
    assert.equal(await page.inputValue('textarea[aria-label=Prompt]'), 'What is a mill?');
    await page.fill('textarea[aria-label=Prompt]', 'What is a river?');
    await page.click('[data-mode=chat]'); // before what was typed is used
    await stage.ready();
    assert.deepEqual(await areas(), ['Be brief.', 'Hi', 'Hello', 'What is a river?']);
    const { prompt } = await page.evaluate(() => window.explorer.state);
    assert.deepEqual(prompt.chat, { ...chat, turns: [...chat.turns.slice(0, 2), { role: 'user', content: 'What is a river?' }] });
    await page.getByLabel('Remove turn 1').click();
    await stage.ready();
    await page.click('#undo');
    await page.waitForFunction(() => document.querySelectorAll('.chat textarea').length === 4);
    assert.deepEqual(await areas(), ['Be brief.', 'Hi', 'Hello', 'What is a river?']);
    // So they are after another text, an example, a step back and a reload, each followed by the conversation again.
    const text = page.locator('textarea[aria-label=Prompt]');
    const shows = async (wanted) => {
        await page.waitForFunction((value) => document.querySelector('textarea[aria-label=Prompt]').value === value, wanted);
        await stage.ready();
    };
    await page.click('[data-mode=text]');
    await shows('What is a river?');
    await text.fill('What is a boat?');
    await page.waitForFunction(() => window.explorer.state.prompt.text === 'What is a boat?');
    await stage.ready();
    await page.getByLabel('Examples').selectOption({ index: 1 });
    await page.waitForFunction(() => window.explorer.state.prompt.text !== 'What is a boat?');
    await stage.ready();
    await page.click('#undo');
    await shows('What is a boat?');
    await page.click('#undo');
    await shows('What is a river?');
    await page.click('#redo');
    await shows('What is a boat?');
    await page.reload();
    await stage.ready();
    assert.doesNotMatch(page.url(), /Hello/, 'a link has what is seen');
    await page.click('[data-mode=chat]');
    await stage.ready();
    assert.deepEqual(await areas(), ['Be brief.', 'Hi', 'Hello', 'What is a boat?']);
}

// What is pinned are tokens: they are found again in a prompt that has changed before, between or after them.
export async function case_steps_pins(stage) {
    const server = await stage.serve(['-p', 'The old mill by the sea']);
    const page = await stage.open(server.url, { hash: START }), pins = () => page.evaluate(() => window.explorer.state.view.pins);
    const pinnedTexts = () => page.evaluate(() => ({ queries: window.explorer.state.view.pins.queries.map((t) => window.explorer.tokens.texts[t]),
                                                     keys: window.explorer.state.view.pins.keys.map((t) => window.explorer.tokens.texts[t]) }));
    const tokens = await page.evaluate(() => window.explorer.tokens.texts), last = tokens.length - 1, mill = tokens.indexOf(' mill');
    assert.ok(mill > 0);
    await clickCell(page, 'before', last, mill);
    const pinned = { queries: [tokens[last]], keys: [' mill'] };
    assert.deepEqual(await pinnedTexts(), pinned);
    const use = async (text) => {
        await page.waitForTimeout(1600); // a step of its own
        await page.fill('textarea[aria-label=Prompt]', text);
        await page.waitForFunction((wanted) => window.explorer.state.prompt?.text === wanted, text);
        await stage.ready();
    };
    await use('Once there was the old mill by the sea');
    const moved = await page.evaluate(() => window.explorer.tokens.texts);
    assert.deepEqual(await pinnedTexts(), pinned);
    assert.notEqual((await pins()).queries[0], last);
    assert.match((await page.textContent('.pinned')).replace(/\s+/g, ' '), new RegExp(`key ·mill ${moved.indexOf(' mill')}`));
    assert.deepEqual(await page.locator('.chip.pinned-key').allTextContents(), ['·mill']);
    await use('Once there was the old barn by the sea');
    assert.deepEqual(await pinnedTexts(), { queries: pinned.queries, keys: [] }, 'that one is gone');
    // An undone step has its own pins.
    await page.goBack();
    await page.waitForFunction((list) => JSON.stringify(window.explorer.state.view.pins) === list, JSON.stringify({ queries: [moved.length - 1], keys: [moved.indexOf(' mill')] }));
}

// Whatever is chosen in the form is possible: operations have sites of their own, and added edits do not overlap.
export async function case_edit_form(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: `${START}&e=q@5.h0=scale:0.5` }), field = page.locator('.edit-text').first();
    const choose = async (label, value, wanted) => {
        await page.getByLabel(label, { exact: true }).first().selectOption(value);
        await stage.ready();
        assert.equal(await field.inputValue(), wanted);
        assert.equal(await page.isVisible('.edit-error'), false, wanted);
    };
    await page.click('.fields summary');
    await choose('Operation', 'mask', 'scores@5.h0=mask:sink=1,recent=4');
    const offered = () => page.getByLabel('Site', { exact: true }).first().locator('option:not(:disabled)').evaluateAll((all) => all.map((one) => one.value));
    assert.deepEqual(await offered(), ['scores']);
    await choose('Operation', 'quant', 'q@5.h0=quant:bits=2,axis=token,group=16');
    assert.ok((await offered()).includes('v') && !(await offered()).includes('scores') && !(await offered()).includes('pattern'));
    await choose('Operation', 'keep', 'scores@5.h0=keep:h2o,budget=4,recent=2');
    await choose('Operation', 'scale', 'q@5.h0=scale:0.5');
    await choose('Site', 'pattern', 'pattern@5.h0=scale:0.5');
    await choose('Operation', 'quant', 'k@5.h0=quant:bits=2,axis=token,group=16');
    await choose('Operation', 'scale', 'pattern@5.h0=scale:0.5');
    await choose('Site', 'resid_post', 'resid_post@5=scale:0.5');
    await choose('Operation', 'mean', 'resid_post@5=mean:token');
    // All q, k, v and z of a layer of four heads, and no two of the same.
    for (let i = 0; i < 9; i++) await page.click('text=+ Add edit');
    await stage.ready();
    const texts = await textsOf(page);
    assert.equal(new Set(texts).size, 10, texts.join(' + '));
    assert.equal(await page.isVisible('.edit-error'), false);
    await assertPageEqualsRun(stage, page);
}

// The page on a phone: its head is not in the way, nothing is wider than the screen, and a finger on a map scrolls.
export async function case_phone(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    for (const [width, height] of [[360, 740], [390, 844]]) {
        const page = await stage.open(server.url, { hash: START, viewport: { width, height }, hasTouch: true, isMobile: true });
        const seen = await page.evaluate(() => {
            const top = document.querySelector('.top'), boxes = [...top.querySelectorAll('button, select, p, h1')].filter((node) => node.offsetWidth)
                .map((node) => ({ name: node.id || node.tagName, box: node.getBoundingClientRect() }));
            const overlaps = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.box.left < b.box.right - 1 && b.box.left < a.box.right - 1 &&
                a.box.top < b.box.bottom - 1 && b.box.top < a.box.bottom - 1).map((b) => `${a.name} ${b.name}`));
            const outside = [...document.querySelectorAll('button, input:not([type=file]), select, textarea, h2, pre')].filter((node) => {
                const box = node.getBoundingClientRect();
                return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5);
            });
            return { high: top.offsetHeight, position: getComputedStyle(top).position, overlaps, outside: outside.map((node) => node.outerHTML.slice(0, 80)),
                     small: boxes.filter(({ name, box }) => !/^(H1|facts|work)$/.test(name) && box.height < 24).map(({ name }) => name),
                     cut: top.querySelector('#facts').scrollWidth - top.querySelector('#facts').clientWidth, room: innerWidth,
                     wide: document.documentElement.scrollWidth, map: document.querySelector('.panel-before .map').offsetWidth,
                     touch: getComputedStyle(document.querySelector('.map')).touchAction };
        });
        assert.equal(seen.room, width);
        assert.ok(seen.high <= 150, `the head is ${seen.high} px high`);
        assert.equal(seen.position, 'static', 'it scrolls away');
        assert.deepEqual([seen.overlaps, seen.outside, seen.small], [[], [], []]);
        assert.ok(seen.cut <= 0, 'the facts of the model are read in full');
        assert.ok(seen.wide <= width && seen.map > width * 0.7, `${seen.wide}, a map of ${seen.map}`);
        assert.match(seen.touch, /pan-y/);
        await page.tap('.panel-before .map');
        assert.equal(await page.isVisible('.pinned'), true, 'a tap pins');
        await page.context().close();
    }
}
