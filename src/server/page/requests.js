// What the page asks the server for, and where the answers go. Explorer (main.js) stands on this: it has the state, the
// parts, and the model.
//
// What follows a slider (the shown head's maps) is asked for at once, one request at a time; where the page can make the
// map itself it shows that until the answer is there (preview.js). What comes when the slider
// rests (overview, curve, next tokens, text) is asked for a moment later. Whatever belongs to another prompt or edit than
// those that are chosen is marked as older (belongs.js).
import { Channel } from './api.js';
import { belongsTo } from './belongs.js';
import { editsOf, first, headBody, overviewBody, runBody, SIDE } from './early.js';
import { factorOf, placeInEdits } from './notation.js';
import { Preview, previewKey } from './preview.js';
import { afterFrame, byId } from './text.js';

const REST = 180; // milliseconds without a move: the slider rests
const LONG_REST = 700; // before text is generated
const FIRST_WORDS = 6; // tokens of it that come first

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
            numbers: channel('/api/figure', { slot: 'numbers' }),
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

    // ---- what is shown, and what should be ----

    // What a part of the page belongs to when it shows an answer about `run`; null: it should show nothing.
    aboutPart(name, { model, prompt, edits }, n = this.state.generate.n) {
        const { layer, head, curve, active, figure, view } = this.state,
            fed = { model: model ?? this.info.models[0].name, prompt: prompt ?? this.info.prompt },
            run = { ...fed, edits },
            ofHead = { ...run, layer, head };
        if (name === 'tokens') return belongsTo(fed);
        if (name === 'overview') {
            const { metric, skip_keys: skip } = overviewBody(this.state, prompt, '', this.tokens?.n);
            return belongsTo({ ...fed, edits: layer === null ? '' : edits, metric, skip });
        }
        if (layer === null) return null;
        if (name === 'head') return belongsTo({ ...ofHead, window: this.zoomWindow() });
        if (name === 'out') return belongsTo({ ...ofHead, figure, view });
        if (name === 'curve') {
            const open = this.follow.curveRequest(this.state.edits ?? [], active);
            return open && belongsTo({ ...ofHead, edits: open.edits, metric: curve });
        }
        if (name === 'why') {
            const { queries, keys } = view.pins;
            return queries.length === 1 && keys.length === 1 ? belongsTo({ ...ofHead, query: queries[0], key: keys[0] }) : null;
        }
        return belongsTo(name === 'generate' ? { ...run, ...this.state.generate, n } : run); // else next, losses, report
    }

    // What is wanted may be more than what can be asked for: a model that is being opened, a prompt whose tokens are not
    // known or that is wrong.
    checkShown() {
        this.isToCheck = false;
        if (!this.shown || !this.model) return;
        const run = runBody({ model: this.opening?.name ?? this.state.model }, this.state.prompt ?? undefined, this.editsText);
        for (const name of this.shown.names) this.shown.want(name, this.aboutPart(name, run));
    }

    // One move of a slider asks for several things: what is shown is checked once, before the frame is painted.
    checkShownOnce() {
        if (!this.isToCheck) queueMicrotask(() => this.checkShown());
        this.isToCheck = true;
    }

    // Another model has other heads: what is shown has no place in it.
    forgetShown() {
        for (const channel of Object.values(this.channels)) channel.drop();
        for (const name of this.shown.names) this.shown.set(name, null);
        this.tokens = this.baseline = this.lastHead = this.previewed = null;
        this.hasError = false;
        this.overview.setData(null);
        this.head.setData(null);
        this.follow.clear();
        this.why.show(null);
        this.prompt.chips.setTokens([], []);
        this.forgetReport();
        this.edits.setError(null);
    }

    // ---- the shown head ----

    // Part of a long map, where the whole is pooled: the zoom, and without the keys that are hidden, which would be in
    // one block with those that are not.
    zoomWindow() {
        const { zoom, skipKeys } = this.state.view;
        if (!this.isPooled || (!zoom && !skipKeys)) return null;
        const { n } = this.tokens,
            [r0, r1, c0, c1] = zoom ?? [0, n, 0, n],
            first = Math.min(Math.max(c0, skipKeys), n - 1);
        return [r0, r1, first, Math.max(c1, first + 1)];
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
        const about = this.aboutHead(body, window),
            { tokens } = this;
        // The baseline is known while only edits change: half the bytes.
        if (body.edits && this.baseline?.about === about) body.only = 'after';
        this.channels.head.ask(
            body,
            (reply) => this.headCame(reply, body, about, tokens),
            (error) => this.headFailed(error),
        );
    }

    headCame(reply, body, about, tokens) {
        const facts = JSON.parse(reply.metadata.qkv);
        if (facts.layer !== this.state.layer || facts.head !== this.state.head || tokens !== this.tokens) return;
        if (reply.before) this.baseline = { about, before: reply.before, sink: reply.sink_before?.values ?? null };
        if (this.baseline?.about !== about) return;
        const shown = this.previewed?.about === about ? this.previewed.edits : null;
        // The slider has moved since, and the page shows it already.
        if (shown !== null && shown === this.editsText && shown !== body.edits) return;
        const data = this.headData(facts, body.edits ? reply : {});
        if (shown !== null && shown === body.edits) this.head.settle(data);
        else this.head.setData(data);
        this.shown.set('head', this.aboutPart('head', body));
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

    // When something was first seen: the frame with it is out.
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

    // ---- the shown head while a slider moves ----

    // The map of the edits as they are now, at once, where it can be made of scores. Was it?
    showPreview() {
        const about = this.aboutHead(this.headBody(), this.zoomWindow());
        if (this.hasError || this.baseline?.about !== about || !this.lastHead) return false;
        const made = this.preview.make(previewKey(about, this.editsList), this.editsList);
        if (!made) return false;
        this.previewed = { about, edits: this.editsText };
        const sink = made.sink && { values: made.sink };
        this.head.setData(this.headData(this.lastHead, { after: { values: made.after }, sink_after: sink }));
        this.shown.set('head', this.aboutPart('head', this.run));
        document.documentElement.dataset.shown = this.editsText;
        return true;
    }

    // Scores for the slider, when the slider rests: the next moves are shown without waiting for the server.
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
        this.hasError = true; // what comes when the slider rests is not asked for
        this.forgetReport();
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
            this.shown.set('head', this.aboutPart('head', body));
            this.askOverview();
            this.showWork();
        });
    }

    // What a baseline depends on.
    aboutHead({ model, prompt, layer, head }, window) {
        return JSON.stringify([model, prompt, layer, head, window]);
    }

    // ---- what comes when the slider rests ----

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
        // One thing is computed at a time: what a moving slider waits for must not wait for these.
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

    askOverview() {
        if (!this.tokens) return;
        const tokens = this.tokens,
            edits = this.state.layer === null || this.hasError ? '' : this.editsText,
            body = overviewBody(this.state, this.currentPrompt, edits, tokens.n),
            about = this.aboutPart('overview', this.runOf(edits));
        const key = JSON.stringify(body);
        if (this.shown.has('overview', about)) return;
        if (key === this.overviewAsked && this.channels.overview.running) return;
        this.overviewAsked = key;
        this.channels.overview.ask(
            body,
            (reply) => {
                if (tokens !== this.tokens) return;
                this.overviewCame(reply, tokens, body.metric);
                this.shown.set('overview', about);
            },
            (error) => !body.edits && this.banner.showProblem(error.message),
        );
    }

    overviewCame(reply, tokens, metric) {
        const maps = reply.after ?? reply.before,
            [, rows, cols] = maps.shape,
            { layers, heads, skip_keys: skip } = JSON.parse(reply.metadata.qkv);
        this.overview.setData({
            layers,
            heads,
            rows,
            cols,
            skip,
            maps: maps.values,
            tv: reply.tv?.values ?? null,
            causal: this.model.causal,
            n: tokens.n,
            metric,
            before: reply.metric_before?.values ?? null,
            after: reply.metric_after?.values ?? null,
        });
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
        const about = this.aboutPart('losses', this.run);
        this.channels.losses.ask(this.run, (reply) => {
            this.prompt.chips.setLosses(reply.tokens);
            this.follow.setLoss(reply);
            this.shown.set('losses', about);
        });
    }

    askNext() {
        if (!this.model.has_logits) return;
        const body = { ...this.run, top: 10 },
            about = this.aboutPart('next', this.run);
        this.channels.next.ask(
            body,
            (reply) => {
                this.follow.setNext(reply);
                this.shown.set('next', about);
                this.showReport(body, reply.edits, true);
            },
            (error) => this.shown.fail('next', error.message),
        );
    }

    // An answer leaves out what it does not need, and says that such an edit did not run: /api/head what comes after the
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
        this.shown.set('report', list.length ? this.aboutPart('report', { model, prompt, edits }) : null);
    }

    forgetReport() {
        this.reported = null;
        this.edits.setReport([]);
        this.shown.set('report', null);
    }

    askCurve() {
        const { layer, head, active, curve } = this.state;
        const wanted = this.follow.curveRequest(this.state.edits ?? [], active);
        const show = (reply, about) => {
            this.follow.setCurve(reply);
            this.shown.set('curve', about);
        };
        if (!wanted || layer === null || !this.tokens) return show(null, null);
        const body = { ...this.runOf(''), ...wanted, layer, head, metric: curve },
            about = this.aboutPart('curve', this.runOf(''));
        if (this.shown.has('curve', about)) return;
        this.channels.curve.ask(
            body,
            (reply) => show(reply, about),
            (error) => this.shown.fail('curve', error.message),
        );
    }

    askGenerate() {
        const { n, temperature, seed } = this.state.generate;
        if (!this.model?.has_logits || !this.tokens || this.hasError) return;
        if (n === 0) return this.shown.set('generate', this.aboutPart('generate', this.run));
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
                const isWhole = n >= all || ended;
                this.shown.set('generate', this.aboutPart('generate', run, isWhole ? all : n));
                if (isWhole) return;
                this.follow.generating(n, all);
                this.generateMore(run, Math.min(4 * n, all), all);
            },
            (error) => this.shown.fail('generate', error.message),
        );
    }

    askWhy() {
        const { layer, head } = this.state,
            { queries, keys } = this.state.view.pins;
        const show = (about, act) => {
            act();
            this.shown.set('why', about);
        };
        const about = this.tokens && this.aboutPart('why', this.run);
        if (!about || queries[0] >= this.tokens.n || keys[0] >= this.tokens.n) return show(null, () => this.why.show(null));
        const body = { ...this.run, layer, head, query: queries[0], key: keys[0] },
            tokens = this.tokens;
        this.channels.why.ask(
            body,
            (reply) => show(about, () => this.why.show(reply, { ...body, tokens: tokens.texts })),
            (error) => show(null, () => this.why.fail(error)),
        );
    }

    askCommand() {
        if (!this.tokens || this.state.layer === null) return;
        const about = this.aboutPart('out', this.run);
        for (const of of ['command', 'numbers'])
            this.channels[of].ask(
                this.out.dryRequest(of, this.figureRequest()),
                (reply) => {
                    this.out.setCommand(of, reply);
                    this.shown.set('out', about);
                },
                (error) => this.out.failed(of, error),
            );
    }
}
