// What the page asks the server for, and where the answers go. Explorer (main.js) stands on this: it has the state, the
// parts, and the model.
//
// What follows the hand (the shown head's maps) is asked for at once, one request at a time. What comes when the hand
// rests (overview, curve, next tokens, text) is marked as older at once and asked for a moment later.
import { Channel, Connection } from './api.js';
import { placeInEdits } from './notation.js';
import { byId } from './text.js';

const REST = 180; // milliseconds without a move: the hand rests
const LONG_REST = 700; // before text is generated
const SIDE = 512; // cells of a side: longer maps are pooled
const OVERVIEW_SIDE = 32;
const LONG_TOKENS = 40; // beyond it the figures' colours are on a log scale

export function firstEdit(layer, head) {
    return `q@${layer}.h${head}=scale:0.5`;
}

export class ExplorerRequests {
    constructor() {
        this.connection = new Connection();
        const channel = (path, options) => new Channel(this.connection, path, options);
        this.channels = {
            tokens: channel('/api/tokens', { slot: 'tokens' }),
            head: channel('/api/head', { slot: 'head', follows: true, read: 'tensors' }),
            overview: channel('/api/overview', { slot: 'overview', read: 'tensors' }),
            losses: channel('/api/losses', { slot: 'losses' }),
            curve: channel('/api/curve', { slot: 'curve' }),
            next: channel('/api/next', { slot: 'next' }),
            generate: channel('/api/generate', { slot: 'generate' }),
            why: channel('/api/why', { slot: 'why' }),
            command: channel('/api/figure', { slot: 'command' }),
        };
        this.timers = new Map();
        this.connection.onbusy = () => this.showWork();
    }

    // What is seen first does not wait for the facts about the model.
    askEarly() {
        const { state, channels } = this;
        this.currentPrompt = state.prompt ?? undefined;
        channels.tokens.prefetch(this.runOf(''));
        if (state.layer === null || state.head === null) return channels.overview.prefetch(this.overviewBody(''));
        state.edits ??= [firstEdit(state.layer, state.head)];
        channels.head.prefetch(this.headBody());
    }

    // ---- the run ----

    get editsText() {
        return (this.state.edits ?? [])
            .map((edit) => edit.trim())
            .filter(Boolean)
            .join(' + ');
    }

    // What names the run: model, prompt, edits. Without a name the server takes its first model, and the prompt that
    // it was started with.
    runOf(edits) {
        const run = { prompt: this.currentPrompt };
        if (this.state.model !== null) run.model = this.state.model;
        return edits === '' ? run : { ...run, edits };
    }

    get run() {
        return this.runOf(this.editsText);
    }

    // ---- the shown head ----

    // Part of a long map: the zoom, where the whole is pooled.
    zoomWindow() {
        return this.isPooled ? this.state.view.zoom : null;
    }

    get isPooled() {
        return Boolean(this.tokens) && this.tokens.n > SIDE;
    }

    headBody() {
        const { layer, head } = this.state;
        return { ...this.run, layer, head, side: SIDE, metrics: this.state.curve };
    }

    askHead() {
        if (!this.tokens || this.state.layer === null) return;
        const window = this.zoomWindow(),
            body = this.headBody();
        if (window) body.window = window;
        const about = this.aboutHead(body, window);
        // The baseline is known while only edits change: half the bytes.
        if (body.edits && this.baseline?.about === about) body.only = 'after';
        this.channels.head.ask(
            body,
            (reply) => this.headCame(reply, body, about, this.tokens),
            (error) => this.headFailed(error),
        );
    }

    headCame(reply, body, about, tokens) {
        const facts = JSON.parse(reply.metadata.qkv);
        if (facts.layer !== this.state.layer || facts.head !== this.state.head || tokens !== this.tokens) return;
        if (reply.before) this.baseline = { about, before: reply.before, sink: reply.sink_before?.values ?? null };
        if (this.baseline?.about !== about) return;
        this.paintHead(reply, facts, Boolean(body.edits));
        this.lastHead = facts;
        const metric = facts.metrics && {
            before: facts.metrics[0]?.[this.state.curve],
            after: facts.metrics.at(-1)?.[this.state.curve],
        };
        this.follow.setCursor(this.state.edits[this.state.active] ?? '', metric);
        this.edits.setReport(facts.edits);
        if (this.hasError) {
            this.hasError = false;
            this.edits.setError(null);
            this.later();
        }
        document.documentElement.dataset.edits = body.edits; // what the maps show: tests and bench wait for it
        this.markFirst('qkv-head-first');
        this.showWork();
    }

    // When something was first seen: the frame behind it is out.
    markFirst(name) {
        if (this.marked?.has(name)) return;
        (this.marked ??= new Set()).add(name);
        requestAnimationFrame(() => setTimeout(() => performance.mark(name)));
    }

    paintHead(reply, facts, edited) {
        const { tokens, baseline } = this,
            [rows, cols] = baseline.before.shape;
        const [r0, , c0] = facts.view;
        this.head.setData({
            queries: tokens.texts,
            keys: tokens.texts,
            n: tokens.n,
            causal: facts.causal,
            window: facts.window,
            before: baseline.before.values,
            after: edited ? (reply.after?.values ?? null) : null,
            rows,
            cols,
            step: facts.step,
            r0,
            c0,
            sink: baseline.sink ? { before: baseline.sink, after: reply.sink_after?.values ?? null } : null,
        });
    }

    headFailed(error) {
        this.hasError = true; // what comes when the hand rests is not asked for
        if (!this.head.data && this.editsText) this.askBaseline();
        if (error.at !== null && error.at !== undefined) {
            this.edits.setError({
                ...placeInEdits(this.state.edits, error.at, error.message),
                message: error.message,
            });
        } else if (this.state.edits.length)
            this.edits.setError({ index: this.state.active, at: null, message: error.message });
        else this.banner.showProblem(error.message);
        this.showWork();
    }

    // A link may hold an edit that is wrong here: the model as it is can be shown all the same.
    askBaseline() {
        const body = { ...this.headBody() },
            about = this.aboutHead(body, null);
        delete body.edits;
        this.channels.head.ask(body, (reply) => {
            this.baseline = { about, before: reply.before, sink: reply.sink_before?.values ?? null };
            this.paintHead(reply, JSON.parse(reply.metadata.qkv), false);
            this.askOverview();
            this.showWork();
        });
    }

    // What a baseline depends on.
    aboutHead({ model, prompt, layer, head }, window) {
        return JSON.stringify([model, prompt, layer, head, window]);
    }

    // ---- what comes when the hand rests ----

    after(name, delay, act) {
        clearTimeout(this.timers.get(name));
        this.timers.set(
            name,
            setTimeout(() => {
                this.timers.delete(name);
                act();
                this.showWork();
            }, delay),
        );
        this.showWork();
    }

    later(moving = true) {
        const delay = moving ? REST : REST / 2;
        // One thing is computed at a time: what the hand waits for must not wait for these.
        for (const name of ['overview', 'curve', 'next', 'generate', 'losses', 'why']) this.channels[name].drop();
        this.after('rest', delay, () => {
            if (!this.tokens || this.state.layer === null || this.hasError) return;
            this.askOverview();
            this.askNext();
            this.askCurve();
            this.askLosses();
            this.askWhy();
            this.askCommand();
        });
        this.after('generate', delay + LONG_REST, () => this.askGenerate());
    }

    markOlder() {
        byId('overview-older').hidden = !this.overview.data;
        this.follow.markOlder();
        this.why.markOlder();
    }

    overviewBody(edits) {
        return { ...this.runOf(edits), side: OVERVIEW_SIDE, metric: this.state.overview.metric };
    }

    askOverview() {
        if (!this.tokens) return;
        const tokens = this.tokens,
            body = this.overviewBody(this.state.layer === null || this.hasError ? '' : this.editsText);
        const key = JSON.stringify(body);
        if (key === this.overviewKey) return void (byId('overview-older').hidden = true);
        if (key === this.overviewAsked && this.channels.overview.running) return;
        this.overviewAsked = key;
        this.channels.overview.ask(
            body,
            (reply) => {
                if (tokens !== this.tokens) return;
                this.overviewKey = key;
                this.overviewCame(reply, tokens);
            },
            (error) => !body.edits && this.banner.showProblem(error.message),
        );
    }

    overviewCame(reply, tokens) {
        const maps = reply.after ?? reply.before,
            { layers, heads, side } = JSON.parse(reply.metadata.qkv);
        this.overview.setData({
            layers,
            heads,
            side,
            maps: maps.values,
            tv: reply.tv?.values ?? null,
            causal: this.model.causal,
            n: tokens.n,
            long: tokens.n > LONG_TOKENS,
            before: reply.metric_before?.values ?? null,
            after: reply.metric_after?.values ?? null,
        });
        byId('overview-older').hidden = true;
        this.markFirst('qkv-overview');
        if (this.state.layer === null) this.openStrongest(reply.metric_before?.values, heads);
    }

    // As the figures choose a head: where the first token draws most attention.
    openStrongest(values, heads) {
        let best = 0;
        if (values)
            values.forEach((value, i) => {
                if (value > values[best]) best = i;
            });
        this.openHead(Math.floor(best / heads), best % heads);
    }

    askLosses() {
        if (!this.model.has_logits) return;
        this.channels.losses.ask(this.run, (reply) => {
            this.prompt.chips.setLosses(reply.tokens);
            this.follow.setLoss(reply);
        });
    }

    askNext() {
        if (!this.model.has_logits) return;
        this.channels.next.ask(
            { ...this.run, top: 10 },
            (reply) => {
                this.follow.setNext(reply);
                this.edits.setReport(reply.edits, true);
            },
            (error) => this.follow.failed('next', error),
        );
    }

    askCurve() {
        const { layer, head, active, curve } = this.state;
        const wanted = this.follow.curveRequest(this.state.edits ?? [], active);
        if (!wanted || layer === null || !this.tokens) return this.follow.setCurve(null);
        const body = { ...this.runOf(''), ...wanted, layer, head, metric: curve };
        const key = JSON.stringify(body);
        if (key === this.curveKey) return this.follow.markFresh('curve');
        this.channels.curve.ask(
            body,
            (reply) => {
                this.curveKey = key;
                this.follow.setCurve(reply);
            },
            (error) => this.follow.failed('curve', error),
        );
    }

    askGenerate() {
        const { n, temperature, seed } = this.state.generate;
        if (!this.model?.has_logits || !this.tokens || this.hasError) return;
        if (n === 0) return this.follow.markFresh('generate');
        const body = { ...this.run, n, temperature, seed };
        this.follow.generating();
        this.channels.generate.ask(
            body,
            (reply) => this.follow.setGenerated(reply, Boolean(body.edits)),
            (error) => this.follow.failed('generate', error),
        );
    }

    askWhy() {
        const { layer, head } = this.state,
            { queries, keys } = this.state.view.pins;
        if (!this.tokens || layer === null || queries.length !== 1 || keys.length !== 1) return this.why.show(null);
        if (queries[0] >= this.tokens.n || keys[0] >= this.tokens.n) return this.why.show(null);
        const body = { ...this.run, layer, head, query: queries[0], key: keys[0] },
            tokens = this.tokens;
        this.channels.why.ask(
            body,
            (reply) => this.why.show(reply, { ...body, tokens: tokens.texts }),
            (error) => this.why.fail(error),
        );
    }

    askCommand() {
        if (!this.tokens || this.state.layer === null) return;
        this.channels.command.ask(
            this.out.dryRequest(this.figureRequest()),
            (reply) => this.out.setCommand(reply),
            (error) => this.out.failed(error),
        );
    }
}
