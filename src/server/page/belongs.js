// What each part of the page belongs to: a model, a prompt, a head, edits, and what else was asked for. A part that shows
// something of another prompt or edit than those that are chosen now is marked as older, and says of what.
//
//     const shown = new Belongings({ next: { mark, contents: [element] }, ... });
//     shown.set('next', belongsTo(body));       // an answer was shown; null: the part shows nothing
//     shown.want('next', belongsTo(body));      // what it should show
//
// mark: the element that says so, or none; contents: what is faded. rest: milliseconds without a new answer before the
// part is marked, where answers follow a slider.

const REASONS = [
    ['model', 'another model'],
    ['prompt', 'another prompt'],
    ['place', 'another head'],
    ['edits', 'another edit'],
    ['metric', 'another metric'],
];

// From a request: what its answer belongs to.
export function belongsTo({ model, prompt, edits = '', layer, head, metric = '', ...rest }) {
    const place = layer === undefined ? '' : `${layer}.${head}`;
    return { model, prompt, place, edits, metric, rest: JSON.stringify(rest) };
}

// Prompts can be long, and mostly are the same object.
function isSame(field, a, b) {
    return a[field] === b[field] || (field === 'prompt' && JSON.stringify(a.prompt) === JSON.stringify(b.prompt));
}

// Why what is shown is not what is wanted: null where it is, or where nothing is shown.
function reasonOf(shown, wanted) {
    if (!shown) return null;
    if (!wanted) return '';
    const [field, text] = REASONS.find(([name]) => !isSame(name, shown, wanted)) ?? ['rest', ''];
    if (field === 'rest') return shown.rest === wanted.rest ? null : '';
    return field === 'edits' && !shown.edits ? 'without the edit' : text;
}

export class Belongings {
    constructor(parts) {
        this.parts = parts;
        for (const part of Object.values(parts)) Object.assign(part, { shown: null, wanted: null, reason: null });
    }

    get names() {
        return Object.keys(this.parts);
    }

    set(name, about) {
        const part = this.parts[name];
        part.shown = about;
        part.failure = '';
        clearTimeout(part.timer);
        part.timer = null;
        this.check(part);
    }

    want(name, about) {
        this.parts[name].wanted = about;
        this.check(this.parts[name]);
    }

    // Does the part show this already?
    has(name, about) {
        return this.parts[name].shown !== null && reasonOf(this.parts[name].shown, about) === null;
    }

    // The answer did not come: the mark says why.
    fail(name, message) {
        this.parts[name].failure = message;
        this.mark(this.parts[name], this.parts[name].reason);
    }

    check(part) {
        const reason = reasonOf(part.shown, part.wanted);
        if (reason === null || !part.rest || part.reason !== null) {
            clearTimeout(part.timer);
            part.timer = null;
            if (reason !== part.reason) this.mark(part, reason);
        } else
            part.timer ??= setTimeout(() => {
                part.timer = null;
                this.mark(part, reasonOf(part.shown, part.wanted));
            }, part.rest);
    }

    mark(part, reason) {
        part.reason = reason;
        const isOlder = reason !== null;
        for (const node of part.contents) {
            node.classList.toggle('older', isOlder);
            node.setAttribute('aria-busy', String(isOlder));
        }
        if (!part.mark) return;
        part.mark.hidden = !isOlder;
        part.mark.textContent = !isOlder ? '' : reason ? `older: ${reason}` : 'older';
        part.mark.title = part.failure || 'This belongs to something else than what is chosen now.';
    }
}
