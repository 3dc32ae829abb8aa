// The live page: holds the state and the parts, and brings changes of one to the others. What is asked for, and what
// happens with the answers, is in requests.js.
import { Banner } from './banner.js';
import { Palette } from './colors.js';
import { first, firstEdit, firstState } from './early.js';
import { EditsPanel } from './edits.js';
import { displayView, figureKind } from './figure_kinds.js';
import { Follow } from './follow.js';
import { HeadView } from './head.js';
import { movedEdit } from './notation.js';
import { OutPanel } from './out.js';
import { Overview } from './overview.js';
import { PromptPanel } from './prompt.js';
import { ExplorerRequests } from './requests.js';
import { readState, saysState, writeState } from './state.js';
import { afterFrame, byId, copyText, countText, el, fillSelect } from './text.js';
import { ThemeSwitch } from './theme.js';
import { Why } from './why.js';

const URL_REST = 250; // milliseconds before the address is written
const WORK_DELAY = 120; // before 'computing' is written

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
            maxHeight: () => window.innerHeight - 14 * rem(),
        });
        this.follow = new Follow(byId('follow'), { metrics: perHead });
        this.why = new Why(byId('why'));
        this.out = new OutPanel(byId('out'), { connection: this.connection });
        this.theme = new ThemeSwitch(byId('theme'), () =>
            [this.head, this.overview, this.follow, this.why].forEach((part) => part.forgetTheme()),
        );
        fillSelect(
            byId('model'),
            info.models.map(({ name }) => [name, name]),
        );
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
        this.overview.onstate = (state) => {
            this.state.overview = state;
            this.keepUrl();
            this.askOverview();
        };
        this.head.onoptions = (options) => {
            this.state.view = options;
            this.overview.setColormap(options.colormap);
            this.keepUrl();
            this.askCommand();
        };
        this.head.onpin = (pins) => this.pinned(pins);
        this.head.onzoom = () => this.zoomed();
        this.follow.onmetric = (metric) => {
            this.state.curve = metric;
            this.keepUrl();
            this.askHead();
            this.askCurve();
        };
        this.follow.ongenerate = (generate) => {
            this.state.generate = generate;
            this.keepUrl();
            this.askGenerate();
        };
        this.out.request = () => this.figureRequest();
        this.out.onkind = (kind) => {
            this.state.figure = kind;
            this.keepUrl();
            this.askCommand();
        };
        this.out.onrecipe = (said) => this.useRecipe(said);
        this.out.catchDrops(byId('drop'));
        window.addEventListener('hashchange', () => this.hashChanged());
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
        this.busyWith = facts ? null : `opening ${name}`;
        this.showWork();
        try {
            facts ||= await this.connection.json('/api/model', { model: name });
        } catch (error) {
            this.busyWith = null;
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
        this.busyWith = null;
        const changed = this.model && this.model.name !== facts.name;
        this.model = facts;
        // Without a name in the first requests there is none in those that follow: they are the same (early.js).
        if (this.state.model !== null || facts.name !== this.info.models[0].name) this.state.model = facts.name;
        byId('model').value = facts.name;
        byId('facts').textContent = factsLine(facts);
        if (changed && !keep) Object.assign(this.state, { layer: null, head: null, edits: null });
        document.documentElement.style.setProperty('--overview-width', overviewWidth(facts));
        this.applyState();
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
        this.overview.setColormap(state.view.colormap);
        this.head.options = state.view;
        this.out.setKind(state.figure);
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
        this.channels.tokens.ask(
            { ...this.runOf(''), prompt: prompt ?? undefined },
            (reply) => {
                this.prompt.setError(null);
                this.tokens = { ids: reply.ids, texts: reply.texts, n: reply.n };
                this.currentPrompt = prompt ?? undefined;
                this.baseline = null;
                this.prompt.chips.setTokens(reply.ids, reply.texts);
                this.prompt.chips.setPinned(this.state.view.pins.queries, this.state.view.pins.keys);
                this.later();
                this.askOverview();
                if (this.state.layer !== null) this.askHead();
            },
            (error) => this.prompt.setError(error.message),
        );
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
        const title = byId('head-title'),
            group = Math.floor(head / (this.model.heads / this.model.kv_heads));
        const grouped = this.model.kv_heads < this.model.heads ? ` · key/value head ${group}` : '';
        title.replaceChildren(`Layer ${layer}, head ${head}`, el('span', { class: 'soft' }, grouped.slice(3)));
        document.title = `layer ${layer}, head ${head} · qkv explorer`;
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
        if (this.isPooled) {
            this.baseline = null;
            this.askHead();
        }
    }

    // ---- edits ----

    useEdits({ edits, active, follow }, moving) {
        const same = JSON.stringify(edits) === JSON.stringify(this.state.edits);
        const switched = active !== this.state.active;
        Object.assign(this.state, { edits, active, follow });
        // First of all what is seen. Where the page can show it, the request waits for the frame; else nothing does.
        if (!same && this.showPreview()) this.askHeadSoon();
        else if (!same || switched) this.askHead();
        this.keepUrl();
        if (same && !switched) return;
        if (!same) this.markOlder();
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
            prompt: this.currentPrompt ?? this.info.prompt,
            layer,
            head,
            view,
        };
    }

    useRecipe({ state: said, display, kind, made_with: madeWith, same_model: sameModel }) {
        const state = readState('');
        if (!sameModel)
            this.banner.showProblem(
                `This figure was made with ${madeWith}, which is not among the models here; it is shown with ${this.model.name}.`,
            );
        const { query, ...rest } = said;
        Object.assign(state, rest, { figure: figureKind(kind, display) });
        Object.assign(state.view, displayView(display));
        if (query !== undefined) state.view.pins = { queries: [query], keys: [] };
        this.state = state;
        this.overviewKey = this.curveKey = null;
        this.useModel(said.model ?? this.model.name, { keep: true });
    }

    // ---- address ----

    // Model and prompt are in it also where they are the server's own: another server may have others.
    fragment() {
        const { state, model, info } = this;
        return writeState({ ...state, model: model?.name ?? state.model, prompt: state.prompt ?? info?.prompt ?? null });
    }

    keepUrl() {
        this.after('url', URL_REST, () => {
            const hash = this.fragment();
            if (hash !== location.hash) history.replaceState(null, '', hash);
            this.writtenHash = location.hash;
        });
    }

    hashChanged() {
        if (location.hash === this.writtenHash) return;
        if (location.hash && !saysState(location.hash)) return this.keepUrl(); // not one of this page's
        clearTimeout(this.timers.get('url'));
        this.timers.delete('url');
        this.writtenHash = location.hash;
        this.state = readState(location.hash);
        this.useModel(this.state.model ?? this.info.models[0].name, { known: this.model, keep: true });
    }

    async copyLink(button) {
        history.replaceState(null, '', this.fragment());
        this.writtenHash = location.hash;
        await copyText(location.href, button);
    }

    // ---- what goes on ----

    showWork() {
        const busy = this.connection.busy.size > 0 || this.busyWith;
        this.sayWork(this.connection.lost ? 'not connected' : (this.busyWith ?? (busy ? 'computing…' : '')));
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
