// What every case needs: a server of its own, a browser, and pages whose requests and errors are watched.
//
//     export async function case_greets(stage) {
//         const server = await stage.serve(['-p', 'The river runs.']);      // qkv serve on a free port
//         const page = await stage.open(server.url);                        // waits until the page is ready
//         ...playwright's page...
//     }
//
// A page that writes an error to its console, throws, or asks anybody but its own server for anything fails its case,
// unless the case says stage.allow(/pattern/).
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import url from 'node:url';

export class SkippedHere extends Error {}

const FLAGS = [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-default-apps',
    '--no-default-browser-check',
];
const START_SECONDS = 60;

const root = path.resolve(path.dirname(url.fileURLToPath(import.meta.url)), '../..');

export function qkvPath() {
    return process.env.QKV || path.join(root, 'build/qkv');
}

// Runs a program and gives what it wrote; fails the case where the program fails.
function run(program, args, options) {
    const done = spawnSync(program, args, { maxBuffer: 1 << 28, ...options });
    assert.equal(done.status, 0, `${path.basename(program)} ${args.join(' ')}: ${done.stderr}`);
    return done.stdout;
}

export function qkv(args, options) {
    return run(qkvPath(), args, options);
}

// A model of random weights in a folder of its own, made where it is not there yet: its path.
export function randomModel(folder, shape) {
    const find = () => (fs.existsSync(folder) ? fs.readdirSync(folder) : []).find((name) => name.endsWith('.gguf'));
    const options = '-T 8 --repeats 1 --only load'.split(' ');
    const bench = path.join(path.dirname(qkvPath()), 'qkv-bench');
    if (!find()) run(bench, ['--shape', shape, ...options, '--keep', folder]);
    return path.join(folder, find());
}

// The tensors and metadata of a safetensors file.
export function readSafetensors(bytes) {
    const length = Number(bytes.readBigUInt64LE(0));
    const head = JSON.parse(bytes.subarray(8, 8 + length).toString());
    const tensors = {};
    for (const [name, entry] of Object.entries(head)) {
        if (name === '__metadata__') continue;
        const [from, to] = entry.data_offsets;
        const copy = new Uint8Array(bytes.subarray(8 + length + from, 8 + length + to));
        tensors[name] = {
            shape: entry.shape,
            dtype: entry.dtype,
            values: entry.dtype === 'F32' ? new Float32Array(copy.buffer) : copy,
        };
    }
    return { metadata: head.__metadata__ || {}, tensors };
}

class Server {
    constructor(args, env) {
        this.args = args;
        this.env = env;
    }

    // The address is the first one that the program prints.
    async start() {
        this.child = spawn(qkvPath(), ['serve', ...this.args], { env: { ...process.env, ...this.env } });
        this.log = '';
        const address = await new Promise((resolve, reject) => {
            const late = setTimeout(
                () => reject(new Error(`qkv serve is not ready: ${this.log}`)),
                START_SECONDS * 1000,
            );
            const read = (chunk) => {
                this.log += chunk;
                const found = this.log.match(/https?:\/\/\S+(?=\s)/);
                if (found) {
                    clearTimeout(late);
                    resolve(found[0]);
                }
            };
            this.child.stdout.on('data', read);
            this.child.stderr.on('data', read);
            this.child.on('exit', (code) => reject(new Error(`qkv serve ended with ${code}: ${this.log}`)));
        });
        this.url = address;
        this.port = Number(new URL(address).port);
        return this;
    }

    async stop(signal = 'SIGTERM') {
        if (!this.child || this.child.exitCode !== null || this.child.signalCode) return;
        const ended = new Promise((resolve) => this.child.once('exit', resolve));
        this.child.kill(signal);
        await ended;
    }
}

export class Stage {
    constructor(name) {
        this.name = name;
        this.servers = [];
        this.contexts = [];
        this.problems = [];
        this.allowed = [];
        this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'qkv-browser-'));
    }

    file(name) {
        return path.join(this.folder, name);
    }

    read(file) {
        return fs.readFileSync(file);
    }

    allow(pattern) {
        this.allowed.push(pattern);
    }

    // qkv serve with these arguments, on a free port.
    async serve(args = [], env = {}) {
        const port = args.includes('--port') ? [] : ['--port', '0'];
        const server = await new Server([...args, ...port], env).start();
        this.servers.push(server);
        return server;
    }

    async browser() {
        if (this.launched) return this.launched;
        const deps = process.env.QKV_BROWSER_DEPS || path.join(root, '.deps/browser');
        if (!fs.existsSync(path.join(deps, 'node_modules', 'playwright-core'))) {
            throw new SkippedHere('playwright-core is missing: run scripts/setup.sh browser');
        }
        const executablePath = process.env.QKV_CHROMIUM || '/usr/bin/chromium';
        if (!fs.existsSync(executablePath))
            throw new SkippedHere('Chromium is missing: run scripts/setup.sh browser');
        const { chromium } = createRequire(path.join(deps, 'package.json'))('playwright-core');
        this.launched = await chromium.launch({ executablePath, args: FLAGS, headless: true });
        return this.launched;
    }

    // A tab of its own profile. `options` are those of playwright's newContext.
    async tab({ origin = null, ...options } = {}) {
        const browser = await this.browser();
        const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
        await context.grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => {});
        this.contexts.push(context);
        const page = await context.newPage();
        page.setDefaultTimeout(20000);
        page.on('pageerror', (error) => this.problems.push(`error on the page: ${error.stack || error}`));
        page.on('console', (message) => {
            if (message.type() === 'error')
                this.problems.push(`console: ${message.text()} ${message.location().url}`);
        });
        page.on('request', (request) => {
            const target = request.url();
            if (/^(data|blob|about):/.test(target)) return;
            if (!origin || new URL(target).origin !== origin)
                this.problems.push(`a request to elsewhere: ${target}`);
        });
        this.page = page;
        return page;
    }

    // Opens the explorer and waits until the head is painted.
    async open(address, { hash = '', ...options } = {}) {
        const page = await this.tab({ origin: new URL(address).origin, ...options });
        await page.goto(address + hash);
        await this.ready(page);
        return page;
    }

    // Ready: nothing is asked for and nothing waits. The page says so on its root element, a frame after what was done.
    async ready(page = this.page) {
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));
        await page.waitForSelector('html[data-ready="yes"]', { timeout: 60000 });
    }

    // Problems that no case allowed.
    checkQuiet() {
        const loud = this.problems.filter((text) => !this.allowed.some((pattern) => pattern.test(text)));
        assert.deepEqual(loud, []);
    }

    async keepScreenshot() {
        try {
            const file = path.join(os.tmpdir(), `qkv-browser-${this.name}.png`);
            await this.page.screenshot({ path: file });
            console.error(`the page as it was: ${file}`);
            for (const problem of this.problems) console.error(problem);
        } catch {
            // The browser may be what failed.
        }
    }

    async close() {
        for (const context of this.contexts) await context.close().catch(() => {});
        await this.launched?.close().catch(() => {});
        for (const server of this.servers) await server.stop();
        fs.rmSync(this.folder, { recursive: true, force: true });
    }
}
