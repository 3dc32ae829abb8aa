// Small helpers of all parts: elements, numbers as text, tokens as text.
//
// Nothing here or elsewhere writes markup: text goes in by textContent, so a token `<script>` stays text.

export function byId(id) {
    return document.getElementById(id);
}

// el('button', { class: 'quiet', 'aria-label': 'Close', onclick: f }, 'text', child, ...)
export function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    setAttributes(node, attributes);
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
}

export function svgEl(name, attributes = {}, ...children) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', name);
    setAttributes(node, attributes);
    node.append(...children);
    return node;
}

function setAttributes(node, attributes) {
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
        else if (value === true) node.setAttribute(key, '');
        else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
    }
}

// A select's options from [value, text] pairs.
export function fillSelect(select, pairs, chosen) {
    select.replaceChildren(...pairs.map(([value, text]) => el('option', { value }, text)));
    if (chosen !== undefined) select.value = chosen;
}

// *text* is in italics, \* is an asterisk.
export function titleNodes(text) {
    const nodes = [];
    let italic = false;
    for (const part of text.match(/\\\*|\*|[^*\\]+|\\/g) ?? []) {
        if (part === '*') italic = !italic;
        else {
            const plain = (part === '\\*' ? '*' : part).replace(/(\d)e-(\d)/g, '$1e\u2011$2').replace(/ = /g, '\u00a0=\u00a0');
            nodes.push(italic ? el('em', {}, plain) : plain);
        }
    }
    return nodes;
}

export function plainTitle(text) {
    return text.replace(/\\\*|\*/g, (found) => (found === '*' ? '' : '*'));
}

// Parts of a line that a gap keeps apart: a space between them keeps them apart for those who listen, or copy the text.
export function listed(parts) {
    return parts.flatMap((part, i) => (i ? [' ', part] : [part]));
}

const MARKS = new Map([
    ['\n', '↵'],
    ['\r', '␍'],
    ['\t', '⇥'],
    ['\u00a0', '⍽'],
]);

// Of these nothing is seen, or only a gap: blanks other than the ordinary one, controls, and marks of format, some of
// which turn the direction of what follows. Signs that stand over numbers (U+0600 and others) are of that kind, and seen.
const UNSEEN = /[\p{Zs}\p{Zl}\p{Zp}\p{Cf}\p{Cc}\u2800\u3164\uffa0]/u;
const SEEN_FORMAT = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u;
const PICTURE = /\p{Extended_Pictographic}/u;
const JOINING = /(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Han}])[\p{L}\p{M}]/u;
const VARIATION = /[\ufe00-\ufe0f]/u;

// What belongs to the sign before it: a joiner within an emoji or a word of a joining script, the letters of a flag.
function isPartOf(c, last, next) {
    if (c === '\u200d' && (PICTURE.test(last) || /[\ufe0f\u{1f3fb}-\u{1f3ff}]/u.test(last)) && PICTURE.test(next)) return true;
    if (c === '\u200c' || c === '\u200d') return JOINING.test(last) && JOINING.test(next);
    return /[\u{e0020}-\u{e007f}]/u.test(c) && /[\u{1f3f4}\u{e0020}-\u{e007e}]/u.test(last);
}

// A token as it is read: controls as signs, what is not seen as its code, blanks inside kept.
function visibleText(text) {
    const letters = [...text];
    return letters
        .map((c, i) => {
            const code = c.codePointAt(0);
            if (MARKS.has(c)) return MARKS.get(c);
            if (code < 32) return String.fromCharCode(0x2400 + code);
            if (code === 127) return '␡';
            const alone = i === 0 && VARIATION.test(c); // of the sign in another token
            const unseen = c !== ' ' && UNSEEN.test(c) && !SEEN_FORMAT.test(c);
            if (!alone && (!unseen || isPartOf(c, letters[i - 1] ?? '', letters[i + 1] ?? ''))) return c;
            return '\\u' + code.toString(16).toUpperCase().padStart(4, '0');
        })
        .join('');
}

// A number as people write it, NaN else: Number() also takes 0x10, and nothing at all for 0.
export function plainNumber(text) {
    const plain = text.trim().replace('−', '-');
    return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

// For axes, as the figures have it: without the blank in front, cut where it is long.
export function axisLabel(text, most = 14) {
    const shown = /^ +$/.test(text) ? '␣'.repeat(text.length) : visibleText(text.replace(/^ /, ''));
    const letters = [...shown];
    return letters.length > most ? letters.slice(0, most - 1).join('') + '…' : shown;
}

// For chips and tables: every blank is seen.
export function tokenText(text) {
    return visibleText(text).replace(/ /g, '·');
}

// Between isolates a token of another direction does not move its neighbours on a canvas.
export function isolated(text) {
    return '\u2068' + text + '\u2069';
}

// A token in an element: <bdi> isolates it, dir=auto finds its direction.
export function tokenNode(text, name = 'bdi') {
    return el(name, { class: 'token', dir: 'auto' }, tokenText(text) || '∅');
}

// Four significant digits, as the tables of the program have.
export function numberText(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return '–';
    if (value === 0) return '0';
    if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
    const size = Math.abs(value);
    const text = size >= 1e6 || size < 1e-4 ? shortPower(value, digits) : String(Number(value.toPrecision(digits)));
    return text.replace('-', value < 0 && text.startsWith('-') ? '−' : '-');
}

export function shortPower(value, digits) {
    const [mantissa, power] = value.toExponential(digits - 1).split('e');
    return Number(mantissa) + 'e' + Number(power);
}

// With its sign, for changes.
export function changeText(value, digits = 3) {
    const text = numberText(value, digits);
    return value > 0 ? '+' + text : text;
}

// A factor as an edit's text has it: short, and read back as the same number.
export function factorText(value) {
    if (value === 0) return '0';
    const size = Math.abs(value);
    if (size < 1e-3 || size >= 1e4) return shortPower(value, 3);
    return String(Number(value.toPrecision(3)));
}

// A number in a cell, as qkv_cell_text writes it.
export function cellText(value, { reach = 1, log = false, floor = 1e-4, signed = false } = {}) {
    const size = Math.abs(value);
    if (value === 0 || value !== value) return '';
    const sign = value < 0 ? '−' : signed ? '+' : '';
    if (!log && reach < 0.1 && reach >= 0.01 && size >= 0.0005 && size < 0.1) return `${sign}.${String(Math.round(size * 1000)).padStart(3, '0')}`;
    if ((log && size < 0.0095 && size >= floor) || (reach < 0.1 && size < 0.1 && size >= reach / 200)) {
        const [mantissa, power] = size.toExponential(0).split('e');
        return `${sign}${mantissa}e${Number(power)}`;
    }
    if (size < 0.005) return '0';
    if (size < 0.995) return `${sign}.${String(Math.round(size * 100)).padStart(2, '0')}`;
    if (size < 9.95) return sign + size.toFixed(1);
    return size < 999.5 ? sign + size.toFixed(0) : sign + size.toExponential(0);
}

// 12345 as 12,345. toLocaleString takes the browser tens of milliseconds the first time.
export function countText(n) {
    return String(n).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function clampNumber(value, low, high) {
    return Math.min(Math.max(value, low), high);
}

// Behind the painting of the next frame.
export function afterFrame(act) {
    requestAnimationFrame(() => setTimeout(act));
}

// Onto the clipboard; the button says whether that was allowed.
export async function copyText(text, button) {
    const label = button.textContent;
    try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
    } catch {
        button.textContent = 'Not allowed here';
    }
    setTimeout(() => {
        button.textContent = label;
    }, 1200);
}
