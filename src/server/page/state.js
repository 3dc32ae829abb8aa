// What is looked at, as a plain object, and the same as the URL's fragment: a link or a reload brings it back.
//
//     const state = readState(location.hash);      // what the fragment does not say has its default
//     location.hash = writeState(state);
//
// The fragment is made to be read: #p=The+river...&e=q@3.h1=scale:0.5&l=3&h=1. It never reaches the server.
import { FIGURE_KINDS } from './figure_kinds.js';
import { defaultHeadOptions } from './head_options.js';

export function defaultState() {
    return {
        model: null, // null: the server's first
        prompt: null, // null: the server's; { text } or { chat: { system, date, turns } } or { tokens }, and parse_special
        keptChat: null, // the conversation that the text was made of; in the steps, and in no address: links hold what is seen
        edits: null, // null: one that scales the shown head's query; else a list of texts
        active: 0,
        follow: true, // edits of the shown head go along when another is shown
        layer: null, // null: chosen by the server or the overview
        head: null,
        overview: { mode: 'maps', metric: 'sink', sort: 'place' },
        view: defaultHeadOptions(),
        curve: 'first_column',
        generate: { n: 24, temperature: 0, seed: 0 },
        figure: 'grid', // what is drawn
    };
}

const SHOWN = [
    ['b', 'before'],
    ['a', 'after'],
    ['d', 'diff'],
    ['l', 'lines'],
];

const text = (value) => value;
const natural = (value) => (/^\d{1,9}$/.test(value) ? Number(value) : undefined);
const real = (value) => (value !== '' && Number.isFinite(Number(value)) ? Number(value) : undefined);
const flag = (value) => (value === '1' ? true : value === '0' ? false : undefined);
const oneOf =
    (...names) =>
    (value) =>
        names.includes(value) ? value : undefined;
const naturals = (value) =>
    /^(\d{1,9}(,\d{1,9})*)?$/.test(value) ? value.split(',').filter(Boolean).map(Number) : undefined;
const four = (value) => (naturals(value)?.length === 4 ? naturals(value) : undefined);

// name in the fragment, place in the state, how it is read, how it is written (default: String).
const FIELDS = [
    ['m', 'model', text],
    ['p', 'prompt', (value) => ({ text: value }), (prompt) => prompt?.text],
    [
        'tok',
        'prompt',
        (value) => (naturals(value)?.length ? { tokens: naturals(value) } : undefined),
        (prompt) => prompt?.tokens?.join(','),
    ],
    ['chat', 'prompt', readChat, (prompt) => (prompt?.chat ? JSON.stringify(prompt.chat) : undefined)],
    ['e', 'edits', (value) => (value ? value.split(' + ') : []), (edits) => edits?.join(' + ')],
    ['a', 'active', natural],
    ['fo', 'follow', flag, writeFlag],
    ['l', 'layer', natural],
    ['h', 'head', natural],
    ['o', 'overview.mode', oneOf('maps', 'cells')],
    ['om', 'overview.metric', text],
    ['os', 'overview.sort', oneOf('place', 'metric', 'change')],
    [
        'show',
        'view.show',
        readShown,
        (show) =>
            SHOWN.filter(([, name]) => show[name])
                .map(([letter]) => letter)
                .join(''),
    ],
    ['sc', 'view.scale', oneOf('auto', 'linear', 'log', 'power')],
    ['lo', 'view.low', real],
    ['hi', 'view.high', real],
    ['cm', 'view.colormap', text],
    ['k', 'view.skipKeys', natural],
    ['rn', 'view.renormalise', flag, writeFlag],
    ['mz', 'view.maskedZero', flag, writeFlag],
    ['ln', 'view.lines', oneOf('after', 'before', 'diff')],
    ['pq', 'view.pins.queries', naturals, (list) => list.join(',')],
    ['pk', 'view.pins.keys', naturals, (list) => list.join(',')],
    ['z', 'view.zoom', four, (zoom) => zoom?.join(',')],
    ['fm', 'curve', text],
    ['gn', 'generate.n', natural],
    ['gt', 'generate.temperature', real],
    ['gs', 'generate.seed', natural],
    ['fk', 'figure', oneOf(...FIGURE_KINDS.map(([name]) => name))],
];

function writeFlag(value) {
    return value ? '1' : '0';
}

function readShown(value) {
    return Object.fromEntries(SHOWN.map(([letter, name]) => [name, value.includes(letter)]));
}

function readChat(value) {
    try {
        const { system, date, turns } = JSON.parse(value);
        const good =
            Array.isArray(turns) &&
            turns.length > 0 &&
            turns.every((turn) => typeof turn.role === 'string' && typeof turn.content === 'string');
        if (!good) return undefined;
        const chat = { turns: turns.map(({ role, content }) => ({ role, content })) };
        if (typeof system === 'string') chat.system = system;
        if (typeof date === 'string') chat.date = date;
        return { chat };
    } catch {
        return undefined;
    }
}

function at(state, place) {
    return place.split('.').reduce((value, key) => value?.[key], state);
}

function put(state, place, value) {
    const keys = place.split('.'),
        last = keys.pop();
    keys.reduce((object, key) => object[key], state)[last] = value;
}

// Letters that a fragment may hold stay as they are, so that a link can be read.
function encode(value) {
    return encodeURIComponent(value)
        .replace(/%20/g, '+')
        .replace(/%(3A|40|2F|2C|5B|5D|3D|7B|7D|2A|3F|21|27|28|29|22|3B)/g, (code) => decodeURIComponent(code));
}

function decode(value) {
    try {
        return decodeURIComponent(value.replace(/\+/g, ' '));
    } catch {
        return '';
    }
}

export function writeState(state) {
    const usual = defaultState(),
        parts = [];
    for (const [name, place, , write = (value) => value] of FIELDS) {
        const value = at(state, place);
        if (value === null || value === undefined) continue;
        const written = write(value);
        if (written === undefined || String(written) === String(write(at(usual, place) ?? undefined) ?? '\0'))
            continue;
        parts.push(`${name}=${encode(String(written))}`);
    }
    if (state.prompt?.parse_special) parts.push('sp=1');
    return parts.length ? `#${parts.join('&')}` : '#';
}

// What a fragment says, by the names of the fields.
function readFragment(hash) {
    return new Map(
        hash
            .replace(/^#/, '')
            .split('&')
            .filter(Boolean)
            .map((part) => {
                const equals = part.indexOf('=');
                return equals < 0 ? [part, ''] : [part.slice(0, equals), decode(part.slice(equals + 1))];
            }),
    );
}

// Is there anything in it that this page knows? A link to a place on the page has nothing.
export function saysState(hash) {
    const said = readFragment(hash);
    return FIELDS.some(([name]) => said.has(name));
}

export function readState(hash) {
    const state = defaultState(),
        said = readFragment(hash);
    for (const [name, place, read] of FIELDS) {
        const value = said.has(name) ? read(said.get(name)) : undefined;
        if (value !== undefined) put(state, place, value);
    }
    if (said.get('sp') === '1' && state.prompt) state.prompt.parse_special = true;
    return state;
}
