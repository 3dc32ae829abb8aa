// Requests to the server.
//
// The cookie that the browser holds says who asks; nothing here knows a token. Each kind of request has a Channel. One
// that follows a slider has at most one request under way and sends the newest wish when that returns; one that
// comes when the slider rests drops what is under way. Both tell the server client, slot and seq, so what was
// replaced is not computed there either.
//
//     const head = new Channel(api, '/api/head', { slot: 'head', follows: true });
//     head.ask(body, (reply) => ..., (error) => ...);
//
// A server that does not answer is asked again until it does; wishes are kept meanwhile (Connection).

export class ApiError extends Error {
    constructor(status, { code = 'failed', message = 'the request failed', at = null, length = null } = {}) {
        super(message);
        this.status = status;
        this.code = code;
        this.at = at;
        this.length = length;
    }
}

// Codes that say: not wrong, only no longer wanted.
export function wasReplaced(error) {
    return error.name === 'AbortError' || error.code === 'replaced' || error.code === 'cancelled';
}

const RETRY_FIRST = 400,
    RETRY_MOST = 3000; // milliseconds

export class Connection {
    constructor() {
        this.client = randomName();
        this.seq = Date.now(); // a page that is loaded again continues above its old numbers
        this.lost = null;
        this.onlost = this.onback = () => {};
        this.busy = new Set();
        this.onbusy = () => {};
    }

    // fetch with errors as ApiError; a lost connection starts the wait for the server.
    async fetch(path, options = {}) {
        let reply;
        try {
            reply = await fetch(path, { cache: 'no-store', credentials: 'same-origin', ...options });
        } catch (error) {
            if (error.name !== 'AbortError') this.loose('gone');
            throw error;
        }
        if (reply.status === 401 || reply.status === 403) this.loose('refused');
        if (!reply.ok) throw new ApiError(reply.status, await readError(reply));
        return reply;
    }

    async post(path, body, signal) {
        return this.fetch(path, {
            method: 'POST',
            signal,
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify(body),
        });
    }

    async json(path, body, signal) {
        const reply = body === undefined ? await this.fetch(path, { signal }) : await this.post(path, body, signal);
        return reply.json();
    }

    // why: 'gone' (no answer) or 'refused' (another token).
    loose(why) {
        const first = !this.lost;
        this.lost = why;
        this.onlost(why);
        if (first) this.waitForServer(RETRY_FIRST);
    }

    waitForServer(delay) {
        setTimeout(async () => {
            try {
                const reply = await fetch('/api/state', { cache: 'no-store', credentials: 'same-origin' });
                if (reply.ok) {
                    this.lost = null;
                    this.onback(await reply.json());
                    return;
                }
                this.lost = 'refused';
            } catch {
                this.lost = 'gone';
            }
            this.onlost(this.lost);
            this.waitForServer(Math.min(delay * 1.5, RETRY_MOST));
        }, delay);
    }

    setBusy(channel, on) {
        if (on) this.busy.add(channel);
        else this.busy.delete(channel);
        this.onbusy(this.busy.size > 0);
    }
}

async function readError(reply) {
    try {
        return (await reply.json()).error || {};
    } catch {
        return { code: 'failed', message: `the server answered ${reply.status}` };
    }
}

function randomName() {
    const bytes = crypto.getRandomValues(new Uint8Array(9));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export class Channel {
    // follows: keep the one under way and send the newest after it; else the newest drops it.
    // read: 'json', 'tensors' (safetensors) or 'bytes'.
    constructor(connection, path, { slot, follows = false, read = 'json' }) {
        Object.assign(this, { connection, path, slot, follows, read });
        this.running = null;
        this.wish = null;
        this.failed = null;
    }

    ask(body, onreply, onerror = () => {}) {
        this.wish = { body, onreply, onerror };
        this.failed = null;
        if (this.running && this.follows) return;
        if (this.running) this.running.abort();
        this.send();
    }

    // Asks before anybody waits for it; the same wish later takes this reply. Failures are the later wish's.
    prefetch(body) {
        const reply = this.connection.post(this.path, this.address(body));
        reply.catch(() => {});
        this.early = { key: JSON.stringify(body), reply };
    }

    address(body) {
        return { ...body, client: this.connection.client, slot: this.slot, seq: ++this.connection.seq };
    }

    takeEarly(body) {
        const early = this.early;
        this.early = null;
        return early && early.key === JSON.stringify(body) ? early.reply : null;
    }

    // What the lost connection kept from being answered is asked for again.
    resume() {
        if (this.failed) this.ask(this.failed.body, this.failed.onreply, this.failed.onerror);
    }

    drop() {
        this.wish = this.failed = null;
        if (this.running) this.running.abort();
    }

    async send() {
        const { connection } = this,
            wish = this.wish,
            stop = new AbortController();
        this.wish = null;
        this.running = stop;
        connection.setBusy(this, true);
        try {
            const early = this.early && this.takeEarly(wish.body);
            const reply = await (early || connection.post(this.path, this.address(wish.body), stop.signal));
            const value =
                this.read === 'json'
                    ? await reply.json()
                    : this.read === 'tensors'
                      ? readTensors(await reply.arrayBuffer())
                      : await reply.arrayBuffer();
            if (this.running === stop || this.follows) wish.onreply(value, wish.body);
        } catch (error) {
            this.settle(error, wish, stop);
        } finally {
            this.finish(stop);
        }
    }

    settle(error, wish, stop) {
        if (wasReplaced(error) || this.running !== stop) return;
        if (error instanceof ApiError && !this.connection.lost) wish.onerror(error, wish.body);
        else if (this.connection.lost) this.failed = this.wish || wish;
        else throw error;
    }

    finish(stop) {
        if (this.running !== stop) return;
        this.running = null;
        if (this.wish && !this.connection.lost) return void this.send();
        if (this.wish) this.failed = this.wish;
        this.wish = null;
        this.connection.setBusy(this, false);
    }
}

// ---- safetensors ----

const ARRAYS = { F32: Float32Array, U8: Uint8Array, I32: Int32Array, I64: BigInt64Array, F64: Float64Array };

// { metadata, NAME: { shape, values } }. Arrays lie in the reply's own bytes where those are aligned.
export function readTensors(buffer) {
    const length = Number(new DataView(buffer).getBigUint64(0, true));
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    const out = { metadata: head.__metadata__ || {} };
    for (const [name, entry] of Object.entries(head)) {
        if (name === '__metadata__') continue;
        const {
            dtype,
            shape,
            data_offsets: [from, to],
        } = entry;
        const kind = ARRAYS[dtype];
        if (!kind) throw new Error(`a tensor of type ${dtype} is not read here`);
        const at = 8 + length + from,
            size = kind.BYTES_PER_ELEMENT;
        const values =
            at % size === 0 ? new kind(buffer, at, (to - from) / size) : new kind(buffer.slice(at, at + to - from));
        out[name] = { shape, values };
    }
    return out;
}
