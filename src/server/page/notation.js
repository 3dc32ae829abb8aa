// Edits as text and as fields: SITE@LAYERS[.HEADS][[TOKENS]][{CHANNELS}]=OP[:ARGS]. The text is what counts; the
// server reads it. Fields are for the form: a text that does not look like an edit has none (null), and the form waits.

const EDIT = /^\s*([a-z_]+)(?:@([^.[{=\s]+))?(?:\.([hg])([^[{=\s]+))?(?:\[([^\]]*)\])?(?:\{([^}]*)\})?\s*=\s*([a-z]+)(?::(.*?))?\s*$/;

export function parseEdit(edit) {
    const found = EDIT.exec(edit);
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
    const value = Number(fields.args);
    return fields.args.trim() !== '' && Number.isFinite(value) ? value : null;
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

// Where in a list of edits, joined by ' + ', an error lies: { index, at, length } in letters. The server says at which
// byte of the whole text the edit begins; the message quotes what is wrong in it, or names it by its number.
export function placeInEdits(edits, offset, message) {
    const coder = new TextEncoder();
    let start = 0,
        index = 0;
    edits.every((edit, i) => {
        const size = coder.encode(edit.trim()).length;
        if (size === 0) return true; // an empty one is not sent
        index = i;
        start += size + 3;
        return offset >= start;
    });
    return { index, ...culprit(edits[index] ?? '', message) };
}

function culprit(edit, message) {
    const said = message.replace(/^edit '.*?': /, '');
    const quoted = [...said.matchAll(/'([^']+)'/g)].map(([, word]) => word);
    for (const word of quoted) {
        // Behind the `=` first: what is wrong there may also be a letter of the site.
        for (const from of [edit.indexOf('=') + 1, 0]) {
            const at = edit.indexOf(word, from);
            if (at >= 0) return { at, length: word.length };
        }
    }
    const named = /\b(layer|head|token|key|query)s? (-?\d+)/.exec(said);
    const marks = { layer: '@', head: '.', token: '[', key: '[', query: '[' };
    if (named) {
        const at = edit.indexOf(named[2], edit.indexOf(marks[named[1]]));
        if (at >= 0) return { at, length: named[2].length };
    }
    const first = said.split(' ', 1)[0], // 'nan is not a finite number'
        at = edit.lastIndexOf(first);
    return at > edit.indexOf('=') ? { at, length: first.length } : { at: 0, length: edit.length };
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
