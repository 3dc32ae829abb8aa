// Edits as text and as fields: SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]=OP[:ARGS]. The text is what counts; the
// server reads it. Fields are for the form: a text that does not look like an edit has none (null), and the form waits.
import { plainNumber } from './text.js';

const EDIT = /^\s*([a-z_]+)(?:@([^.[{=\s]+))?(?:\.([hg])([^[{=\s]+))?(?:\[([^\]]*)\])?(?:\{([^}]*)\})?\s*=\s*([a-z]+)(?::(.*?))?\s*$/;

export function parseEdit(edit) {
    const found = EDIT.exec(edit.replace(/^\s*freeze:(.*)$/, '$1=freeze')); // the same, written in another way
    if (!found) return null;
    const [, site, layers = '', group = '', heads = '', tokens = '', channels = '', op, args = ''] = found;
    return { site, layers, group, heads, tokens, channels, op, args };
}

export function writeEdit({ site, layers, group, heads, tokens, channels = '', op, args }) {
    return (
        site +
        (layers ? `@${layers}` : '') +
        (heads ? `.${group || 'h'}${heads}` : '') +
        (tokens ? `[${tokens}]` : '') +
        (channels ? `{${channels}}` : '') +
        `=${op}` +
        (args === '' ? '' : `:${args}`)
    );
}

// The operations whose first argument is a single number, and so may have a slider.
export const SLIDER_OPS = ['scale'];

export function factorOf(edit) {
    const fields = parseEdit(edit);
    if (!fields || !SLIDER_OPS.includes(fields.op)) return null;
    const value = plainNumber(fields.args);
    return Number.isFinite(value) ? value : null;
}

export function withFactor(edit, factor) {
    return writeEdit({ ...parseEdit(edit), args: factor });
}

// The edits that a text holds: one, several joined by ' + ', or none.
export function splitEdits(text) {
    return text
        .split(' + ')
        .map((part) => part.trim())
        .filter(Boolean);
}

// Where in a list of edits, joined by ' + ', a mistake lies: { index, at, length } in letters of that edit. The server says
// where it begins in the whole text, and how long it is, in bytes.
export function placeInEdits(edits, offset, size) {
    const coder = new TextEncoder(),
        decoder = new TextDecoder();
    let start = 0,
        place = { index: 0, at: 0, length: 0 };
    for (const [index, edit] of edits.entries()) {
        const bytes = coder.encode(edit.trim());
        if (bytes.length === 0) continue; // an empty one is not sent
        if (index > 0 && offset < start) break;
        const from = Math.min(Math.max(offset - start, 0), bytes.length),
            letters = (a, b) => decoder.decode(bytes.subarray(a, b)).length,
            blanks = edit.length - edit.trimStart().length;
        place = { index, at: blanks + letters(0, from), length: letters(from, Math.min(from + size, bytes.length)) };
        start += bytes.length + 3;
    }
    return place;
}

// An edit of exactly one head goes along to another one.
export function movedEdit(edit, from, to) {
    const fields = parseEdit(edit);
    if (
        !fields ||
        fields.layers !== String(from.layer) ||
        fields.heads !== String(from.head) ||
        fields.group !== 'h'
    )
        return edit;
    return writeEdit({ ...fields, layers: String(to.layer), heads: String(to.head) });
}

// A list of numbers in the notation, 3, 2-4 or 0,2,5-7, as pairs [first, last]; null where it is all of them, or not one.
function ranges(text) {
    const parts = text.split(',').map((part) => /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part));
    return parts.every(Boolean) ? parts.map(([, first, last = first]) => [Number(first), Number(last)]) : null;
}

// Has a model the layers and heads that an edit names? Of a text that does not look like an edit the server knows more.
export function fitsModel(edit, { layers, heads, kv_heads: groups }) {
    const fields = parseEdit(edit),
        within = (text, count) => (ranges(text) ?? []).every(([, last]) => last < count);
    return !fields || (within(fields.layers, layers) && within(fields.heads, fields.group === 'g' ? groups : heads));
}

// May an edit change something at this site of a head?
export function reachesHead(edit, site, { layer, head }, { heads, kv_heads: groups }) {
    const fields = parseEdit(edit),
        has = (text, number) => (ranges(text) ?? [[0, Infinity]]).some(([first, last]) => first <= number && number <= last);
    if (!fields || fields.site !== site || !has(fields.layers, layer)) return false;
    return has(fields.heads, fields.group === 'g' ? Math.floor(head / (heads / groups)) : head);
}
