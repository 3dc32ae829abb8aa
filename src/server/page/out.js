// Out: the command line that gives the same, the figure in every format, the numbers, and back in by a dropped figure.
//
// The server draws with the code of `qkv figure`: what is saved here is, byte for byte, what the command line writes.
import { FIGURE_KINDS } from './figure_kinds.js';
import { copyText, countText, el, fillSelect } from './text.js';

const FORMATS = ['png', 'svg', 'pdf', 'html'];
const NUMBERS = ['safetensors', 'csv'];
const MOST_NAME = 100,
    MOST_EDITS = 60; // letters of a file's name
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
        this.onrecipe = this.onkind = this.onformat = () => {};
        this.formats = { command: 'png', numbers: 'csv' }; // of the command lines: those that were saved last
        this.kind = el('select', { 'aria-label': 'What is drawn', onchange: () => this.onkind(this.kind.value) });
        fillSelect(this.kind, FIGURE_KINDS);
        const line = (label) => el('pre', { class: 'code', tabindex: '0', 'aria-label': label });
        this.lines = { command: line('The command line that gives the same figure'), numbers: line('The command line that gives the same numbers') };
        this.status = el('p', { class: 'tip', role: 'status' });
        this.unlike = el('p', { class: 'tip unlike', hidden: true });
        const save = (format) =>
            el(
                'button',
                { type: 'button', 'data-format': format, onclick: () => this.save(format) },
                format.toUpperCase(),
            );
        const command = (of) => {
            const copy = el('button', { type: 'button', onclick: () => copyText(this.lines[of].textContent, copy) }, 'Copy');
            return el('div', { class: 'command' }, this.lines[of], copy);
        };
        const file = el('input', {
            type: 'file',
            accept: '.png,.svg,.pdf,.html,.json',
            'aria-label': 'A figure of qkv',
            onchange: () => file.files[0] && this.read(file.files[0]),
        });
        element.append(
            el('div', { class: 'row' }, this.kind, el('span', { class: 'soft' }, 'Figure'), ...FORMATS.map(save)),
            this.unlike,
            command('command'),
            el('div', { class: 'row' }, el('span', { class: 'soft' }, 'Numbers'), ...NUMBERS.map(save)),
            command('numbers'),
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
        }
        if ((options.kind === 'heads' || options.kind === 'pattern') && edits) options.variant = edits;
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

    // What a file is called, without its ending: the model, what is drawn of it, and the edits.
    nameOf({ modelName, edits = '', layer, head }) {
        const kind = this.kind.value,
            isOwn = kind === 'modify' || kind === 'mean'; // these have edits of their own
        const parts = [
            modelName.replace(/^.*\//, '').replace(/\.gguf$/, ''),
            kind === 'heads' ? 'heads' : `l${layer}-h${head}`,
            isOwn ? '' : edits.replaceAll(`@${layer}.h${head}`, '').slice(0, MOST_EDITS),
            kind === 'grid' || kind === 'heads' ? '' : kind,
        ];
        const plain = (text) => text.replace(/[^A-Za-z0-9.]+/g, '-').replace(/^[-.]+|[-.]+$/g, '');
        return plain(parts.map(plain).filter(Boolean).join('-').slice(0, MOST_NAME));
    }

    fileRequest(request, format) {
        return { ...this.figureOptions(request), name: this.nameOf(request), format };
    }

    // of: 'command' or 'numbers'
    dryRequest(of, request) {
        this.showUnlike(request.view);
        return { ...this.fileRequest(request, this.formats[of]), dry: true };
    }

    setCommand(of, { command }) {
        this.lines[of].textContent = command;
        if (this.hasFailed) this.status.textContent = '';
        this.hasFailed = false;
    }

    failed(of, error) {
        this.lines[of].textContent = '';
        this.status.textContent = error.message;
        this.hasFailed = true;
    }

    async save(format) {
        this.status.textContent = `drawing ${format.toUpperCase()}…`;
        this.formats[NUMBERS.includes(format) ? 'numbers' : 'command'] = format;
        this.onformat();
        try {
            const request = this.fileRequest(this.request(), format),
                name = `${request.name}.${format}`,
                reply = await this.connection.post('/api/figure', request);
            const bytes = await reply.arrayBuffer();
            offer(new Blob([bytes], { type: TYPES[format] }), name);
            this.status.textContent = `${name} saved, ${countText(bytes.byteLength)} bytes`;
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
