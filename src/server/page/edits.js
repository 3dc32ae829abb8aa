// The edits: each as its text, which is what counts, with a form for its parts, and a slider for ε.
//
//     const panel = new EditsPanel(element, { sites, ops });
//     panel.set({ edits, active, follow });
//     panel.shown = { layer, head };   panel.model = facts;
//     panel.onchange = ({ edits, active, follow }, moving, group) => ...;   // moving: a slider is held
//         // group: changes that follow each other and have the same one are one change by hand; null: each is one
//     panel.setReport([{ changed, selected, ran }], whole);   panel.setError({ index, at, length, message });
import { clampNumber, countText, el, factorText, fillSelect, plainNumber } from './text.js';
import { factorAt, FACTOR_STEPS, FACTOR_TICKS, placeOf, SMALLEST_PLACE } from './factor.js';
import { factorOf, parseEdit, reachesHead, splitEdits, withFactor, writeEdit } from './notation.js';

const FIGURE_FACTORS = [0.5, 1e-3, 1e-10]; // the columns of `qkv figure modify`
const DEFAULT_ARGS = {
    scale: '0.5',
    set: '0',
    add: '0.1',
    mean: 'head',
    noise: '0.1,seed=1',
    clamp: '-1,1',
    mask: 'sink=1,recent=4',
    keep: 'h2o,budget=4,recent=2',
    quant: 'bits=2,axis=token,group=16',
};
const NO_ARGS = ['zero', 'freeze'];
const isScores = (site) => site?.name === 'scores';
const OP_SITES = { mask: isScores, keep: isScores, quant: hasChannels }; // the sites that an operation is for; else: all
const ADDED_SITES = ['q', 'k', 'v', 'z'];
const NOT_HERE = ['patch', 'remove']; // they need another prompt, or a vector from a file: nothing of the page is one
const NAMES = { q: 'Query', k: 'Key', v: 'Value' };

export class EditsPanel {
    constructor(element, { sites, ops }) {
        this.sites = sites;
        this.ops = ops;
        this.state = { edits: [], active: 0, follow: true };
        this.shown = { layer: 0, head: 0 };
        this.model = { heads: 1, kv_heads: 1 };
        this.reports = [];
        this.reportNodes = []; // of all forms, also while these are made anew: they can be marked as older
        this.forms = [];
        this.onchange = this.onhold = () => {};
        this.list = el('div', { class: 'edit-list' });
        const add = el('button', { type: 'button', onclick: () => this.add() }, '+ Add edit');
        this.followBox = el('input', {
            type: 'checkbox',
            onchange: () => this.commit({ follow: this.followBox.checked }),
        });
        element.append(
            this.buildPresets(),
            this.list,
            el(
                'div',
                { class: 'row' },
                add,
                el(
                    'label',
                    { class: 'soft', title: 'An edit of the shown head goes along when another head is shown' },
                    this.followBox,
                    'follow the shown head',
                ),
            ),
        );
    }

    buildPresets() {
        const preset = (site, op) =>
            el(
                'button',
                {
                    type: 'button',
                    class: 'preset',
                    'data-preset': `${site} ${op}`,
                    title: `${op === 'scale' ? 'Scale' : 'Take the mean over heads of'} the ${NAMES[site].toLowerCase()} of the shown head`,
                    onclick: () => this.usePreset(site, op),
                },
                NAMES[site],
            );
        const row = (title, op) =>
            el(
                'div',
                { class: 'preset-row', role: 'group', 'aria-label': title },
                el('span', { class: 'soft' }, title),
                ...['q', 'k', 'v'].map((site) => preset(site, op)),
            );
        return el('div', { class: 'presets' }, row('Scale by ε', 'scale'), row('Mean of heads', 'mean'));
    }

    // Takes the place of an edit of the same values, else of the active one; the others stay.
    usePreset(site, op) {
        const { layer, head } = this.shown,
            { edits, active } = this.state,
            factor = factorOf(edits[active] ?? '');
        const args = op === 'scale' ? factorText(factor ?? 0.5) : 'head',
            target = `${site}@${layer}.h${head}`;
        const same = edits.findIndex((edit) => edit.replace(/\s*=.*$/, '').trim() === target),
            at = same >= 0 ? same : Math.min(active, edits.length);
        const changed = edits.slice();
        changed[at] = `${target}=${op}:${args}`;
        this.commit({ edits: changed, active: at }, { rebuild: true });
    }

    // Of values that no edit has yet: of the shown head, else of one after it.
    add() {
        const { layer, head } = this.shown,
            { edits } = this.state,
            { heads } = this.model;
        const places = Array.from({ length: heads }, (_, i) => ADDED_SITES.map((site) => ({ site, layer, head: (head + i) % heads }))).flat();
        const free = places.find((place) => !edits.some((edit) => reachesHead(edit, place.site, place, this.model))) ?? places[0];
        const added = [...edits, `${free.site}@${free.layer}.h${free.head}=scale:0.5`];
        this.commit({ edits: added, active: added.length - 1 }, { rebuild: true });
    }

    remove(index) {
        const edits = this.state.edits.filter((_, i) => i !== index);
        this.commit(
            { edits, active: clampNumber(this.state.active, 0, Math.max(0, edits.length - 1)) },
            { rebuild: true },
        );
    }

    set(state) {
        this.state = { ...this.state, ...state };
        this.followBox.checked = this.state.follow;
        this.build();
    }

    // A change by hand. rebuild: the form is made anew; else only what shows the text is brought up to date.
    commit(change, { rebuild = false, moving = false, group = null } = {}) {
        this.state = { ...this.state, ...change };
        if (rebuild) this.build();
        this.onchange({ ...this.state }, moving, group);
    }

    setText(index, text, { from = null, moving = false } = {}) {
        const edits = this.state.edits.slice();
        edits[index] = text;
        const form = this.forms[index];
        if (from !== 'text') form.text.value = text;
        if (from !== 'form') this.showFields(form, text);
        if (from !== 'slider') this.showSlider(form, text);
        const isTyped = from === 'text' || moving;
        this.commit({ edits, active: index }, { moving, group: isTyped ? `${from} ${index}` : null });
    }

    // ---- elements ----

    build() {
        this.forms = this.state.edits.map((edit, index) => this.buildForm(edit, index));
        this.list.replaceChildren(...this.forms.map((form) => form.element));
        if (!this.forms.length)
            this.list.replaceChildren(el('p', { class: 'hint' }, 'No edit: the model as it is.'));
        this.setReport(this.reports, this.reportsWhole);
        this.setError(null);
    }

    buildForm(edit, index) {
        const form = { index };
        form.text = el('input', {
            type: 'text',
            class: 'code edit-text',
            spellcheck: 'false',
            autocomplete: 'off',
            value: edit,
            'aria-label': `Edit ${index + 1} in the notation`,
            'aria-describedby': `edit-error-${index}`,
            oninput: () => this.setText(index, form.text.value, { from: 'text' }),
        });
        form.remove = el(
            'button',
            {
                type: 'button',
                class: 'quiet',
                title: 'Remove this edit',
                'aria-label': `Remove edit ${index + 1}`,
                onclick: () => this.remove(index),
            },
            '✕',
        );
        form.error = el('p', { class: 'edit-error', id: `edit-error-${index}`, role: 'alert', hidden: true });
        form.report = this.reportNodes[index] ??= el('p', { class: 'edit-report', 'aria-live': 'polite' });
        form.fields = this.buildFields(form);
        form.slider = this.buildSlider(form);
        form.element = el(
            'div',
            {
                class: 'edit',
                role: 'group',
                'aria-label': `Edit ${index + 1}`,
                onfocusin: () => {
                    if (this.state.active !== index) this.commit({ active: index });
                },
            },
            el('div', { class: 'edit-line' }, form.text, form.remove),
            form.error,
            form.slider,
            form.report,
            form.fields,
        );
        this.showFields(form, edit);
        this.showSlider(form, edit);
        return form;
    }

    // Site, layers, heads, tokens, operation: each writes the text.
    buildFields(form) {
        const write = () => {
            const value = (name) => form[name].value.trim();
            const op = value('op'),
                old = parseEdit(form.text.value);
            const site = this.siteFor(op, value('site'), form);
            const args = old && old.op === op ? value('args') : (DEFAULT_ARGS[op] ?? '');
            this.setText(
                form.index,
                writeEdit({
                    site: site?.name ?? value('site'),
                    layers: site?.has_layer === false ? '' : value('layers') || '*',
                    group: site?.has_kv_heads === false ? 'h' : value('group'),
                    heads: site?.has_heads === false ? '' : value('heads'),
                    tokens: value('tokens'),
                    channels: hasChannels(site) ? value('channels') : '',
                    op,
                    args: op === 'mean' && args === 'head' && site?.has_heads === false ? 'token' : args,
                }),
                { from: 'fields' },
            );
        };
        const pick = (name, pairs, label, picked = () => {}) => {
            form[name] = el('select', {
                'aria-label': label,
                onchange: () => {
                    picked();
                    write();
                },
            });
            fillSelect(form[name], pairs);
            return form[name];
        };
        const box = (name, label, hint) =>
            (form[name] = el('input', {
                type: 'text',
                class: 'code',
                'aria-label': label,
                title: hint,
                onchange: write,
            }));
        const row = (label, ...parts) =>
            el('div', { class: 'field' }, el('span', { class: 'soft' }, label), ...parts);
        form.note = el('p', { class: 'field-note soft' });
        return el(
            'details',
            { class: 'fields' },
            el('summary', {}, 'Site, heads, tokens, channels, operation'),
            row(
                'Site',
                pick(
                    'site',
                    this.sites
                        .filter(({ name }) => name !== 'gate' || this.state.hasGate)
                        .map(({ name }) => [name, name]),
                    'Site',
                    () => (form.leftSite = null),
                ),
            ),
            row('Layers', box('layers', 'Layers', '3, 2-4, 0,2,5-7 or *')),
            row(
                'Heads',
                pick(
                    'group',
                    [
                        ['h', 'h'],
                        ['g', 'g'],
                    ],
                    'Query heads (h) or key/value heads (g)',
                ),
                box('heads', 'Heads', '3, 2-4, 0,2 or *; empty: all'),
            ),
            row('Tokens', box('tokens', 'Tokens', '5, 1:, :4, -1 or 0,3,5:7; empty: all. Of scores and pattern: queries,keys')),
            row('Channels', box('channels', 'Channels', '7, 0:16, -1 or 0,3,5:7; empty: all')),
            row(
                'Do',
                this.barUnusable(pick('op', this.ops.map((op) => [op.name, op.name]), 'Operation')),
                box('args', 'Arguments', ''),
            ),
            form.note,
        );
    }

    // The site of an operation: the one that is chosen, where the operation is for it. One that had to change for an
    // operation comes back with the next.
    siteFor(op, name, form) {
        const fits = (site) => site && (OP_SITES[op]?.(site) ?? true),
            chosen = this.siteOf(form.leftSite ?? name);
        form.leftSite = null;
        if (fits(chosen)) return chosen;
        form.leftSite = chosen?.name ?? null;
        return [this.siteOf('k'), ...this.sites].find(fits);
    }

    siteOf(name) {
        return this.sites.find((entry) => entry.name === name);
    }

    // Operations that cannot work here are named, and say why.
    barUnusable(select) {
        for (const option of select.options) {
            option.disabled = NOT_HERE.includes(option.value);
            if (option.disabled) option.textContent += ' (not on this page)';
        }
        return select;
    }

    showFields(form, text) {
        const fields = parseEdit(text);
        for (const name of ['site', 'layers', 'group', 'heads', 'tokens', 'channels', 'op', 'args']) {
            form[name].disabled = !fields;
            // Without heads the text says no kind of them: the choice waits for the heads.
            if (fields && (name !== 'group' || fields.group)) form[name].value = fields[name];
        }
        if (!fields) return;
        const site = this.siteOf(fields.site),
            op = this.ops.find((entry) => entry.name === fields.op);
        form.layers.disabled = site?.has_layer === false;
        form.heads.disabled = form.group.disabled = site?.has_heads === false;
        form.channels.disabled = !hasChannels(site);
        for (const option of form.site.options) option.disabled = OP_SITES[fields.op]?.(this.siteOf(option.value)) === false;
        form.args.disabled = NO_ARGS.includes(fields.op);
        form.args.title = op?.arguments ?? '';
        const notes = [site?.what && `${site.name}: ${site.what}`, op?.what && `${op.name}: ${op.what}`];
        if (!form.args.disabled && op?.arguments) notes.push(`after the colon: ${op.arguments}`);
        form.note.textContent = notes.filter(Boolean).join('. ');
    }

    // ---- the slider ----

    buildSlider(form) {
        form.range = el('input', {
            type: 'range',
            min: '0',
            max: String(FACTOR_STEPS),
            step: '1',
            'aria-label': `ε of edit ${form.index + 1}`,
            oninput: () => this.slide(form, factorAt(Number(form.range.value)), true),
            onchange: () => this.onhold(false),
            onpointerdown: () => this.onhold(true),
            onpointerup: () => this.onhold(false),
            onkeydown: (event) => this.slideByKey(form, event),
        });
        form.number = el('input', {
            type: 'text',
            inputmode: 'decimal',
            class: 'number',
            'aria-label': `ε of edit ${form.index + 1} as a number`,
            onchange: () => this.typeFactor(form),
            onkeydown: (event) => event.key === 'Enter' && this.typeFactor(form),
        });
        const jump = (factor) =>
            el(
                'button',
                {
                    type: 'button',
                    class: 'jump',
                    title: `ε = ${factorText(factor)}`,
                    onclick: () => this.slide(form, factor, false),
                },
                factorText(factor),
            );
        const ticks = FACTOR_TICKS.map(([factor, label]) => {
            const tick = el('span', { class: 'tick', 'aria-hidden': 'true' }, label);
            tick.style.setProperty('--at', placeOf(factor) / FACTOR_STEPS);
            return tick;
        });
        return el(
            'div',
            { class: 'slider' },
            el(
                'div',
                { class: 'slider-line' },
                el('span', { class: 'epsilon' }, 'ε'),
                el('div', { class: 'track' }, form.range, el('div', { class: 'ticks' }, ...ticks)),
                form.number,
            ),
            el('div', { class: 'jumps' }, jump(0), ...[...FIGURE_FACTORS].reverse().map(jump), jump(1)),
        );
    }

    showSlider(form, text) {
        const factor = factorOf(text);
        form.slider.hidden = factor === null;
        if (factor === null) return;
        this.showFactor(form, factor, true);
    }

    showFactor(form, factor, moveThumb) {
        if (moveThumb) form.range.value = placeOf(factor);
        form.range.setAttribute('aria-valuetext', factorText(factor));
        if (document.activeElement !== form.number || moveThumb) form.number.value = factorText(factor);
    }

    // The sign that was typed stays while the slider moves.
    slide(form, factor, moving) {
        const old = factorOf(this.state.edits[form.index]) ?? 1;
        const signed = old < 0 && moving ? -factor : factor;
        this.showFactor(form, signed, !moving);
        this.setText(form.index, withFactor(this.state.edits[form.index], factorText(signed)), {
            from: 'slider',
            moving,
        });
    }

    // Arrows take steps that can be seen; Shift takes single ones.
    slideByKey(form, event) {
        const place = Number(form.range.value);
        const step = { ArrowRight: 10, ArrowUp: 10, ArrowLeft: -10, ArrowDown: -10, PageUp: 60, PageDown: -60 }[
            event.key
        ];
        let next = null;
        if (step) next = place + (event.shiftKey ? Math.sign(step) : step);
        else if (event.key === 'Home') next = 0;
        else if (event.key === 'End') next = FACTOR_STEPS;
        else return;
        event.preventDefault();
        // Between 0 and the smallest factor there is nothing.
        if (step && next < SMALLEST_PLACE) next = step < 0 ? 0 : SMALLEST_PLACE;
        form.range.value = clampNumber(next, 0, FACTOR_STEPS);
        this.slide(form, factorAt(Number(form.range.value)), true);
    }

    typeFactor(form) {
        const value = plainNumber(form.number.value),
            bad = !Number.isFinite(value);
        form.number.setAttribute('aria-invalid', String(bad));
        if (bad) return;
        form.range.value = placeOf(value);
        form.range.setAttribute('aria-valuetext', String(value));
        this.setText(
            form.index,
            withFactor(this.state.edits[form.index], form.number.value.trim().replace('−', '-')),
            { from: 'slider' },
        );
    }

    // ---- what the server says ----

    // Of every edit that was sent, in their order: a text may hold several. whole: the run went through all layers; else
    // it ended at the shown head's map, and what comes after it is not known yet.
    setReport(reports, whole = false) {
        this.reports = reports || [];
        this.reportsWhole = whole;
        let from = 0;
        this.forms.forEach((form, i) => {
            const mine = this.reports.slice(from, (from += splitEdits(this.state.edits[i]).length));
            const text = reportText(mine, whole);
            if (form.report.textContent !== text) form.report.textContent = text;
        });
    }

    // error: { index, at, length, message } or null. The edit is repeated with what is wrong marked in it.
    setError(error) {
        this.forms.forEach((form, i) => {
            const mine = error && error.index === i;
            form.error.hidden = !mine;
            form.text.setAttribute('aria-invalid', String(Boolean(mine)));
            if (!mine) return;
            form.report.textContent = '';
            const text = this.state.edits[i],
                { at, length } = error;
            const place =
                at === null
                    ? []
                    : [
                          el(
                              'span',
                              { class: 'code where' },
                              text.slice(0, at),
                              el('mark', {}, text.slice(at, at + length) || '␣'),
                              text.slice(at + length),
                          ),
                      ];
            form.error.replaceChildren(...place, el('span', {}, error.message));
        });
    }
}

// Maps have keys in place of channels.
function hasChannels(site) {
    return Boolean(site) && !site.shape.endsWith('T');
}

function reportText(reports, whole) {
    if (!reports.length) return '';
    if (!reports.some((report) => report.ran))
        return whole ? 'reaches neither this map nor the next token' : 'does not reach this map';
    const sum = (name) => reports.reduce((total, report) => total + report[name], 0);
    return `changed ${countText(sum('changed'))} of ${countText(sum('selected'))} values`;
}
