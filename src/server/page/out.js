// Out: the command line that gives the same, the figure in every format, the numbers, and back in by a dropped figure.
//
// The server draws with the code of `qkv figure`: what is saved here is, byte for byte, what the command line writes.
import { FIGURE_KINDS } from './figure_kinds.js';
import { copyText, countText, el, fillSelect } from './text.js';

const FORMATS = ['png', 'svg', 'pdf', 'html'];
const NUMBERS = ['safetensors', 'csv'];
const MOST_BYTES = 32 * 2 ** 20; // what the server reads of a file
const TYPES = {
    png: 'image/png',
    svg: 'image/svg+xml',
    pdf: 'application/pdf',
    html: 'text/html',
    safetensors: 'application/octet-stream',
    csv: 'text/csv',
};

export class OutPanel {
    constructor(element, { connection }) {
        this.connection = connection;
        this.request = () => ({});
        this.onrecipe = this.onkind = () => {};
        this.kind = el('select', { 'aria-label': 'What is drawn', onchange: () => this.onkind(this.kind.value) });
        fillSelect(this.kind, FIGURE_KINDS);
        this.command = el('pre', {
            class: 'code',
            tabindex: '0',
            'aria-label': 'The command line that gives the same',
        });
        this.status = el('p', { class: 'tip', role: 'status' });
        this.unlike = el('p', { class: 'tip unlike', hidden: true });
        const save = (format) =>
            el(
                'button',
                { type: 'button', 'data-format': format, onclick: () => this.save(format) },
                format.toUpperCase(),
            );
        const copy = el(
            'button',
            { type: 'button', onclick: () => copyText(this.command.textContent, copy) },
            'Copy',
        );
        const file = el('input', {
            type: 'file',
            accept: '.png,.svg,.pdf,.html,.json',
            'aria-label': 'A figure of qkv',
            onchange: () => file.files[0] && this.read(file.files[0]),
        });
        element.append(
            el(
                'div',
                { class: 'row' },
                this.kind,
                el('span', { class: 'soft' }, 'Figure'),
                ...FORMATS.map(save),
                el('span', { class: 'soft' }, 'Numbers'),
                ...NUMBERS.map(save),
            ),
            this.unlike,
            el('div', { class: 'command' }, this.command, copy),
            el(
                'div',
                { class: 'row soft' },
                'A figure of qkv dropped here, or chosen, brings back what it was made from:',
                file,
            ),
            this.status,
        );
    }

    setKind(kind) {
        this.kind.value = kind;
    }

    // The options of `qkv figure` for what is seen.
    figureOptions({ model, prompt, edits, layer, head, view }) {
        const options = { prompts: [prompt], layer, head };
        if (model !== null) options.model = model;
        const chosen = this.kind.value;
        options.kind = chosen === 'diff' ? 'grid' : chosen;
        if (options.kind === 'grid') {
            options.cols = [edits ? { label: 'After', edits } : { label: 'Plain', edits: '' }];
            if (edits && chosen === 'grid') options.baseline = true;
            if (edits && chosen === 'diff') options.diff = true;
        }
        if (options.kind === 'heads') {
            delete options.layer;
            delete options.head;
            if (edits) options.variant = edits;
        }
        return { ...options, ...this.displayOptions(view, chosen === 'diff') };
    }

    displayOptions(view, diff) {
        const options = {};
        // As HeadView has it: a difference is never on a log scale.
        if (view.scale !== 'auto' && !(diff && view.scale === 'log')) options.scale = view.scale;
        if (view.colormap !== 'coolwarm' && !diff) options.colormap = view.colormap;
        if (view.skipKeys) options.skip_keys = view.skipKeys;
        if (diff && view.high !== null) options.range = [-view.high, view.high];
        else if (!diff && (view.low !== null || view.high !== null))
            options.range = [view.low ?? 0, view.high ?? 1];
        if (view.maskedZero) options.masked = 'zero';
        return options;
    }

    // What the view shows and a figure does not.
    showUnlike({ zoom, skipKeys, renormalise }) {
        const missing = [];
        if (zoom) missing.push('all tokens, not the zoomed part alone');
        if (skipKeys && renormalise) missing.push('weights as they are, not renormalised over the keys that are left');
        this.unlike.hidden = !missing.length;
        this.unlike.textContent = missing.length ? `The figure and its numbers show ${missing.join(', and ')}.` : '';
    }

    dryRequest(request) {
        this.showUnlike(request.view);
        return { ...this.figureOptions(request), format: 'png', dry: true };
    }

    setCommand({ command }) {
        this.command.textContent = command;
        if (this.hasFailed) this.status.textContent = '';
        this.hasFailed = false;
    }

    failed(error) {
        this.command.textContent = '';
        this.status.textContent = error.message;
        this.hasFailed = true;
    }

    async save(format) {
        this.status.textContent = `drawing ${format.toUpperCase()}…`;
        try {
            const reply = await this.connection.post('/api/figure', {
                ...this.figureOptions(this.request()),
                format,
            });
            const bytes = await reply.arrayBuffer();
            offer(new Blob([bytes], { type: TYPES[format] }), `figure.${format}`);
            this.status.textContent = `figure.${format} saved, ${countText(bytes.byteLength)} bytes`;
        } catch (error) {
            this.status.textContent = error.message;
        }
    }

    // ---- back in ----

    catchDrops(cover) {
        let depth = 0;
        const hasFile = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
        window.addEventListener('dragenter', (event) => {
            if (hasFile(event)) {
                depth++;
                cover.hidden = false;
            }
        });
        window.addEventListener('dragleave', (event) => {
            if (hasFile(event) && --depth <= 0) {
                depth = 0;
                cover.hidden = true;
            }
        });
        window.addEventListener('dragover', (event) => hasFile(event) && event.preventDefault());
        window.addEventListener('drop', (event) => {
            if (!hasFile(event)) return;
            event.preventDefault();
            depth = 0;
            cover.hidden = true;
            if (event.dataTransfer.files[0]) this.read(event.dataTransfer.files[0]);
        });
    }

    async read(file) {
        if (file.size > MOST_BYTES) return void (this.status.textContent = `${file.name}: no figure is that large`);
        this.status.textContent = `reading ${file.name}…`;
        try {
            const reply = await this.connection.fetch('/api/recipe', {
                method: 'POST',
                headers: { 'Content-Type': 'application/octet-stream' },
                body: await file.arrayBuffer(),
            });
            const said = await reply.json();
            this.onrecipe(said);
            const missing = said.left_out.length ? `, but for: ${said.left_out.join('; ')}` : '';
            this.status.textContent = `brought back what ${file.name} was made from${missing}`;
        } catch (error) {
            this.status.textContent = `${file.name}: ${error.message}`;
        }
    }
}

// As a download.
function offer(blob, name) {
    const address = URL.createObjectURL(blob);
    const link = el('a', { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
}
