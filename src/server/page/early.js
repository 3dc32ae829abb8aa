// What is seen first is asked for before the rest of the page is made. requests.js continues with the connection, the
// channels and what is under way.
import { Channel, Connection } from './api.js';
import { readState } from './state.js';

export const SIDE = 512; // cells of a side: longer maps are pooled

export function firstEdit(layer, head) {
    return `q@${layer}.h${head}=scale:0.5`;
}

// ---- what requests say ----

// What names the run: model, prompt, edits. Without a name the server takes its first model, and the prompt that it was
// started with.
export function runBody({ model }, prompt, edits) {
    const run = { prompt };
    if (model !== null) run.model = model;
    return edits === '' ? run : { ...run, edits };
}

// Of a page without a fragment this is what the server expects, and has computed (job_runner.c).
// tokens: of the prompt, where they are known: at least one key is left.
export function overviewBody(state, prompt, edits, tokens = Infinity) {
    const body = { ...runBody(state, prompt, edits), metric: state.overview.metric },
        skip = Math.min(state.view.skipKeys, tokens - 1);
    return skip > 0 ? { ...body, skip_keys: skip } : body;
}

export function headBody(state, prompt, edits) {
    const { layer, head, curve } = state;
    return { ...runBody(state, prompt, edits), layer, head, side: SIDE, metrics: curve };
}

export function editsOf({ edits }) {
    return (edits ?? []).map((edit) => edit.trim()).filter(Boolean);
}

// ---- the first ones ----

export class FirstRequests {
    constructor() {
        this.connection = new Connection();
        this.channels = {
            tokens: new Channel(this.connection, '/api/tokens', { slot: 'tokens' }),
            head: new Channel(this.connection, '/api/head', { slot: 'head', follows: true, read: 'tensors' }),
            overview: new Channel(this.connection, '/api/overview', { slot: 'overview', read: 'tensors' }),
        };
    }

    // The state that the address says; what it needs is under way then.
    start(hash) {
        const state = readState(hash),
            { channels } = this,
            prompt = state.prompt ?? undefined;
        // What takes no time goes first: the page is made of it while the maps are computed.
        this.info = this.connection.json('/api/state');
        this.info.catch(() => {}); // who takes it says so
        channels.tokens.prefetch(runBody(state, prompt, ''));
        if (state.layer === null || state.head === null) channels.overview.prefetch(overviewBody(state, prompt, ''));
        else {
            state.edits ??= [firstEdit(state.layer, state.head)];
            channels.head.prefetch(headBody(state, prompt, editsOf(state).join(' + ')));
        }
        return state;
    }
}

export const first = new FirstRequests();
export const firstState = first.start(location.hash);
