// The live page: holds the state and the parts, and brings changes of one to the others. What is asked for, and what
// happens with the answers, is in requests.js.
import { Banner } from './banner.js';
import { Belongings } from './belongs.js';
import { Palette } from './colors.js';
import { first, firstEdit, firstState } from './early.js';
import { EditsPanel } from './edits.js';
import { displayView, figureKind } from './figure_kinds.js';
import { Follow } from './follow.js';
import { HeadView } from './head.js';
import { fitsModel, movedEdit } from './notation.js';
import { OutPanel } from './out.js';
import { Overview } from './overview.js';
import { PromptPanel } from './prompt.js';
import { ExplorerRequests } from './requests.js';
import { readState, saysState, writeState } from './state.js';
import { Steps } from './steps.js';
import { afterFrame, byId, copyText, countText, el, fillSelect } from './text.js';
import { ThemeSwitch } from './theme.js';
import { Why } from './why.js';

const URL_REST = 250; // milliseconds before the address is written
const WORK_DELAY = 120; // before 'computing' is written
const MANY_HEADS = 16; // beyond it the overview needs the room of a column
const HEAD_REST = 250; // without an answer before the maps that follow a slider are marked as older

class Explorer extends ExplorerRequests {
    constructor() {
        super();
        this.banner = new Banner(byId('banner'), () => this.fragment());
        this.connection.onlost = (why) => {
            this.banner.showLost(why);
            this.showWork();
        };
        this.connection.onback = (info) => this.serverIsBack(info);
    }

    async start() {
        this.state = firstState;
        this.currentPrompt = firstState.prompt ?? undefined;
        await this.begin(await first.info);
    }

    async begin(info) {
        this.build(info);
        await this.useModel(this.state.model ?? info.model.name, { known: info.model });
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
        this.head = new HeadView(byId('head'), {
            palette: this.palette,
            maxHeight: () => window.innerHeight - 17 * rem(),
        });
        this.follow = new Follow(byId('follow'), { metrics: perHead });
        this.why = new Why(byId('why'));
        this.out = new OutPanel(byId('out'), { connection: this.connection });
        this.shown = this.buildShown();
        this.theme = new ThemeSwitch(byId('theme'), () =>
            [this.head, this.overview, this.follow, this.why].forEach((part) => part.forgetTheme()),
        );
        this.steps = new Steps({ undo: byId('undo'), redo: byId('redo') });
        fillSelect(
            byId('model'),
            info.models.map(({ name }) => [name, name]),
        );
        this.wire();
    }

    // What is marked where it belongs to another prompt or edit than those that are chosen.
    buildShown() {
        const { follow, why, overview, head, edits } = this,
            part = (mark, ...contents) => ({ mark, contents }),
            followPart = ({ older, content }) => part(older, content);
        return new Belongings({
            tokens: part(byId('tokens-older'), this.prompt.chips.list),
            overview: part(byId('overview-older'), overview.scroller, overview.tip),
            head: { ...part(byId('head-older'), head.panels, head.numbers.lines, head.numbers.profile.element), rest: HEAD_REST },
            report: { mark: byId('edits-older'), contents: edits.reportNodes, rest: HEAD_REST },
            curve: followPart(follow.parts.curve),
            next: followPart(follow.parts.next),
            losses: part(null, this.prompt.chips.tip, follow.next.loss),
            generate: followPart(follow.parts.generate),
            why: part(why.older, why.canvas, why.tip, why.sums, why.written),
            out: part(byId('out-older'), ...Object.values(this.out.lines)),
        });
    }

    wire() {
        byId('model').addEventListener('change', () => this.useModel(byId('model').value));
        byId('copy-link').addEventListener('click', (event) => this.copyLink(event.currentTarget));
        this.prompt.onchange = (prompt, typing) => {
            this.steps.take(typing ? 'prompt' : null);
            this.state.keptChat = this.prompt.keptChat;
            this.usePrompt(prompt);
        };
        this.prompt.chips.onpick = (token, add) => this.head.pick({ query: token, key: -1, add });
        this.edits.onchange = (change, moving, group) => this.useEdits(change, moving, group);
        this.edits.onhold = (on) => {
            this.steps.hold(on);
            this.head.hold(on);
        };
        this.overview.onopen = (layer, head) => {
            if (layer !== this.state.layer || head !== this.state.head) this.steps.take();
            this.openHead(layer, head);
        };
        this.overview.onstate = (state) => {
            this.steps.take('overview');
            this.state.overview = state;
            this.keepUrl();
            this.askOverview();
        };
        this.head.onoptions = (options) => {
            const hidden = this.state.view.skipKeys;
            this.steps.take('view');
            this.state.view = options;
            this.overview.setLook(options);
            this.keepUrl();
            if (hidden !== options.skipKeys) this.keysHidden();
            this.askCommand();
        };
        this.head.onpin = (pins) => this.pinned(pins);
        this.head.onzoom = () => {
            this.steps.take('view');
            this.zoomed();
        };
        this.follow.onmetric = (metric) => {
            this.steps.take('curve');
            this.state.curve = metric;
            this.keepUrl();
            this.askHead();
            this.askCurve();
        };
        this.follow.ongenerate = (generate) => {
            this.steps.take('generate');
            this.state.generate = generate;
            this.keepUrl();
            this.askGenerate();
        };
        this.out.request = () => this.figureRequest();
        this.out.onkind = (kind) => {
            this.steps.take('figure');
            this.state.figure = kind;
            this.keepUrl();
            this.askCommand();
        };
        this.out.onformat = () => this.askCommand();
        this.out.onrecipe = (said) => this.useRecipe(said);
        this.out.catchDrops(byId('drop'));
        this.steps.fragment = () => this.fragment();
        this.steps.kept = () => ({ keptChat: this.state.keptChat });
        this.steps.onmove = (hash, kept) => this.showAddress(hash, kept);
        this.steps.begin();
        this.state.keptChat = history.state.keptChat ?? null; // a reload keeps the steps
        // As a plain link it would replace the fragment, which holds all that is looked at.
        document.querySelector('.skip').addEventListener('click', (event) => {
            event.preventDefault();
            byId('head-title').focus();
            byId('head-title').scrollIntoView();
        });
        document.addEventListener(
            'keydown',
            (event) => event.key === 'Escape' && !event.target.closest('.head-view') && this.head.unpin(),
        );
    }

    // ---- model and prompt ----

    // known: facts of a model that may be this one. keep: layer, head and edits were chosen for it.
    async useModel(name, { known = null, keep = false } = {}) {
        let facts = known && known.name === name ? known : null;
        const opening = this.beginOpening(name, Boolean(this.model) && !keep && !facts);
        try {
            facts ||= await this.connection.json('/api/model', { model: name });
        } catch (error) {
            if (!this.endOpening(opening)) return;
            const instead = (this.model ?? this.info.model).name;
            this.banner.showProblem(`${name}: ${error.message}; ${instead} is shown in its place.`);
            if (!this.model) await this.useModel(this.info.model.name, { known: this.info.model });
            else byId('model').value = this.model.name;
            // A link may name a model that is not here: what else it says is shown with the one that is.
            if (this.state.model !== null && this.state.model !== this.model.name) {
                this.state.model = this.model.name;
                this.applyState();
            }
            return;
        }
        if (!this.endOpening(opening)) return;
        const changed = this.model && this.model.name !== facts.name;
        if (changed && !keep) {
            this.steps.take();
            this.carryOver(facts);
        }
        if (changed) this.forgetShown();
        this.model = facts;
        // Without a name in the first requests there is none in those that follow: they are the same (early.js).
        if (this.state.model !== null || facts.name !== this.info.models[0].name) this.state.model = facts.name;
        byId('model').value = facts.name;
        byId('facts').textContent = factsLine(facts);
        document.documentElement.style.setProperty('--overview-width', overviewWidth(facts));
        document.documentElement.classList.toggle('many-heads', facts.heads > MANY_HEADS);
        this.applyState();
    }

    // A model takes a while to open. Whatever is chosen or undone meanwhile ends that: its answer is then not used.
    // byHand: it is not a step yet, and Undo leaves the model that is shown.
    beginOpening(name, byHand) {
        this.opening = { name };
        this.busyWith = this.model?.name === name ? null : `opening ${name}`;
        this.steps.setPending(byHand ? () => this.dropOpening() : null);
        this.showWork();
        return this.opening;
    }

    // Is it still the one that is wanted?
    endOpening(opening) {
        if (this.opening !== opening) return false;
        this.busyWith = this.opening = null;
        this.steps.setPending(null);
        return true;
    }

    dropOpening() {
        this.endOpening(this.opening);
        byId('model').value = this.model.name;
        this.showWork();
    }

    // To another model go the shown head and the edits, as far as it has such layers and heads. Edits of a shown head that
    // it has not got go to the one that is shown in its place.
    carryOver(model) {
        const { state } = this,
            { layer, head } = state;
        const fits = layer === null || (layer < model.layers && head < model.heads);
        const moves = (edit) => !fits && state.follow && movedEdit(edit, { layer, head }, { layer: 0, head: 0 }) !== edit;
        this.tokensBefore = this.tokens;
        if (!fits) {
            this.shownBefore = { layer, head };
            state.layer = state.head = null;
        }
        const [left, kept] = [[], []];
        for (const edit of state.edits ?? []) (fitsModel(edit, model) || moves(edit) ? kept : left).push(edit);
        if (!left.length) return;
        state.edits = kept;
        state.active = Math.max(0, Math.min(state.active, kept.length - 1));
        this.banner.showNotice(
            `Left out, as ${model.name} has ${model.layers} layers of ${model.heads} heads: ${left.join(', ')}. Undo brings back the other model with its edits.`,
        );
    }

    // The state goes into the parts, and what it needs is asked for.
    applyState() {
        const { state, model } = this;
        const fits =
            state.layer !== null && state.head !== null && state.layer < model.layers && state.head < model.heads;
        if (!fits) state.layer = state.head = null;
        if (!this.metricNames.has(state.overview.metric)) state.overview.metric = 'sink';
        if (!this.metricNames.has(state.curve)) state.curve = 'first_column';
        if (!this.palette.names.includes(state.view.colormap)) state.view.colormap = 'coolwarm';
        this.overview.set(state.overview);
        this.overview.setLook(state.view);
        this.head.options = state.view;
        this.out.setKind(state.figure);
        this.follow.set({ metric: state.curve, generate: state.generate, hasLogits: model.has_logits });
        this.prompt.set(state.prompt ?? this.info.prompt, { hasChat: model.has_chat, keptChat: state.keptChat });
        this.tokens = null;
        byId('edits').inert = !fits; // there is no head yet that they could be edits of
        if (fits) this.showHead();
        else {
            byId('head-name').textContent = 'Head';
            if (state.edits) this.showEdits();
        }
        this.usePrompt(state.prompt);
    }

    // null: the one that the server was started with.
    usePrompt(prompt) {
        this.state.prompt = prompt;
        this.keepUrl();
        this.channels.tokens.ask(
            { ...this.runOf(''), prompt: prompt ?? undefined },
            (reply) => {
                this.showPromptError(null);
                this.movePins(reply.texts);
                this.tokens = { ids: reply.ids, texts: reply.texts, n: reply.n };
                this.currentPrompt = prompt ?? undefined;
                this.baseline = null;
                this.prompt.chips.setTokens(reply.ids, reply.texts);
                this.prompt.chips.setPinned(this.state.view.pins.queries, this.state.view.pins.keys);
                this.shown.set('tokens', this.aboutPart('tokens', this.runOf('')));
                this.later();
                // The shown head first: all the others come when the slider rests.
                if (this.state.layer === null) this.askOverview();
                else this.askHead();
            },
            (error) => this.showPromptError(error.message),
        );
    }

    showPromptError(message) {
        this.promptError = message;
        this.prompt.setError(message);
    }

    // What is pinned are tokens, not numbers: in another prompt they are where these tokens are. Those of a state that was
    // brought back are that state's own.
    movePins(texts) {
        const { view } = this.state,
            before = (this.tokens ?? this.tokensBefore)?.texts;
        this.tokensBefore = null;
        if (!before) return;
        const { queries, keys } = view.pins;
        view.pins = { queries: movedTokens(queries, before, texts), keys: movedTokens(keys, before, texts) };
        this.head.settings.pins = structuredClone(view.pins); // painted with the maps that they belong to
        if (before.length !== texts.length) view.zoom = this.head.settings.zoom = null;
        this.keepUrl();
    }

    // ---- the shown head ----

    openHead(layer, head) {
        const old = this.shownBefore ?? { layer: this.state.layer, head: this.state.head };
        this.shownBefore = null;
        if (this.state.follow && old.layer !== null && this.state.edits) {
            this.state.edits = this.state.edits.map((edit) => movedEdit(edit, old, { layer, head }));
        }
        Object.assign(this.state, { layer, head });
        this.showHead();
        this.keepUrl();
        this.askHead();
        this.later();
    }

    showHead() {
        const { layer, head } = this.state;
        this.state.edits ??= [firstEdit(layer, head)];
        Object.assign(this.edits, { shown: { layer, head }, model: this.model });
        this.showEdits();
        this.overview.setOpened(layer, head);
        byId('edits').inert = false;
        const group = Math.floor(head / (this.model.heads / this.model.kv_heads));
        const grouped = this.model.kv_heads < this.model.heads ? `key/value head ${group}` : '';
        byId('head-name').replaceChildren(`Layer ${layer}, head ${head} `, el('span', { class: 'soft' }, grouped));
        document.title = `layer ${layer}, head ${head} · qkv explorer`;
    }

    showEdits() {
        const { edits, active, follow } = this.state;
        this.edits.set({ edits, active, follow, hasGate: this.model.has_gate });
    }

    // The maps may still be those of a longer prompt: tokens that the chosen one has not got are not pinned.
    pinned({ queries, keys }) {
        const inside = (list) => list.filter((token) => !this.tokens || token < this.tokens.n),
            pins = { queries: inside(queries), keys: inside(keys) };
        this.state.view.pins = pins;
        this.head.settings.pins = structuredClone(pins);
        this.prompt.chips.setPinned(pins.queries, pins.keys);
        this.keepUrl();
        this.askWhy();
    }

    zoomed() {
        this.state.view.zoom = this.head.options.zoom;
        this.keepUrl();
        this.askPart();
    }

    // Another part of a long map is pooled anew.
    askPart() {
        if (!this.isPooled) return;
        this.baseline = null;
        this.askHead();
    }

    keysHidden() {
        this.askPart();
        this.askOverview();
    }

    // ---- edits ----

    useEdits({ edits, active, follow }, moving, group) {
        const same = JSON.stringify(edits) === JSON.stringify(this.state.edits);
        if (!same) this.steps.take(group);
        const switched = active !== this.state.active;
        Object.assign(this.state, { edits, active, follow });
        // First of all what is seen. Where the page can show it, the request waits for the frame; else nothing does.
        if (!same && this.showPreview()) this.askHeadSoon();
        else if (!same || switched) this.askHead();
        this.keepUrl();
        if (same && !switched) return;
        this.later(moving);
    }

    askHeadSoon() {
        if (this.headAsked) return;
        this.headAsked = true;
        afterFrame(() => {
            this.headAsked = false;
            this.askHead();
        });
    }

    // ---- out ----

    figureRequest() {
        const { layer, head, view } = this.state;
        return {
            ...this.run,
            model: this.state.model,
            modelName: this.model.name,
            prompt: this.currentPrompt ?? this.info.prompt,
            layer,
            head,
            view,
        };
    }

    useRecipe({ state: said, display, kind, made_with: madeWith, same_model: sameModel }) {
        const state = readState('');
        this.steps.take();
        if (!sameModel)
            this.banner.showNotice(
                `This figure was made with ${madeWith}, which is not among the models here; it is shown with ${this.model.name}.`,
            );
        const { query, ...rest } = said;
        Object.assign(state, rest, { figure: figureKind(kind, display) });
        Object.assign(state.view, displayView(display));
        if (query !== undefined) state.view.pins = { queries: [query], keys: [] };
        this.state = state;
        this.useModel(said.model ?? this.model.name, { keep: true });
    }

    // ---- address ----

    // Model and prompt are in it also where they are the server's own: another server may have others.
    fragment() {
        const { state, model, info } = this;
        return writeState({ ...state, model: model?.name ?? state.model, prompt: state.prompt ?? info?.prompt ?? null });
    }

    keepUrl() {
        this.after('url', URL_REST, () => this.steps.write(this.fragment()));
    }

    // Another step, or a link that was followed on this page.
    showAddress(hash, { keptChat = null }) {
        if (hash && !saysState(hash)) return this.keepUrl(); // not one of this page's
        clearTimeout(this.timers.get('url'));
        this.timers.delete('url');
        this.state = { ...readState(hash), keptChat };
        this.shownBefore = this.tokensBefore = null;
        this.useModel(this.state.model ?? this.info.models[0].name, { known: this.model, keep: true });
    }

    async copyLink(button) {
        this.steps.write(this.fragment());
        await copyText(location.href, button);
    }

    // ---- work under way ----

    showWork() {
        const busy = this.connection.busy.size > 0 || this.busyWith;
        this.sayWork(this.connection.lost ? 'not connected' : (this.busyWith ?? (busy ? 'computing…' : '')));
        this.checkShownOnce();
        const hasMaps = Boolean(this.head?.data),
            nothing = !hasMaps && this.promptError ? `There is nothing to show: ${this.promptError}.` : '';
        if (this.nothing !== nothing) this.showNothing(nothing);
        const ready = busy || this.timers.size > 0 || !(hasMaps || nothing) ? 'no' : 'yes';
        if (document.documentElement.dataset.ready !== ready) document.documentElement.dataset.ready = ready;
    }

    // The prompt cannot be used, and nothing else is there: the page says so where the maps would be.
    showNothing(text) {
        this.nothing = text;
        byId('nothing').textContent = text;
        byId('nothing').hidden = !text;
        for (const part of document.querySelectorAll('#head, main > .card:not(.area-head)')) part.hidden = Boolean(text);
    }

    // A little late: what takes a few milliseconds does not flicker.
    sayWork(text) {
        this.workText = text;
        this.workTimer ??= setTimeout(() => {
            this.workTimer = null;
            if (byId('work').textContent !== this.workText) byId('work').textContent = this.workText;
        }, WORK_DELAY);
    }

    // Wishes that were not answered are sent again.
    serverIsBack(info) {
        this.banner.hide();
        if (!this.info) return void this.begin(info);
        const differs = JSON.stringify([info.model.name, info.prompt]) !== JSON.stringify([this.info.model.name, this.info.prompt]);
        if (differs && this.model) {
            // It was started anew with a model or prompt of its own: what is shown here has to be named from now on.
            this.state.model ??= this.model.name;
            this.state.prompt ??= this.info.prompt;
        }
        Object.assign(this.info, { models: info.models, model: info.model, prompt: info.prompt });
        fillSelect(
            byId('model'),
            info.models.map(({ name }) => [name, name]),
            this.model?.name,
        );
        if (differs && this.model) return void this.useModel(this.state.model, { keep: true });
        for (const channel of Object.values(this.channels)) channel.resume();
        this.later();
        this.showWork();
    }
}

// Where tokens of a prompt are in another one: those before and after what was changed. The others are gone.
function movedTokens(tokens, before, after) {
    const most = Math.min(before.length, after.length);
    let first = 0,
        last = 0;
    while (first < most && before[first] === after[first]) first++;
    while (last < most - first && before.at(-1 - last) === after.at(-1 - last)) last++;
    return tokens
        .filter((token) => token < first || (token >= before.length - last && token < before.length))
        .map((token) => (token < first ? token : token + after.length - before.length));
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
    return `clamp(20rem, ${(facts.heads * 1.15 + 3).toFixed(1)}rem, 46%)`;
}

const explorer = new Explorer();
window.explorer = explorer; // for the console
explorer.start().catch((error) => {
    if (!explorer.connection.lost) explorer.banner.showProblem(error.message);
    if (!explorer.connection.lost) throw error;
});
