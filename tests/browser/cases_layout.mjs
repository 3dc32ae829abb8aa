// Where things are: nothing is painted over weights, nothing moves under the pointer, lines are read in full, and what can
// be clicked is large enough. Positions and pixels are read back, at the sizes of ordinary screens.
import assert from 'node:assert/strict';
import url from 'node:url';
import { cellAt, PROMPT } from './helpers.mjs';
import { qkv, randomModel } from './stage.mjs';

const SIZES = [
    [1280, 800],
    [1440, 900],
    [1920, 1080],
];
const MANY_HEADS = 'llama:22,32,4,128,128,512,1024'; // as many as a model of a billion parameters has

const tokenIds = (count) => Array.from({ length: count }, (_, i) => 3 + ((i * 97) % 500)).join(',');

// Maps whose first column is a sink of 0.9, as many as the model has heads: does the first pixel column of each show it?
// The heads that do not, and whether frames can be seen.
async function hiddenSinks(page, n) {
    return page.evaluate((tokens) => {
        const { overview } = window.explorer,
            side = Math.min(tokens, 32),
            heads = overview.data.layers * overview.data.heads,
            maps = new Float32Array(heads * side * side);
        for (let head = 0; head < heads; head++) {
            for (let row = 0; row < side; row++) {
                const at = (head * side + row) * side;
                for (let col = 0; col <= row; col++) maps[at + col] = 0.1 / row;
                maps[at] = row ? 0.9 : 1;
            }
        }
        overview.setData({ ...overview.data, n: tokens, side, rows: side, cols: side, skip: 0, maps, tv: null });
        overview.setOpened(3, 5);
        overview.point({ layer: 4, head: 2 });
        const ratio = window.devicePixelRatio,
            context = overview.canvas.getContext('2d'),
            sink = overview.mapScale.pixel(Math.fround(0.9)),
            pixel = (x, y) => new Uint32Array(context.getImageData(x, y, 1, 1).data.buffer)[0];
        const hidden = overview.list.filter((head, i) => {
            const [x, y] = overview.corner(i).map((at) => Math.round(at * ratio)),
                size = Math.floor(overview.size * ratio);
            return [0.5, 0.75, 1].some((part) => pixel(x, y + Math.floor(part * (size - 1))) !== sink);
        });
        const framed = [[3, 5], [4, 2]].map(([layer, head]) => {
            const [x, y] = overview.corner(layer * overview.data.heads + head).map((at) => Math.round(at * ratio));
            return pixel(x - 1, y + 4) !== pixel(x - 1, Math.round((overview.corner(0)[1] + 4) * ratio));
        });
        return { hidden: hidden.length, all: overview.list.length, framed };
    }, n);
}

// Of all heads with a sink every one shows it, whatever is open or pointed at, light and dark.
export async function case_sinks_seen(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), MANY_HEADS)]);
    for (const [width, height] of SIZES) {
        for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { deviceScaleFactor: 1.5 }]) {
            const page = await stage.open(server.url, { hash: `#tok=${tokenIds(35)}&l=0&h=0&gn=0`, viewport: { width, height }, ...options });
            for (const n of [35, 12, 400]) {
                const { hidden, all, framed } = await hiddenSinks(page, n);
                assert.equal(all, 704);
                assert.equal(hidden, 0, `${width}, ${JSON.stringify(options)}, ${n} tokens: of ${all} heads ${hidden} do not show their sink`);
                assert.deepEqual(framed, [true, true], 'the open head and the one pointed at have frames');
            }
            await page.context().close();
        }
    }
}

// Where nothing is masked, the mark of a head that an edit changed lies around its map: every pixel of the map is a weight's.
export async function case_change_marks_outside(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    for (const options of [{}, { deviceScaleFactor: 1.5 }, { viewport: { width: 390, height: 800 } }]) {
        const page = await stage.open(server.url, { hash: '#l=2&h=1&gn=0', ...options });
        for (const sort of ['place', 'change']) {
            const { covered, marked, heads } = await page.evaluate((order) => {
                const { overview } = window.explorer,
                    { data } = overview,
                    heads = data.layers * data.heads;
                const tv = Float32Array.from({ length: heads }, (_, i) => (i + 1) / heads);
                overview.setData({ ...data, causal: false, maps: data.maps.map(() => 0.5), tv });
                overview.set({ sort: order });
                const context = overview.canvas.getContext('2d', { willReadFrequently: true }),
                    read = (...box) => new Uint32Array(context.getImageData(...box).data.buffer),
                    weight = overview.mapScale.pixel(0.5),
                    probe = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
                probe.fillStyle = overview.theme.mark;
                probe.fillRect(0, 0, 1, 1);
                const mark = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0],
                    boxes = overview.list.map((_, i) => overview.pixelBox(i));
                return {
                    heads,
                    covered: boxes.filter(([x, y, side]) => read(x, y, side, side).some((pixel) => pixel !== weight)).length,
                    marked: boxes.filter(([x, y, side]) => read(x + side, y + 1, 1, 1)[0] === mark && read(x + side - 2, y - 1, 1, 1)[0] === mark).length,
                };
            }, sort);
            assert.equal(covered, 0, `${JSON.stringify(options)}, ${sort}: maps that are not seen in full`);
            assert.equal(marked, heads, `${JSON.stringify(options)}, ${sort}: heads that are marked`);
        }
        await page.context().close();
    }
}

// The frame of a pinned column lies beside it: a column of one pixel is still seen.
export async function case_pinned_column_seen(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), 'llama:2,4,2,64,128,512,2048')]);
    const page = await stage.open(server.url, { hash: `#tok=${tokenIds(300)}&l=1&h=2&gn=0&pk=0` });
    const covered = await page.evaluate(() => {
        const map = window.explorer.head.maps.before,
            wide = map.plotWidth / map.cols;
        const y = Math.round(1 + map.plotHeight / 2);
        const alpha = (x) => map.over.getContext('2d').getImageData(Math.round(x), y, 1, 1).data[3];
        return { wide, own: alpha(map.plotLeft), beside: alpha(map.plotLeft - 1) };
    });
    assert.ok(covered.wide < 2, `columns of ${covered.wide} pixels`);
    assert.equal(covered.own, 0, 'nothing is painted over the column');
    assert.ok(covered.beside > 200, 'its frame is beside it');
}

// The line of what is pointed at has the tokens in full, words and numbers, beside weights of many digits.
export async function case_readout_in_full(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), MANY_HEADS)]);
    for (const [width, height] of SIZES) {
        const page = await stage.open(server.url, { hash: `#tok=${tokenIds(35)}&l=3&h=1&gn=0`, viewport: { width, height } });
        const cut = await page.evaluate(() => {
            const { head } = window.explorer,
                texts = head.data.queries.map((_, i) => [' responsibility', '2835', ' 1234567890'][i % 3]);
            const tiny = (values) => values.map((value) => value * 1.23456e-6);
            head.setData({ ...head.data, queries: texts, keys: texts, before: tiny(head.data.before), after: tiny(head.data.after) });
            const found = [];
            for (const [query, key] of [[33, 0], [34, 1], [31, 10], [13, 2]]) {
                head.setHover({ query, key });
                head.setPins({ queries: [query], keys: [key] });
                for (const line of document.querySelectorAll('.readout, .pinned')) {
                    const box = line.getBoundingClientRect();
                    for (const part of line.querySelectorAll('.token, .index, .weight')) {
                        const { left, right, top, bottom } = part.getBoundingClientRect(),
                            inside = left >= box.left && right <= box.right + 0.5 && top >= box.top - 0.5 && bottom <= box.bottom + 0.5;
                        if (part.scrollWidth > part.clientWidth + 1 && part.clientWidth) found.push(`${part.textContent} is cut`);
                        if (!inside) found.push(`${part.textContent} is outside ${line.className}`);
                    }
                }
            }
            return found;
        });
        assert.deepEqual(cut, [], `${width}`);
        await page.context().close();
    }
}

// Captions: titles, notes and bars of the maps are inside their panel and apart from each other. Of many lines the panel
// says how many are drawn.
export async function case_captions_apart(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), MANY_HEADS)]);
    for (const [width, height] of SIZES) {
        const page = await stage.open(server.url, {
            hash: `#tok=${tokenIds(600)}&l=3&h=1&e=q@3.h1=scale:0.5&gn=0`,
            viewport: { width, height },
        });
        await page.waitForFunction(() => document.querySelector('.panel-lines .panel-note').textContent);
        for (const edit of ['q@3.h1=scale:0.5', 'v@3.g0=scale:0.5']) {
            await page.fill('.edit-text', edit);
            await stage.ready();
            const found = await page.evaluate(() => {
                const list = [];
                for (const caption of document.querySelectorAll('.panel figcaption')) {
                    const all = caption.getBoundingClientRect();
                    const parts = [...caption.querySelectorAll('.panel-title, .panel-note, .bar-end, .bar, select')]
                        .filter((node) => node.getBoundingClientRect().width > 0)
                        .map((node) => ({ text: node.textContent || node.className, box: node.getBoundingClientRect(), node }));
                    parts.forEach(({ text, box, node }, i) => {
                        if (box.right > all.right + 0.5 || box.bottom > all.bottom + 0.5) list.push(`${text} is outside`);
                        if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth) list.push(`${text} is cut`);
                        for (const other of parts.slice(i + 1)) {
                            const apart = box.right <= other.box.left || other.box.right <= box.left || box.bottom <= other.box.top + 4 || other.box.bottom <= box.top + 4;
                            if (!apart) list.push(`${text} runs into ${other.text}`);
                        }
                    });
                }
                return list;
            });
            assert.deepEqual(found, [], `${width}, ${edit}`);
        }
        const note = await page.textContent('.panel-lines .panel-note'),
            { drawn, possible } = await page.evaluate(() => window.explorer.head.lines);
        const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');
        assert.equal(note, `the strongest ${count(drawn)} of ${count(possible)}`);
        assert.ok(drawn > 1000 && drawn <= 1500 && possible > drawn, note);
        await page.context().close();
    }
    const few = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(few.url, { hash: '#l=5&h=0&gn=0' });
    assert.equal(await page.textContent('.panel-lines .panel-note'), '', 'all lines are drawn');
}

// What an edit changes is seen beside what was there before, without scrolling, also where the overview takes much room.
export async function case_both_maps_seen(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), MANY_HEADS)]);
    for (const [width, height] of SIZES) {
        const page = await stage.open(server.url, { hash: `#tok=${tokenIds(14)}&l=3&h=1&e=q@3.h1=scale:0.5&gn=0`, viewport: { width, height } });
        const [before, after] = await page.evaluate(() =>
            ['before', 'after'].map((name) => document.querySelector(`.panel-${name} .map`).getBoundingClientRect().toJSON()));
        assert.ok(after.left >= before.right && after.top === before.top, `${width}: one beside the other`);
        assert.ok(after.right <= width && after.bottom <= height, `${width}: on the first screen, not down to ${after.bottom}`);
        assert.ok(after.width >= 200, `${width}: a map of ${after.width} pixels`);
        await page.context().close();
    }
}

// Pointing at heads, tokens and cells, and pinning: nothing else on the page moves.
export async function case_still_while_pointing(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    for (const [width, height] of [[1101, 700], ...SIZES]) {
        const page = await stage.open(server.url, { hash: '#l=5&h=0&e=q@3.h1=scale:0.2&gn=0', viewport: { width, height } });
        const places = () =>
            page.$$eval('.card, .panel, #edits .edit, .follow-part, .tip', (nodes) =>
                nodes.map((node) => [node.className, ...['x', 'y', 'height'].map((side) => node.getBoundingClientRect()[side])].join(' ')),
            );
        const still = async (what) => assert.deepEqual(await places(), before, `${width}: ${what}`);
        const before = await places();
        for (let head = 0; head < 24; head += 5) {
            const [x, y] = await page.evaluate((index) => {
                const { overview } = window.explorer,
                    box = overview.canvas.getBoundingClientRect();
                return [box.x + overview.corner(index)[0] + 9, box.y + overview.corner(index)[1] + 9];
            }, head);
            await page.mouse.move(x, y);
            await still(`head ${head}: ${await page.textContent('#overview .tip')}`);
        }
        for (const chip of [0, 3, 7]) {
            await page.locator('.chip').nth(chip).hover();
            await still(`token ${chip}: ${await page.textContent('#prompt .tip')}`);
        }
        const { x, y } = await cellAt(page, 'before', 9, 0);
        await page.mouse.move(x, y);
        await still('a cell');
        await page.context().close();
    }
}

// What can be clicked is 28 pixels high and wide, a token of the prompt 24; a box counts with its label.
export async function case_target_sizes(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    for (const [width, height] of SIZES) {
        const page = await stage.open(server.url, { hash: '#l=5&h=0&gn=0&pq=3&pk=0', viewport: { width, height } });
        await page.click('.fields summary');
        const small = await page.evaluate(() =>
            [...document.querySelectorAll('button, select, input, textarea, summary, [role=option]')]
                .map((node) => [node, (node.matches('[type=checkbox], [type=radio]') ? node.closest('label') : node).getBoundingClientRect()])
                .filter(([node, { width: wide, height: high }]) => wide > 0 && Math.min(wide, high) < (node.matches('[role=option]') ? 24 : 28) - 0.01)
                .map(([node, box]) => `${node.outerHTML.slice(0, 80)}: ${box.width} x ${box.height}`),
        );
        assert.deepEqual(small, [], `${width}`);
        await page.context().close();
    }
}

// What is said to those who listen: words and numbers apart from each other.
export async function case_spoken_apart(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: '#l=5&h=0&gn=4&pq=9&pk=0' });
    const number = '−?[\\d.e-]+';
    await page.focus('.panel-before .map');
    await page.keyboard.press('ArrowUp');
    assert.match(
        await page.textContent('.head-view [role=status]'),
        new RegExp(`^query \\S+ \\d+, key \\S+ \\d+, before ${number}, after ${number}, change [+−]${number.slice(2)}$`),
    );
    await page.keyboard.press('Enter');
    assert.match(await page.textContent('.head-view [role=status]'), new RegExp(`^pinned, query \\S+ \\d+, key \\S+ \\d+, before ${number}, `));
    // Elements that a gap keeps apart have a space between them in the text, too.
    const together = await page.evaluate(() => {
        const found = [],
            isWord = (text, at) => /[\p{L}\p{N}]/u.test(text.at(at) ?? '');
        for (const node of document.querySelectorAll('h2 *, h3 *, p *, .readout *, .pinned *, .legend *, label *')) {
            const next = node.nextSibling;
            if (!next?.textContent || !node.textContent || node.matches('option') || next.matches?.('select')) continue;
            if (isWord(node.textContent, -1) && isWord(next.textContent, 0)) found.push(`${node.textContent}|${next.textContent}`);
        }
        return found;
    });
    assert.deepEqual(together, []);
    assert.match(await page.textContent('#head-title'), /^Layer 5, head 0 key\/value head 0/);
}

// From now on what is written over maps is noted: the text, and whether all of it, and its background, is on the canvas.
async function watchTags(page) {
    await page.evaluate(() => {
        const { fillRect, fillText } = CanvasRenderingContext2D.prototype;
        let box = null;
        window.tags = [];
        CanvasRenderingContext2D.prototype.fillRect = function (x, y, w, h) {
            const matrix = this.getTransform(),
                [a, b] = [matrix.transformPoint({ x, y }), matrix.transformPoint({ x: x + w, y: y + h })];
            box = [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)];
            fillRect.call(this, x, y, w, h);
        };
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...most) {
            fillText.call(this, text, x, y, ...most);
            if (!this.canvas.classList.contains('map-over')) return;
            const { width, height } = this.canvas,
                [left, top, right, bottom] = box,
                room = Math.max(right - left, bottom - top) / devicePixelRatio;
            const isInside = left > -0.01 && top > -0.01 && right < width + 0.01 && bottom < height + 0.01;
            const isWhole = this.measureText(text).width <= Math.min(room, ...most);
            window.tags.push({ text: text.slice(1, -1), isInside, isWhole });
        };
    });
}

const cutTags = (page) => page.evaluate(() => window.tags.filter(({ isInside, isWhole }) => !isInside || !isWhole).map(({ text }) => text));

// A token that is pointed at or pinned is read in full, whichever it is and however many are beside it: its tag stays on
// the canvas. One that is wider than the whole map ends with an ellipsis.
export async function case_tags_in_full(stage) {
    const server = await stage.serve(['-m', randomModel(stage.file('models'), 'llama:2,4,2,64,128,512,2048')]);
    const words = Array.from({ length: 31 }, (_, i) => (i % 2 ? ' international'.slice(0, 2 + (i % 14)) : ' a'));
    Object.assign(words, { 0: ' incomprehensibility', 21: ' international', 30: ' administration', 8: ` ${'wide'.repeat(60)}` });
    for (const width of [1280, 390]) {
        const page = await stage.open(server.url, { hash: `#tok=${tokenIds(31)}&l=1&h=2&gn=0`, viewport: { width, height: 800 } });
        await page.evaluate((texts) => {
            const { head } = window.explorer;
            head.setData({ ...head.data, queries: texts, keys: texts });
        }, words);
        await watchTags(page);
        const cellOfMap = await page.evaluate(() => window.explorer.head.maps.before.plotHeight / 31);
        assert.ok(width > 390 || cellOfMap < 14, 'some tokens have no label of their own');
        for (let token = 0; token < words.length; token++) {
            const texts = await page.evaluate((at) => {
                const { head } = window.explorer;
                window.tags.length = 0;
                head.setHover({ query: at, key: at });
                head.setHover({ query: -1, key: -1 });
                head.setPins({ queries: [at], keys: [] });
                head.setPins({ queries: [], keys: [at] });
                head.setPins({ queries: [], keys: [] });
                return [...new Set(window.tags.map(({ text }) => text))];
            }, token);
            assert.deepEqual(await cutTags(page), [], `${width}: ${words[token]}`);
            assert.ok(texts.length > 0, 'tags are drawn');
            const whole = words[token].slice(1);
            for (const text of texts) {
                if (token === 8) assert.match(text, /^wide.*…$/);
                else assert.equal(text, whole, `${width}`);
            }
        }
        await page.context().close();
    }
    // So it is in files: the axis of a study has names of two prompts' tokens.
    const file = stage.file('patch.html');
    qkv(['patch', '--clean', 'The river runs past the mill', '--corrupt', 'The church runs past the mill', '--metric', 'kl', '-q', '-o', file]);
    for (const width of [1280, 390]) {
        const page = await stage.tab({ origin: 'null', viewport: { width, height: 800 } });
        await page.goto(url.pathToFileURL(file).href);
        await stage.ready(page);
        await watchTags(page);
        for (const map of await page.locator('.study-map .map').all()) {
            await map.focus();
            for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowLeft');
            for (let i = 0; i < 8; i++) await page.keyboard.press('ArrowRight');
        }
        const texts = await page.evaluate(() => window.tags.map(({ text }) => text));
        assert.ok(texts.some((text) => /river.*church/.test(text)), texts.join());
        assert.deepEqual(await cutTags(page), [], `${width}`);
    }
}
