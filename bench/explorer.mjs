// How fast the explorer is in a real browser: headless Chromium and `qkv serve` on this machine.
//
//     scripts/setup.sh browser && node bench/explorer.mjs [build/qkv]
//
// Measured, each with its target:
//   slider     from the slider's input event to the frame that shows the new map: an edit of q, seen in its own layer,
//              128 tokens; 300 moves at random times, so the wait for the screen's next frame is in it. "to cells" is
//              the same without that wait: until the map's pixels are set.
//   overview   12 x 12 heads, 128 tokens: from the page's first paint until all maps are drawn
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
const MOVES = Number(process.env.MOVES) || 300,
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

const ids = (count) => Array.from({ length: count }, (_, i) => 11 + ((i * 7919) % 4000)).join(',');

function summary(samples) {
    const sorted = [...samples].sort((a, b) => a - b),
        at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
    return { median: at(0.5), p99: at(0.99), most: sorted.at(-1) };
}

// Moves the slider in the page; gives the times to the cells and to the frame.
async function slide(page, moves) {
    return page.evaluate(async (count) => {
        const range = document.querySelector('.slider input[type=range]'),
            root = document.documentElement;
        const painted = () =>
            new Promise((resolve) =>
                requestAnimationFrame(() => {
                    const channel = new MessageChannel();
                    channel.port1.onmessage = resolve;
                    channel.port2.postMessage(0);
                }),
            );
        const changed = () =>
            new Promise((resolve) => {
                const watch = new MutationObserver(() => {
                    watch.disconnect();
                    resolve();
                });
                watch.observe(root, { attributes: true, attributeFilter: ['data-shown'] });
            });
        const out = { cells: [], frames: [] };
        for (let i = 0; i < count; i++) {
            await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 17));
            const came = changed(),
                start = performance.now();
            range.value = 300 + ((i * 37) % 500);
            range.dispatchEvent(new Event('input', { bubbles: true }));
            await came;
            out.cells.push(performance.now() - start);
            await painted();
            out.frames.push(performance.now() - start);
        }
        return out;
    }, moves);
}

async function heap(page) {
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    return usedSize / (1 << 20);
}

const lines = [];
let failed = 0;
function report(name, value, target, unit = 'ms') {
    const good = value <= target;
    failed += good ? 0 : 1;
    lines.push(
        `${name.padEnd(44)}${value.toFixed(1).padStart(9)} ${unit.padEnd(4)} target ${target} ${unit}  ${good ? 'holds' : 'does not hold'}`,
    );
}

const stage = new Stage('bench');
try {
    const server = await stage.serve(['-m', makeModel('gpt2-124m')]);
    const hash = `#tok=${ids(128)}&l=6&h=3&e=q@6.h3=scale:0.5&gn=0`;
    let page = await stage.open(server.url, { hash });
    await slide(page, 30);
    const { cells, frames } = await slide(page, MOVES),
        toCells = summary(cells),
        toFrame = summary(frames);
    lines.push(`${'slider to cells, median'.padEnd(44)}${toCells.median.toFixed(1).padStart(9)} ms`);
    lines.push(`${'slider to cells, 99th percentile'.padEnd(44)}${toCells.p99.toFixed(1).padStart(9)} ms`);
    report('slider to paint, 128 tokens, median', toFrame.median, TARGET_MEDIAN);
    report('slider to paint, 128 tokens, 99th percentile', toFrame.p99, TARGET_99);
    await slide(page, 200);
    const before = await heap(page);
    await slide(page, 600);
    report('growth of the heap over 600 moves', (await heap(page)) - before, TARGET_GROWTH, 'MiB');

    const times = [];
    for (let i = 0; i < 5; i++) {
        page = await stage.open(server.url, { hash: `#tok=${ids(128)}&gn=0` });
        times.push(
            await page.evaluate(() => {
                const first =
                    performance.getEntriesByName('first-paint')[0]?.startTime ??
                    performance.getEntriesByName('first-contentful-paint')[0].startTime;
                return performance.getEntriesByName('qkv-overview')[0].startTime - first;
            }),
        );
        await page.context().close();
    }
    report('overview of 12 x 12 heads after first paint', summary(times).median, TARGET_OVERVIEW);
    await server.stop();

    const long = await stage.serve(['-m', makeModel('llama:4,8,8,256,512,4096,8192')]);
    page = await stage.open(long.url, { hash: `#tok=${ids(4096)}&l=2&h=1&gn=0` });
    const after = await page.evaluate(() => {
        const reply = performance
            .getEntriesByType('resource')
            .filter((entry) => entry.name.endsWith('/api/head'))[0];
        return performance.getEntriesByName('qkv-head-first')[0].startTime - reply.responseEnd;
    });
    report('first paint of 4,096 tokens after the result', after, TARGET_LONG);
    lines.push(
        `${'heap of the page with 4,096 tokens'.padEnd(44)}${(await heap(page)).toFixed(1).padStart(9)} MiB`,
    );
} finally {
    await stage.close();
}
console.log(lines.join('\n'));
process.exit(failed ? 1 : 0);
