// Edits as text and as fields: SITE@LAYERS[.HEADS][[TOKENS]]=OP[:ARGS]. The text is what counts; the server reads it.
// Fields are for the form: a text that does not look like an edit has none (null), and the form waits.

const EDIT = /^\s*([a-z_]+)(?:@([^.[=\s]+))?(?:\.([hg])([^[=\s]+))?(?:\[([^\]]*)\])?\s*=\s*([a-z]+)(?::(.*?))?\s*$/;

export function parseEdit(edit) {
    const found = EDIT.exec(edit);
    if (!found) return null;
    const [, site, layers = '', group = '', heads = '', tokens = '', op, args = ''] = found;
    return { site, layers, group, heads, tokens, op, args };
}

export function writeEdit({ site, layers, group, heads, tokens, op, args }) {
    return site + (layers ? `@${layers}` : '') + (heads ? `.${group || 'h'}${heads}` : '') + (tokens ? `[${tokens}]` : '') +
        `=${op}` + (args === '' ? '' : `:${args}`);
}

// The operations whose first argument is a single number, and so may have a slider.
export const SLIDER_OPS = ['scale'];

export function factorOf(edit) {
    const fields = parseEdit(edit);
    if (!fields || !SLIDER_OPS.includes(fields.op)) return null;
    const value = Number(fields.args);
    return fields.args.trim() !== '' && Number.isFinite(value) ? value : null;
}

export function withFactor(edit, factor) {
    return writeEdit({ ...parseEdit(edit), args: factor });
}

// Where in a list of edits, joined by ' + ', a byte offset of the whole text lies: { index, at }, at in letters.
export function placeInEdits(edits, offset) {
    const coder = new TextEncoder();
    let start = 0;
    for (let index = 0; index < edits.length; index++) {
        const bytes = coder.encode(edits[index]);
        if (offset <= start + bytes.length || index === edits.length - 1) {
            const before = bytes.subarray(0, Math.max(0, offset - start));
            return { index, at: new TextDecoder().decode(before).length };
        }
        start += bytes.length + 3;
    }
    return { index: 0, at: 0 };
}

// An edit of exactly one head goes along to another one.
export function movedEdit(edit, from, to) {
    const fields = parseEdit(edit);
    if (!fields || fields.layers !== String(from.layer) || fields.heads !== String(from.head) || fields.group !== 'h') return edit;
    return writeEdit({ ...fields, layers: String(to.layer), heads: String(to.head) });
}
