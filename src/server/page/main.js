// The live page: holds the state, asks the server, hands what comes to the parts.
//
// What follows the hand (the shown head's maps) is asked for at once, one request at a time. What comes when the hand
// rests (overview, curve, next tokens, text) is marked as older at once and asked for a moment later.
import { Channel, Connection } from './api.js';
import { Palette } from './colors.js';
import { EditsPanel } from './edits.js';
import { Follow } from './follow.js';
import { HeadView } from './head.js';
import { movedEdit, placeInEdits } from './notation.js';
import { OutPanel } from './out.js';
import { Overview } from './overview.js';
import { PromptPanel } from './prompt.js';
import { readState, writeState } from './state.js';
import { copyText, countText, el, fillSelect } from './text.js';
import { ThemeSwitch } from './theme.js';
import { Why } from './why.js';

const REST = 180; // milliseconds without a move: the hand rests
const LONG_REST = 700; // before text is generated
const URL_REST = 250; // before the address is written
const WORK_DELAY = 120; // before 'computing' is written
const SIDE = 512; // cells of a side: longer maps are pooled
const OVERVIEW_SIDE = 32;
const LONG_TOKENS = 40; // beyond it the figures' colours are on a log scale

const byId = (id) => document.getElementById(id);

class Explorer {
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
        this.connection.onlost = (why) => this.showLost(why);
        this.connection.onback = (info) => this.serverIsBack(info);
    }

    async start() {
        this.state = readState(location.hash);
        const info = this.connection.json('/api/state');
        this.askEarly();
        await this.begin(await info);
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

    async begin(info) {
        this.build(info);
        await this.useModel(this.state.model ?? info.model.name, info.model);
    }

    // ---- parts ----

    build(info) {
        this.info = info;
        this.palette = new Palette(info.colormaps);
        const perHead = info.metrics.filter((metric) => metric.scope === 'head');
        this.metricNames = new Set(perHead.map((metric) => metric.name));
        this.prompt = new PromptPanel(byId('prompt'), { examples: info.default_prompts });
        this.edits = new EditsPanel(byId('edits'), { sites: info.sites, ops: info.ops });
        this.overview = new Overview(byId('overview'), { palette: this.palette, metrics: perHead });
        this.head = new HeadView(byId('head'), { palette: this.palette, maxHeight: () => window.innerHeight - 14 * rem() });
        this.follow = new Follow(byId('follow'), { metrics: perHead });
        this.why = new Why(byId('why'));
        this.out = new OutPanel(byId('out'), { connection: this.connection });
        this.theme = new ThemeSwitch(byId('theme'), () => [this.head, this.overview, this.follow, this.why].forEach((part) => part.forgetTheme()));
        fillSelect(byId('model'), info.models.map(({ name }) => [name, name]));
        this.wire();
    }

    wire() {
        byId('model').addEventListener('change', () => this.useModel(byId('model').value));
        byId('copy-link').addEventListener('click', (event) => this.copyLink(event.currentTarget));
        this.prompt.onchange = (prompt) => this.usePrompt(prompt);
        this.prompt.chips.onpick = (token, add) => this.head.pick({ query: token, key: -1, add });
        this.edits.onchange = (change, moving) => this.useEdits(change, moving);
        this.edits.onhold = (on) => this.head.hold(on);
        this.overview.onopen = (layer, head) => this.openHead(layer, head);
        this.overview.onstate = (state) => { this.state.overview = state; this.keepUrl(); this.askOverview(); };
        this.head.onoptions = (options) => { this.state.view = options; this.overview.setColormap(options.colormap); this.keepUrl(); this.askCommand(); };
        this.head.onpin = (pins) => this.pinned(pins);
        this.head.onzoom = () => this.zoomed();
        this.follow.onmetric = (metric) => { this.state.curve = metric; this.keepUrl(); this.askHead(); this.askCurve(); };
        this.follow.ongenerate = (generate) => { this.state.generate = generate; this.keepUrl(); this.askGenerate(); };
        this.out.request = () => this.figureRequest();
        this.out.onkind = () => this.askCommand();
        this.out.onrecipe = (said) => this.useRecipe(said);
        this.out.catchDrops(byId('drop'));
        window.addEventListener('hashchange', () => this.hashChanged());
        document.addEventListener('keydown', (event) => event.key === 'Escape' && !event.target.closest('.head-view') && this.head.unpin());
    }

    // ---- model and prompt ----

    async useModel(name, known = null) {
        let facts = known && known.name === name ? known : null;
        this.busyWith = facts ? null : `opening ${name}`;
        this.showWork();
        try {
            facts ||= await this.connection.json('/api/model', { model: name });
        } catch (error) {
            this.busyWith = null;
            this.showProblem(`${name}: ${error.message}`);
            if (!this.model) await this.useModel(this.info.model.name, this.info.model);
            else byId('model').value = this.model.name;
            return;
        }
        this.busyWith = null;
        const changed = this.model && this.model.name !== facts.name;
        this.model = facts;
        this.state.model = facts.name === this.info.models[0].name ? null : facts.name;
        byId('model').value = facts.name;
        byId('facts').textContent = factsLine(facts);
        if (changed) Object.assign(this.state, { layer: null, head: null, edits: null });
        document.documentElement.style.setProperty('--overview-width', overviewWidth(facts));
        this.applyState();
    }

    // The state goes into the parts, and what it needs is asked for.
    applyState() {
        const { state, model } = this;
        const fits = state.layer !== null && state.head !== null && state.layer < model.layers && state.head < model.heads;
        if (!fits) state.layer = state.head = null;
        if (!this.metricNames.has(state.overview.metric)) state.overview.metric = 'sink';
        if (!this.metricNames.has(state.curve)) state.curve = 'first_column';
        if (!this.palette.names.includes(state.view.colormap)) state.view.colormap = 'coolwarm';
        this.overview.set(state.overview);
        this.overview.setColormap(state.view.colormap);
        this.head.options = state.view;
        this.follow.set({ metric: state.curve, generate: state.generate, hasLogits: model.has_logits });
        this.prompt.set(state.prompt ?? this.info.prompt, { hasChat: model.has_chat });
        this.tokens = null;
        if (fits) this.showHead();
        this.usePrompt(state.prompt);
    }

    // null: the one that the server was started with.
    usePrompt(prompt) {
        this.state.prompt = prompt;
        this.keepUrl();
        this.markOlder();
        this.channels.tokens.ask({ ...this.runOf(''), prompt: prompt ?? undefined }, (reply) => {
            this.prompt.setError(null);
            this.tokens = { ids: reply.ids, texts: reply.texts, n: reply.n };
            this.currentPrompt = prompt ?? undefined;
            this.baseline = null;
            this.prompt.chips.setTokens(reply.ids, reply.texts);
            this.prompt.chips.setPinned(this.state.view.pins.queries, this.state.view.pins.keys);
            this.later();
            this.askOverview();
            if (this.state.layer !== null) this.askHead();
        }, (error) => this.prompt.setError(error.message));
    }

    // ---- the shown head ----

    openHead(layer, head) {
        const old = { layer: this.state.layer, head: this.state.head };
        if (this.state.follow && old.layer !== null && this.state.edits) {
            this.state.edits = this.state.edits.map((edit) => movedEdit(edit, old, { layer, head }));
        }
        Object.assign(this.state, { layer, head });
        this.showHead();
        this.keepUrl();
        this.askHead();
        this.markOlder();
        this.later();
    }

    showHead() {
        const { layer, head } = this.state;
        this.state.edits ??= [firstEdit(layer, head)];
        this.edits.shown = { layer, head };
        this.edits.set({ edits: this.state.edits, active: this.state.active, follow: this.state.follow });
        this.overview.setOpened(layer, head);
        const title = byId('head-title'), group = Math.floor(head / (this.model.heads / this.model.kv_heads));
        const grouped = this.model.kv_heads < this.model.heads ? ` · key/value head ${group}` : '';
        title.replaceChildren(`Layer ${layer}, head ${head}`, el('span', { class: 'soft' }, grouped.slice(3)));
        document.title = `layer ${layer}, head ${head} · qkv explorer`;
    }

    get editsText() {
        return (this.state.edits ?? []).map((edit) => edit.trim()).filter(Boolean).join(' + ');
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

    // Part of a long map: the zoom, where the whole is pooled.
    zoomWindow() {
        const { zoom } = this.state.view, n = this.tokens.n;
        return zoom && n > SIDE ? zoom : null;
    }

    headBody() {
        const { layer, head } = this.state;
        return { ...this.run, layer, head, side: SIDE, metrics: this.state.curve };
    }

    askHead() {
        if (!this.tokens || this.state.layer === null) return;
        const window = this.zoomWindow(), body = this.headBody();
        if (window) body.window = window;
        const about = this.aboutHead(body, window);
        // The baseline is known while only edits change: half the bytes.
        if (body.edits && this.baseline?.about === about) body.only = 'after';
        this.channels.head.ask(body, (reply) => this.headCame(reply, body, about, this.tokens), (error) => this.headFailed(error));
    }

    headCame(reply, body, about, tokens) {
        const facts = JSON.parse(reply.metadata.qkv);
        if (facts.layer !== this.state.layer || facts.head !== this.state.head || tokens !== this.tokens) return;
        if (reply.before) this.baseline = { about, before: reply.before, sink: reply.sink_before?.values ?? null };
        if (this.baseline?.about !== about) return;
        this.paintHead(reply, facts, Boolean(body.edits));
        this.lastHead = facts;
        const metric = facts.metrics && { before: facts.metrics[0]?.[this.state.curve], after: facts.metrics.at(-1)?.[this.state.curve] };
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
        const { tokens, baseline } = this, [rows, cols] = baseline.before.shape;
        const [r0, , c0] = facts.view;
        this.head.setData({
            queries: tokens.texts, keys: tokens.texts, n: tokens.n, causal: facts.causal, window: facts.window,
            before: baseline.before.values, after: edited ? reply.after?.values ?? null : null,
            rows, cols, step: facts.step, r0, c0,
            sink: baseline.sink ? { before: baseline.sink, after: reply.sink_after?.values ?? null } : null,
        });
    }

    headFailed(error) {
        this.hasError = true; // what comes when the hand rests is not asked for
        if (!this.head.data && this.editsText) this.askBaseline();
        if (error.at !== null && error.at !== undefined) {
            this.edits.setError({ ...placeInEdits(this.state.edits, error.at, error.message), message: error.message });
        } else if (this.state.edits.length) this.edits.setError({ index: this.state.active, at: null, message: error.message });
        else this.showProblem(error.message);
        this.showWork();
    }

    // A link may hold an edit that is wrong here: the model as it is can be shown all the same.
    askBaseline() {
        const body = { ...this.headBody() }, about = this.aboutHead(body, null);
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

    pinned(pins) {
        this.state.view.pins = pins;
        this.prompt.chips.setPinned(pins.queries, pins.keys);
        this.keepUrl();
        this.askWhy();
    }

    zoomed() {
        this.state.view.zoom = this.head.options.zoom;
        this.keepUrl();
        if (this.tokens && this.tokens.n > SIDE) {
            this.baseline = null;
            this.askHead();
        }
    }

    // ---- edits ----

    useEdits({ edits, active, follow }, moving) {
        const same = JSON.stringify(edits) === JSON.stringify(this.state.edits);
        const switched = active !== this.state.active;
        Object.assign(this.state, { edits, active, follow });
        this.keepUrl();
        if (same && !switched) return;
        this.askHead();
        if (!same) this.markOlder();
        this.later(moving ? REST : REST / 2);
    }

    // ---- what comes when the hand rests ----

    after(name, delay, act) {
        clearTimeout(this.timers.get(name));
        this.timers.set(name, setTimeout(() => {
            this.timers.delete(name);
            act();
            this.showWork();
        }, delay));
        this.showWork();
    }

    later(delay = REST) {
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
        const tokens = this.tokens, body = this.overviewBody(this.state.layer === null || this.hasError ? '' : this.editsText);
        const key = JSON.stringify(body);
        if (key === this.overviewKey) return void (byId('overview-older').hidden = true);
        if (key === this.overviewAsked && this.channels.overview.running) return;
        this.overviewAsked = key;
        this.channels.overview.ask(body, (reply) => {
            if (tokens !== this.tokens) return;
            this.overviewKey = key;
            this.overviewCame(reply, tokens);
        }, (error) => !body.edits && this.showProblem(error.message));
    }

    overviewCame(reply, tokens) {
        const maps = reply.after ?? reply.before, { layers, heads, side } = JSON.parse(reply.metadata.qkv);
        this.overview.setData({
            layers, heads, side, maps: maps.values, tv: reply.tv?.values ?? null, causal: this.model.causal, n: tokens.n,
            long: tokens.n > LONG_TOKENS, before: reply.metric_before?.values ?? null, after: reply.metric_after?.values ?? null,
        });
        byId('overview-older').hidden = true;
        this.markFirst('qkv-overview');
        if (this.state.layer === null) this.openStrongest(reply.metric_before?.values, heads);
    }

    // As the figures choose a head: where the first token draws most attention.
    openStrongest(values, heads) {
        let best = 0;
        if (values) values.forEach((value, i) => { if (value > values[best]) best = i; });
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
        this.channels.next.ask({ ...this.run, top: 10 }, (reply) => this.follow.setNext(reply), (error) => this.follow.failed('next', error));
    }

    askCurve() {
        const { layer, head, active, curve } = this.state;
        const wanted = this.follow.curveRequest(this.state.edits ?? [], active);
        if (!wanted || layer === null || !this.tokens) return this.follow.setCurve(null);
        const body = { ...this.runOf(''), ...wanted, layer, head, metric: curve };
        const key = JSON.stringify(body);
        if (key === this.curveKey) return this.follow.markFresh('curve');
        this.channels.curve.ask(body, (reply) => { this.curveKey = key; this.follow.setCurve(reply); },
                                (error) => this.follow.failed('curve', error));
    }

    askGenerate() {
        const { n, temperature, seed } = this.state.generate;
        if (!this.model?.has_logits || !this.tokens || this.hasError) return;
        if (n === 0) return this.follow.markFresh('generate');
        const body = { ...this.run, n, temperature, seed };
        this.follow.generating();
        this.channels.generate.ask(body, (reply) => this.follow.setGenerated(reply, Boolean(body.edits)), (error) => this.follow.failed('generate', error));
    }

    askWhy() {
        const { layer, head } = this.state, { queries, keys } = this.state.view.pins;
        if (!this.tokens || layer === null || queries.length !== 1 || keys.length !== 1) return this.why.show(null);
        if (queries[0] >= this.tokens.n || keys[0] >= this.tokens.n) return this.why.show(null);
        const body = { ...this.run, layer, head, query: queries[0], key: keys[0] }, tokens = this.tokens;
        this.channels.why.ask(body, (reply) => this.why.show(reply, { ...body, tokens: tokens.texts }), (error) => this.why.fail(error));
    }

    // ---- out ----

    figureRequest() {
        const { layer, head, view } = this.state;
        return { ...this.run, model: this.state.model, prompt: this.currentPrompt ?? this.info.prompt, layer, head, view };
    }

    askCommand() {
        if (!this.tokens || this.state.layer === null) return;
        this.channels.command.ask(this.out.dryRequest(this.figureRequest()), (reply) => this.out.setCommand(reply), (error) => this.out.failed(error));
    }

    useRecipe({ state: said, made_with: madeWith, same_model: sameModel }) {
        const state = readState('');
        if (!sameModel) this.showProblem(`This figure was made with ${madeWith}, which is not among the models here; it is shown with ${this.model.name}.`);
        Object.assign(state, said);
        this.state = state;
        this.overviewKey = this.curveKey = null;
        this.useModel(said.model ?? this.model.name);
    }

    // ---- address ----

    keepUrl() {
        this.after('url', URL_REST, () => {
            const hash = writeState(this.state);
            if (hash !== location.hash) history.replaceState(null, '', hash);
            this.writtenHash = location.hash;
        });
    }

    hashChanged() {
        if (location.hash === this.writtenHash) return;
        clearTimeout(this.timers.get('url'));
        this.timers.delete('url');
        this.writtenHash = location.hash;
        this.state = readState(location.hash);
        this.useModel(this.state.model ?? this.info.models[0].name, this.model);
    }

    async copyLink(button) {
        history.replaceState(null, '', writeState(this.state));
        this.writtenHash = location.hash;
        await copyText(location.href, button);
    }

    // ---- what goes on ----

    showWork() {
        const busy = this.connection.busy.size > 0 || this.busyWith;
        this.sayWork(this.connection.lost ? 'not connected' : this.busyWith ?? (busy ? 'computing…' : ''));
        const ready = busy || this.timers.size > 0 || !this.head?.data ? 'no' : 'yes';
        if (document.documentElement.dataset.ready !== ready) document.documentElement.dataset.ready = ready;
    }

    // A little late: what takes a few milliseconds does not flicker.
    sayWork(text) {
        this.workText = text;
        this.workTimer ??= setTimeout(() => {
            this.workTimer = null;
            if (byId('work').textContent !== this.workText) byId('work').textContent = this.workText;
        }, WORK_DELAY);
    }

    showProblem(message) {
        const banner = byId('banner');
        banner.replaceChildren(el('b', {}, 'Problem:'), el('span', {}, message),
            el('button', { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', onclick: () => { banner.hidden = true; } }, '✕'));
        banner.hidden = false;
    }

    showLost(why) {
        const banner = byId('banner');
        if (banner.dataset.why === why && !banner.hidden) return;
        banner.dataset.why = why;
        const address = el('input', { type: 'url', 'aria-label': 'New address', placeholder: 'http://127.0.0.1:…/?token=…' });
        const go = () => {
            try {
                const target = new URL(address.value.trim());
                target.hash = writeState(this.state);
                location.href = target.href;
            } catch {
                address.setAttribute('aria-invalid', 'true');
            }
        };
        const text = why === 'refused'
            ? 'It was started again with another token. Paste the address that it printed; what you see here goes along.'
            : 'It is asked again every few seconds. Nothing on this page is lost: what you change now is computed when it is back.';
        banner.replaceChildren(el('b', {}, 'The server does not answer.'), el('span', {}, text),
            ...(why === 'refused' ? [address, el('button', { type: 'button', class: 'strong', onclick: go }, 'Go on there')] : []));
        banner.hidden = false;
        this.showWork();
    }

    // Wishes that were not answered are sent again.
    serverIsBack(info) {
        const banner = byId('banner');
        banner.hidden = true;
        delete banner.dataset.why;
        if (!this.info) return void this.start();
        this.info.models = info.models;
        fillSelect(byId('model'), info.models.map(({ name }) => [name, name]), this.model?.name);
        for (const channel of Object.values(this.channels)) channel.resume();
        this.later();
        this.showWork();
    }
}

function firstEdit(layer, head) {
    return `q@${layer}.h${head}=scale:0.5`;
}

function rem() {
    return parseFloat(getComputedStyle(document.documentElement).fontSize);
}

function factsLine(facts) {
    const kv = facts.kv_heads < facts.heads ? ` (${facts.kv_heads} key/value)` : '';
    return `${facts.architecture} · ${facts.layers} layers · ${facts.heads} heads${kv} · ${millions(facts.params)} parameters · ${facts.tensor_types}`;
}

function millions(count) {
    if (count >= 1e9) return `${(count / 1e9).toPrecision(2)} billion`;
    return count >= 1e6 ? `${(count / 1e6).toPrecision(3)} million` : countText(count);
}

// Wide enough for the heads of a layer, not wider than the half.
function overviewWidth(facts) {
    return `clamp(17rem, ${(facts.heads * 1.15 + 3).toFixed(1)}rem, 46%)`;
}

const explorer = new Explorer();
window.explorer = explorer; // for the console
explorer.start().catch((error) => {
    if (!explorer.connection.lost) explorer.showProblem(error.message);
    if (!explorer.connection.lost) throw error;
});
