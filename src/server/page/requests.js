// What the page asks the server for, and where the answers go. Explorer (main.js) stands on this: it has the state, the
// parts, and the model.
//
// What follows the hand (the shown head's maps) is asked for at once, one request at a time; where the page can make the
// map itself it shows that until the answer is there (preview.js). What comes when the hand
// rests (overview, curve, next tokens, text) is marked as older at once and asked for a moment later.
import { Channel } from './api.js';
import { editsOf, first, headBody, overviewBody, runBody, SIDE } from './early.js';
import { factorOf, placeInEdits } from './notation.js';
import { Preview, previewKey } from './preview.js';
import { afterFrame, byId } from './text.js';

const REST = 180; // milliseconds without a move: the hand rests
const LONG_REST = 700; // before text is generated
const FIRST_WORDS = 6; // tokens of it that come first
const LONG_TOKENS = 40; // beyond it the figures' colours are on a log scale

export class ExplorerRequests {
    constructor() {
        this.connection = first.connection;
        const channel = (path, options) => new Channel(this.connection, path, options);
        this.channels = {
            ...first.channels, // tokens, head, overview
            scores: channel('/api/head', { slot: 'scores', read: 'tensors' }),
            losses: channel('/api/losses', { slot: 'losses' }),
            curve: channel('/api/curve', { slot: 'curve' }),
            next: channel('/api/next', { slot: 'next' }),
            generate: channel('/api/generate', { slot: 'generate' }),
            why: channel('/api/why', { slot: 'why' }),
            command: channel('/api/figure', { slot: 'command' }),
        };
        this.preview = new Preview();
        this.previewed = null; // what is shown by it: { about, edits }
        this.timers = new Map();
        this.connection.onbusy = () => this.showWork();
    }

    // ---- the run ----

    get editsList() {
        return editsOf(this.state);
    }

    get editsText() {
        return this.editsList.join(' + ');
    }

    runOf(edits) {
        return runBody(this.state, this.currentPrompt, edits);
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
        return headBody(this.state, this.currentPrompt, this.editsText);
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
        const shown = this.previewed?.about === about ? this.previewed.edits : null;
        // The hand has moved on, and the page shows it already.
        if (shown !== null && shown === this.editsText && shown !== body.edits) return;
        const data = this.headData(facts, body.edits ? reply : {});
        if (shown !== null && shown === body.edits) this.head.settle(data);
        else this.head.setData(data);
        this.previewed = null;
        this.lastHead = facts;
        const metric = facts.metrics && {
            before: facts.metrics[0]?.[this.state.curve],
            after: facts.metrics.at(-1)?.[this.state.curve],
        };
        this.follow.setCursor(this.state.edits[this.state.active] ?? '', metric);
        this.showReport(body, facts.edits, false);
        if (this.hasError) {
            this.hasError = false;
            this.edits.setError(null);
            this.later();
        }
        // What the maps show: tests and bench wait for it. `edits`: with the server's numbers.
        document.documentElement.dataset.edits = document.documentElement.dataset.shown = body.edits;
        this.markFirst('qkv-head-first');
        this.showWork();
    }

    // When something was first seen: the frame behind it is out.
    markFirst(name) {
        if (this.marked?.has(name)) return;
        (this.marked ??= new Set()).add(name);
        afterFrame(() => performance.mark(name));
    }

    // What the head view is given: the baseline, and the map after the edits.
    headData(facts, { after = null, sink_after: sinkAfter = null }) {
        const { tokens, baseline } = this,
            [rows, cols] = baseline.before.shape;
        const [r0, , c0] = facts.view;
        return {
            queries: tokens.texts,
            keys: tokens.texts,
            n: tokens.n,
            causal: facts.causal,
            window: facts.window,
            before: baseline.before.values,
            after: after?.values ?? null,
            rows,
            cols,
            step: facts.step,
            r0,
            c0,
            sink: baseline.sink ? { before: baseline.sink, after: sinkAfter?.values ?? null } : null,
        };
    }

    // ---- the shown head while the hand moves ----

    // The map of the edits as they are now, at once, where it can be made of scores. Was it?
    showPreview() {
        const about = this.aboutHead(this.headBody(), this.zoomWindow());
        if (this.hasError || this.baseline?.about !== about || !this.lastHead) return false;
        const made = this.preview.make(previewKey(about, this.editsList), this.editsList);
        if (!made) return false;
        this.previewed = { about, edits: this.editsText };
        const sink = made.sink && { values: made.sink };
        this.head.setData(this.headData(this.lastHead, { after: { values: made.after }, sink_after: sink }));
        document.documentElement.dataset.shown = this.editsText;
        return true;
    }

    // Scores for the slider, when the hand rests: the next moves are shown without waiting for the server.
    askScores() {
        const body = { ...this.headBody(), only: 'scores' },
            about = this.aboutHead(body, null),
            key = previewKey(about, this.editsList);
        delete body.metrics;
        if (this.isPooled || key === this.preview.key || !this.editsList.some((edit) => factorOf(edit) !== null)) return;
        this.channels.scores.ask(body, (reply) => {
            if (this.baseline?.about !== about) return;
            this.preview.set(key, {
                n: this.tokens.n,
                scores: reply.scores.values,
                facts: JSON.parse(reply.metadata.qkv),
                before: this.baseline.before.values,
                sink: this.baseline.sink,
            });
        });
    }

    headFailed(error) {
        this.hasError = true; // what comes when the hand rests is not asked for
        if (!this.head.data && this.editsText) this.askBaseline();
        if (error.at !== null && error.at !== undefined) {
            this.edits.setError({
                ...placeInEdits(this.state.edits, error.at, error.length),
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
            this.head.setData(this.headData(JSON.parse(reply.metadata.qkv), {}));
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
            this.askScores();
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

    askOverview() {
        if (!this.tokens) return;
        const tokens = this.tokens,
            edits = this.state.layer === null || this.hasError ? '' : this.editsText,
            body = overviewBody(this.state, this.currentPrompt, edits);
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
        if (this.state.layer === null) afterFrame(() => this.openStrongest(reply.metric_before?.values, heads));
    }

    // As the figures choose a head: where the first token draws most attention.
    openStrongest(values, heads) {
        if (this.state.layer !== null) return; // opened by hand meanwhile
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
        const body = { ...this.run, top: 10 };
        this.channels.next.ask(
            body,
            (reply) => {
                this.follow.setNext(reply);
                this.showReport(body, reply.edits, true);
            },
            (error) => this.follow.failed('next', error),
        );
    }

    // An answer leaves out what it does not need, and says that such an edit did not run: /api/head what lies behind the
    // map, /api/next queries of the last layer but one. Of answers about one run, what ran in either is shown.
    showReport({ model, prompt, edits }, list, whole) {
        const about = JSON.stringify([model, prompt, edits]),
            old = this.reported?.about === about ? this.reported : { list: [], whole: false };
        this.reported = {
            about,
            list: list.map((report, i) => (!report.ran && old.list[i]?.ran ? old.list[i] : report)),
            whole: whole || old.whole,
        };
        this.edits.setReport(this.reported.list, this.reported.whole);
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
        this.follow.generating(0, n);
        const drawn = temperature > 0 ? { temperature, seed } : {}; // else the most likely tokens: nothing is drawn
        this.generateMore({ ...this.run, ...drawn }, Math.min(FIRST_WORDS, n), n);
    }

    // A few tokens first, then four times as many, and so on: the same ones again and more, for a third of the time on
    // top. What there is is shown while the rest is computed.
    generateMore(run, n, all) {
        this.channels.generate.ask(
            { ...run, n },
            (reply) => {
                this.follow.setGenerated(reply, Boolean(run.edits));
                const ended = (reply.variant_ids ?? reply.baseline_ids).length < n && reply.baseline_ids.length < n;
                if (n >= all || ended) return this.follow.markFresh('generate');
                this.follow.generating(n, all);
                this.generateMore(run, Math.min(4 * n, all), all);
            },
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
