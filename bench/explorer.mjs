// How fast the explorer is in a real browser: headless Chromium and `qkv serve` on this machine.
//
//     make build-bench && scripts/setup.sh browser && node bench/explorer.mjs [build/qkv [slider] [overview] [long]]
//
// Measured, each with its target:
//   slider     from the mouse's move to the painted frame that shows the new map: an edit of q, seen in its own layer,
//              128 tokens; 300 moves of a real drag at random times, so the wait for the next frame is in it. Chromium's
//              own trace tells: to paint, until the page is painted and handed to the compositor; to the screen, until
//              the compositor has drawn it, in software here
//   overview   12 x 12 heads, 128 tokens: from the page's first paint until all maps are drawn. Each load has a prompt
//              that the server has not seen, and is loaded once more, when the answer was kept, as it is for the prompt
//              that the server was started with
//   long       4,096 tokens: from the last byte of the reply to the frame that shows the map
//   memory     of the page's heap, after 800 moves more than after 200
//
// Models have random weights in the shape of GPT-2 (speed does not depend on values). They are made once, in
// /tmp/qkv-bench-explorer.
import fs from 'node:fs';
import path from 'node:path';
import url from 'node:url';

const root = path.dirname(path.dirname(url.fileURLToPath(import.meta.url)));
process.env.QKV = path.resolve(process.argv[2] || path.join(root, 'build/qkv'));
process.env.QKV_BROWSER_DEPS ||= path.join(process.env.QKV_DEPS || path.join(root, '.deps'), 'browser');
const { Stage, randomModel } = await import('../tests/browser/stage.mjs');

const KEEP = '/tmp/qkv-bench-explorer';
const wanted = process.argv.length > 3 ? process.argv.slice(3) : ['slider', 'overview', 'long'];
const MOVES = Number(process.env.MOVES) || 300,
    LOADS = Number(process.env.LOADS) || 9,
    WINDOW_REST = 1500, // until a new window of Chromium has built itself
    LOAD_REST = 2500, // for the page to load; nothing asks it meanwhile, which would cost it time
    TARGET_MEDIAN = 16,
    TARGET_99 = 33,
    TARGET_OVERVIEW = 300,
    TARGET_LONG = 1000,
    TARGET_GROWTH = 8;

// A model of random weights, kept for the next time.
function makeModel(shape) {
    fs.mkdirSync(KEEP, { recursive: true });
    return randomModel(path.join(KEEP, shape.replace(/[^a-z0-9]+/gi, '-')), shape);
}

const ids = (count, from = 0) => Array.from({ length: count }, (_, i) => 11 + (((from + i) * 7919) % 4000)).join(',');

const rest = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function summary(samples) {
    const sorted = [...samples].sort((a, b) => a - b),
        at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
    return { median: at(0.5), p99: at(0.99), most: sorted.at(-1) };
}

// Drags the slider's thumb by the mouse, a step at a time, at random moments of a frame.
async function slide(page, moves) {
    const range = page.locator('.slider input[type=range]').first(),
        box = await range.boundingBox(),
        y = box.y + box.height / 2,
        at = (i) => box.x + box.width * (0.3 + 0.5 * (((i * 37) % 500) / 500));
    await page.mouse.move(at(0), y);
    await page.mouse.down();
    for (let i = 1; i <= moves; i++) {
        await page.mouse.move(at(i), y);
        await rest(20 + Math.random() * 17);
    }
    await page.mouse.up();
    await rest(300);
}

// What Chromium itself notes of each move of the mouse, in milliseconds from when it was made: `paint`, until the page's
// frame was painted and handed to the compositor; `screen`, until its pixels were shown.
function latencies(trace) {
    const events = JSON.parse(trace).traceEvents.filter(({ id2, ph }) => id2?.local && (ph === 'b' || ph === 'e'));
    const open = new Map(),
        paint = [],
        screen = [];
    for (const { name, ph, pid, id2, ts, args } of events.sort((a, b) => a.ts - b.ts)) {
        const key = `${pid} ${id2.local}`,
            move = open.get(key);
        if (name === 'EventLatency' && ph === 'b') {
            if (args.event_latency?.event_type === 'MOUSE_DRAGGED') open.set(key, { start: ts });
        } else if (name === 'Commit' && ph === 'e' && move) move.paint = ts;
        else if (name === 'EventLatency' && move) {
            open.delete(key);
            if (!move.paint) continue; // it moved nothing
            paint.push((move.paint - move.start) / 1000);
            screen.push((ts - move.start) / 1000);
        }
    }
    return { paint, screen };
}

async function tracedSlide(stage, page, moves) {
    const browser = await stage.browser();
    await browser.startTracing(page, { categories: ['cc', 'benchmark', 'input'] });
    await slide(page, moves);
    const found = latencies((await browser.stopTracing()).toString());
    if (found.paint.length < moves * 0.95) throw new Error(`${found.paint.length} frames of ${moves} moves`);
    return found;
}

async function heap(page) {
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    return usedSize / (1 << 20);
}

let failed = 0;
const say = (name, value, unit = 'ms', more = '') =>
    console.log(`${name.padEnd(44)}${value.toFixed(1).padStart(9)} ${unit.padEnd(4)}${more}`);
function judge(name, value, target, unit = 'ms') {
    const good = value <= target;
    failed += good ? 0 : 1;
    say(name, value, unit, ` target ${target} ${unit}  ${good ? 'holds' : 'does not hold'}`);
}

async function measureSlider(stage, server) {
    const page = await stage.open(server.url, { hash: `#tok=${ids(128)}&l=6&h=3&e=q@6.h3=scale:0.5&gn=0` });
    await slide(page, 30);
    const { paint, screen } = await tracedSlide(stage, page, MOVES),
        toPaint = summary(paint),
        toScreen = summary(screen);
    judge('slider to paint, 128 tokens, median', toPaint.median, TARGET_MEDIAN);
    judge('slider to paint, 128 tokens, 99th percentile', toPaint.p99, TARGET_99);
    say('slider to the screen, median', toScreen.median);
    say('slider to the screen, 99th percentile', toScreen.p99);
    await slide(page, 200);
    const before = await heap(page);
    await slide(page, 600);
    judge('growth of the heap over 600 moves', (await heap(page)) - before, TARGET_GROWTH, 'MiB');
    await page.context().close();
}

// Milliseconds from the first paint until all heads were drawn, and of these what the server computed.
async function loadOverview(stage, server, hash) {
    const page = await stage.tab({ origin: new URL(server.url).origin });
    await rest(WINDOW_REST);
    await page.goto(server.url + hash, { waitUntil: 'commit' });
    await rest(LOAD_REST);
    const times = await page.evaluate(() => {
        const first = performance.getEntriesByName('first-paint')[0].startTime,
            drawn = performance.getEntriesByName('qkv-overview')[0]?.startTime ?? Infinity,
            asked = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/api/overview'));
        return { drawn: drawn - first, computed: asked.serverTiming[0].duration };
    });
    await page.context().close();
    return times;
}

async function measureOverview(stage, server) {
    const fresh = [],
        known = [];
    for (let i = 0; i < LOADS; i++) {
        const hash = `#tok=${ids(128, 131 * i)}&gn=0`;
        fresh.push(await loadOverview(stage, server, hash));
        known.push(await loadOverview(stage, server, hash));
    }
    const drawn = (loads) => summary(loads.map((load) => load.drawn));
    judge('overview of 12 x 12 heads after first paint', drawn(fresh).median, TARGET_OVERVIEW);
    say('the slowest of them', drawn(fresh).most);
    say('of which the server computed', summary(fresh.map((load) => load.computed)).median);
    judge('the same, of a prompt seen before', drawn(known).median, TARGET_OVERVIEW);
    say('the slowest of them', drawn(known).most);
}

async function measureLong(stage, server) {
    const page = await stage.tab({ origin: new URL(server.url).origin });
    await page.goto(`${server.url}#tok=${ids(4096)}&l=2&h=1&gn=0`);
    await page.waitForFunction(() => performance.getEntriesByName('qkv-head-first').length > 0, null, {
        timeout: 120000,
    });
    const after = await page.evaluate(() => {
        const reply = performance
            .getEntriesByType('resource')
            .filter((entry) => entry.name.endsWith('/api/head'))[0];
        return performance.getEntriesByName('qkv-head-first')[0].startTime - reply.responseEnd;
    });
    judge('first paint of 4,096 tokens after the result', after, TARGET_LONG);
    say('heap of the page with 4,096 tokens', await heap(page), 'MiB');
}

const MODELS = { slider: 'gpt2-124m', overview: 'gpt2-124m', long: 'llama:4,8,8,256,512,4096,8192' };
const MEASURES = { slider: measureSlider, overview: measureOverview, long: measureLong };

const stage = new Stage('bench');
try {
    for (const name of wanted) {
        const server = await stage.serve(['-m', makeModel(MODELS[name])]);
        await MEASURES[name](stage, server);
        await server.stop();
    }
} finally {
    await stage.close();
}
process.exit(failed ? 1 : 0);
