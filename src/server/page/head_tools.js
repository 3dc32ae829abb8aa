// The controls above a head's maps: which panels, hidden keys, scale, range, colours, zoom. They change the view's options.
import { clampNumber, el, fillSelect } from './text.js';

export class HeadTools {
    // view: the HeadView; panels: [name, title] of each.
    constructor(view, panels) {
        this.view = view;
        this.panels = panels;
        this.element = this.build();
    }

    build() {
        const label = (text, control, hint) => el('label', { title: hint }, el('span', {}, text), control);
        const number = (name, hint, extra) =>
            el('input', {
                type: 'number',
                class: 'number',
                'aria-label': hint,
                ...extra,
                onchange: (event) =>
                    this.view.change({ [name]: event.target.value === '' ? null : Number(event.target.value) }),
            });
        const check = (name) =>
            el('input', { type: 'checkbox', onchange: (e) => this.view.change({ [name]: e.target.checked }) });
        this.controls = {
            scale: el('select', {
                'aria-label': 'Scale',
                onchange: (e) => this.view.change({ scale: e.target.value }),
            }),
            colormap: el('select', {
                'aria-label': 'Colours',
                onchange: (e) => this.view.change({ colormap: e.target.value }),
            }),
            low: number('low', 'Lowest weight of the colours', { placeholder: '0', step: 'any' }),
            high: number('high', 'Highest weight of the colours', { placeholder: '1', step: 'any' }),
            skipKeys: el('input', {
                type: 'number',
                class: 'number',
                min: '0',
                step: '1',
                value: '0',
                'aria-label': 'Hide first keys',
                onchange: (e) => this.view.change({ skipKeys: this.keysToHide(e.target.value) }),
            }),
            renormalise: check('renormalise'),
            maskedZero: check('maskedZero'),
        };
        fillSelect(this.controls.scale, [
            ['auto', 'auto'],
            ['linear', 'linear'],
            ['log', 'log'],
            ['power', 'power ½'],
        ]);
        fillSelect(
            this.controls.colormap,
            this.view.palette.names.map((name) => [name, name]),
        );
        this.shown = this.panels.map(([name, title]) => {
            const box = el('input', {
                type: 'checkbox',
                onchange: () => this.view.change({ show: { ...this.view.options.show, [name]: box.checked } }),
            });
            return [name, box, el('label', { class: 'toggle' }, box, el('span', {}, title))];
        });
        const zoom = (text, hint, act) =>
            el('button', { type: 'button', class: 'quiet', title: hint, 'aria-label': hint, onclick: act }, text);
        const step = (factor) => () => this.view.maps.before.data && this.view.maps.before.input.zoomAt(null, factor);
        const zoomTools = el(
            'span',
            { class: 'zoom', role: 'group', 'aria-label': 'Zoom' },
            zoom('+', 'Zoom in (drag a rectangle, or +)', step(0.5)),
            zoom('−', 'Zoom out (−)', step(2)),
            zoom('all', 'Show the whole map (double click, or 0)', () => this.view.setZoom(null)),
        );
        return el(
            'div',
            { class: 'head-tools', role: 'group', 'aria-label': 'Display of the maps' },
            el(
                'span',
                { class: 'toggles', role: 'group', 'aria-label': 'Panels' },
                ...this.shown.map(([, , node]) => node),
            ),
            label(
                'Hide first',
                this.controls.skipKeys,
                'Leaves out the first keys, which often take most of the weight',
            ),
            label('renormalise', this.controls.renormalise, 'The weights of each row that are left sum to 1'),
            label('Scale', this.controls.scale, 'Of weights; a difference, having two signs, is never on a log scale'),
            label('from', this.controls.low),
            label('to', this.controls.high),
            label('Colours', this.controls.colormap),
            label('mask as 0', this.controls.maskedZero, 'Masked cells look like a weight of 0, as in the papers'),
            zoomTools,
        );
    }

    // At least one key stays.
    keysToHide(text) {
        return clampNumber(Math.round(Number(text) || 0), 0, (this.view.data?.n ?? Infinity) - 1);
    }

    // The controls as the options have them. whole: every weight is there.
    show(settings, whole) {
        const { controls } = this;
        for (const name of ['scale', 'colormap', 'skipKeys']) controls[name].value = settings[name];
        const empty = (settings.low ?? 0) >= (settings.high ?? 1);
        for (const name of ['low', 'high']) {
            controls[name].value = settings[name] ?? '';
            controls[name].setAttribute('aria-invalid', String(empty && settings[name] !== null));
        }
        for (const name of ['renormalise', 'maskedZero']) controls[name].checked = settings[name];
        for (const [name, box] of this.shown) box.checked = settings.show[name];
        controls.renormalise.disabled = !whole || !settings.skipKeys;
        controls.renormalise.parentElement.title = whole
            ? 'The weights of each row that are left sum to 1'
            : 'Needs whole rows of single weights: this map is pooled, or a part of a longer one';
    }
}
