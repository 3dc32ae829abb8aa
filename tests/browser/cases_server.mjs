// The page and its server: one that dies and comes back, what the page asks for, hostile prompts, models.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import url from 'node:url';
import { assertNear, assertPageEqualsRun, headOf, PROMPT, runHead } from './helpers.mjs';
import { SkippedHere, qkv } from './stage.mjs';

const START = '#l=5&h=0&gn=4';
const TOKEN = 'a-token-for-the-test-0123456789';
const VECTORS = path.resolve(path.dirname(url.fileURLToPath(import.meta.url)), '../vectors');
const PAGE = path.resolve(path.dirname(url.fileURLToPath(import.meta.url)), '../../src/server/page');

// The server is killed while the page is open: a banner says so, what is changed meanwhile is computed when it is back.
export async function case_server_returns(stage) {
    stage.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/);
    const server = await stage.serve(['-p', PROMPT, '--token', TOKEN]);
    const page = await stage.open(server.url, { hash: START });
    const before = await headOf(page);
    await server.stop('SIGKILL');
    await page.focus('.slider input[type=range]');
    await page.keyboard.press('ArrowLeft');
    await page.waitForSelector('#banner:visible');
    assert.match(await page.textContent('#banner'), /does not answer/);
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowLeft');
    const edit = await page.inputValue('.edit-text');
    // A factor of the shown head's query needs no server: the map follows all the same.
    const alone = await headOf(page);
    assert.deepEqual(alone.before, before.before);
    assertNear(alone.after, runHead(stage, { layer: 5, head: 0, edits: edit }).after, 1e-6, 'without the server');
    await stage.serve(['-p', PROMPT, '--token', TOKEN, '--port', String(server.port)]);
    await page.waitForSelector('#banner', { state: 'hidden' });
    await stage.ready();
    assert.equal(await page.inputValue('.edit-text'), edit);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.edits), edit);
    await assertPageEqualsRun(stage, page);
}

// What a page without a fragment asks for first is what the server computes when it starts; a page that is loaded again
// has the same from what was kept.
export async function case_first_page_is_ready(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const timing = (page) =>
        page.evaluate(() => {
            const asked = performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/api/overview'));
            return asked.map(({ serverTiming }) => serverTiming[0].name);
        });
    const page = await stage.open(server.url);
    assert.deepEqual(await timing(page), ['kept', 'compute'], 'all heads as they are, then under the first edit');
    await page.reload();
    await stage.ready();
    assert.deepEqual(await timing(page), ['kept'], 'under the edit that the address names');
}

// A link shows the same on a server that was started with another prompt and another model; so does a page whose server
// comes back with others.
export async function case_link_to_other_server(stage) {
    stage.allow(/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/);
    const server = await stage.serve(['-p', PROMPT, '--token', TOKEN]);
    const page = await stage.open(server.url);
    const shown = await headOf(page),
        hash = await page.evaluate(() => location.hash);
    assert.match(hash, /^#m=default&p=The\+river/);
    stage.allow(/status of 400/); // what is asked before the page knows of the other server names no model
    const other = ['-m', path.join(VECTORS, 'llama_gqa/model.gguf'), '-p', 'The old mill.', '--token', TOKEN];
    const there = await stage.serve(other);
    const linked = await stage.open(there.url, { hash });
    assert.equal(await linked.evaluate(() => window.explorer.model.name), 'default');
    assert.equal(await linked.inputValue('textarea[aria-label=Prompt]'), PROMPT);
    assert.deepEqual(await headOf(linked), shown);
    await server.stop('SIGKILL');
    await page.focus('.slider input[type=range]');
    await page.keyboard.press('ArrowLeft');
    await page.waitForSelector('#banner:visible');
    await stage.serve([...other, '--port', String(server.port)]);
    await page.waitForSelector('#banner', { state: 'hidden' });
    await page.waitForTimeout(300);
    await stage.ready(page);
    assert.equal(await page.inputValue('textarea[aria-label=Prompt]'), PROMPT);
    await assertPageEqualsRun(stage, page);
}

// It comes back with another token: the page says what to do, and continues at the new address as it was.
export async function case_server_other_token(stage) {
    stage.allow(
        /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED|status of 40[13]/,
    );
    const server = await stage.serve(['-p', PROMPT, '--token', TOKEN]);
    const page = await stage.open(server.url, { hash: START });
    await page.fill('.slider .number', '0.0625');
    await page.keyboard.press('Enter');
    await stage.ready();
    await server.stop('SIGKILL');
    const other = await stage.serve(['-p', PROMPT, '--token', `${TOKEN}-another`, '--port', String(server.port)]);
    await page.focus('.slider input[type=range]');
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(() => /another token/.test(document.querySelector('#banner').textContent));
    assert.doesNotMatch(await page.textContent('#banner'), /does not answer/);
    const edit = await page.inputValue('.edit-text');
    await page.fill('#banner input', other.url);
    await page.click('#banner button');
    await page.waitForFunction((text) => document.documentElement.dataset.edits === text, edit);
    await stage.ready();
    await assertPageEqualsRun(stage, page);
}

// A prompt of markup is text everywhere: nothing of it runs, nothing of it becomes an element.
export async function case_markup_is_text(stage) {
    const text =
        '<script>window.broken = 1</script><img src=x onerror="window.broken = 1"><b>bold</b> &amp; {{7*7}}';
    const server = await stage.serve(['-p', text]);
    const page = await stage.open(server.url, { hash: '#l=1&h=0&pq=3&pk=1' });
    await page.waitForSelector('#why canvas');
    assert.equal(await page.evaluate(() => window.broken), undefined);
    assert.equal(
        await page.evaluate(() => document.querySelectorAll('img, script:not([src]), main b b, .chip *').length),
        0,
    );
    const shown = await page.evaluate(() =>
        [...document.querySelectorAll('.chip')]
            .slice(1)
            .map((chip) => chip.textContent)
            .join(''),
    );
    assert.equal(shown, text.replaceAll(' ', '·'));
    assert.equal(await page.inputValue('textarea[aria-label=Prompt]'), text);
    const linked = await stage
        .open(server.url, {
            hash: `#p=${encodeURIComponent('<img src=x onerror=alert(1)>')}&e=${encodeURIComponent('<script>alert(1)</script>')}&l=0&h=0`,
        })
        .catch((error) => error);
    assert.ok(!(linked instanceof Error), String(linked));
    assert.equal(await linked.evaluate(() => document.querySelectorAll('img, script:not([src])').length), 0);
    stage.allow(/status of 400/);
}

// The page asks no other server, and is not allowed to: everything is used once, with the browser's eyes open.
export async function case_no_other_requests(stage) {
    const server = await stage.serve(['-p', PROMPT]),
        seen = [];
    const page = await stage.tab({ origin: new URL(server.url).origin });
    page.on('request', (request) => seen.push(request.url()));
    const reply = await page.goto(server.url + START);
    await stage.ready();
    const policy = reply.headers()['content-security-policy'];
    for (const part of ["default-src 'none'", "script-src 'self'", "connect-src 'self'"])
        assert.ok(policy.includes(part), policy);
    assert.ok(!/unsafe|\*/.test(policy), policy);
    await page.click('[data-preset="v mean"]');
    await page.getByLabel('Order').selectOption('metric');
    await page.evaluate(() => window.explorer.head.pick({ query: 5, key: 2 }));
    await stage.ready();
    assert.ok(
        seen.length > 20 &&
            seen.every(
                (address) =>
                    new URL(address).origin === new URL(server.url).origin || /^(data|blob):/.test(address),
            ),
        seen.join('\n'),
    );
    const kinds = new Set(seen.map((address) => new URL(address).pathname));
    for (const name of [
        'state',
        'tokens',
        'head',
        'overview',
        'next',
        'curve',
        'losses',
        'generate',
        'why',
        'figure',
    ])
        assert.ok(kinds.has(`/api/${name}`), name);
    // Requests that newer ones replace are dropped: many moves are few requests, one at a time.
    const before = seen.length;
    await page.click('[data-preset="q scale"]');
    await stage.ready();
    const calm = seen.length;
    assert.ok(calm > before);
    await page.evaluate(() => {
        const range = document.querySelector('.slider input[type=range]');
        for (let i = 0; i < 200; i++) {
            range.value = 300 + i;
            range.dispatchEvent(new Event('input', { bubbles: true }));
        }
    });
    await stage.ready();
    const heads = seen.slice(calm).filter((address) => address.endsWith('/api/head')).length;
    assert.ok(heads >= 1 && heads <= 3, `${heads} requests for 200 moves at once`);
    await assertPageEqualsRun(stage, page);
}

// The files of the page keep what the offline figures and the policy rely on.
export async function case_page_files() {
    const names = new Map(),
        html = fs.readFileSync(path.join(PAGE, 'index.html'), 'utf8');
    const reached = new Set(['main.js']);
    for (const file of reached) {
        for (const [, next] of fs
            .readFileSync(path.join(PAGE, file), 'utf8')
            .matchAll(/^import \{[^}]*\} from '\.\/([a-z_]+\.js)';$/gm))
            reached.add(next);
    }
    const scripts = [...html.matchAll(/<script[^>]*src="([^"]+)"/g)].map(([, file]) => file);
    assert.deepEqual(scripts, ['first.js', 'explorer.js'], 'early.js, main.js and their imports are two scripts');
    assert.ok(reached.size > 20, 'imports were followed');
    assert.doesNotMatch(html, /<script(?![^>]*src=)|\son[a-z]+=|style=/);
    for (const file of fs.readdirSync(PAGE).filter((name) => name.endsWith('.js'))) {
        const text = fs.readFileSync(path.join(PAGE, file), 'utf8');
        assert.doesNotMatch(
            text,
            /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/,
            file,
        );
        assert.doesNotMatch(
            text,
            /^import (?!\{[^}]*\} from '\.\/[a-z_]+\.js';$)/m,
            `${file}: imports are single lines`,
        );
        assert.doesNotMatch(
            text,
            /^export (?!(async function|function|class|const) )/m,
            `${file}: exports stand before what they name`,
        );
        for (const [, name] of text.matchAll(
            /^(?:export )?(?:async )?(?:function|class|const|let) ([A-Za-z_0-9]+)/gm,
        )) {
            assert.ok(!names.has(name), `${name} is in ${names.get(name)} and ${file}`);
            names.set(name, file);
        }
    }
}

// Another model is chosen; a real one with a chat template, where it was pulled.
export async function case_tinyllama(stage) {
    const models = JSON.parse(qkv(['models', '--json'])).models ?? JSON.parse(qkv(['models', '--json']));
    if (!JSON.stringify(models).includes('tinyllama')) throw new SkippedHere('tinyllama is not on this machine');
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    const name = await page.evaluate(() =>
        [...document.querySelectorAll('#model option')]
            .map((option) => option.value)
            .find((value) => /tinyllama/i.test(value)),
    );
    await page.selectOption('#model', name);
    await page.waitForFunction(() => window.explorer.model.layers === 22);
    await stage.ready();
    assert.match(await page.textContent('#facts'), /22 layers · 32 heads \(4 key\/value\)/);
    await assertPageEqualsRun(stage, page, { model: ['-m', name] });
    await page.click('[data-mode=chat]');
    await page.waitForTimeout(200);
    await stage.ready();
    assert.ok(
        (await page.locator('.chip').allTextContents()).some((chip) => /user/.test(chip)),
        'the template is in the tokens',
    );
    await assertPageEqualsRun(stage, page, { model: ['-m', name], prompt: ['--chat', '-p', PROMPT] });
}
