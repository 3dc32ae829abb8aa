// A slider for the factor of an edit, with the places of factor.js, and a box for any number.
//
//     const slider = new FactorSlider({ label: 'q@5.h0', eps: 0.5, marks: [0.5, 1e-3] });
//     slider.oninput = (eps) => ...;   slider.onhold = (held) => ...;
import { FACTOR_STEPS, FACTOR_TICKS, factorAt, placeOf } from './factor.js';
import { el, factorText, plainNumber } from './text.js';

const NEAR = 34; // places: ticks nearer to each other than that would overlap

export class FactorSlider {
    constructor({ label, eps, marks = [], note = '' }) {
        this.value = eps;
        this.oninput = this.onhold = () => {};
        this.range = el('input', { type: 'range', min: '0', max: String(FACTOR_STEPS), step: '1', 'aria-label': `Factor of ${label}` });
        this.box = el('input', { class: 'number factor-box', inputmode: 'decimal', 'aria-label': `Factor of ${label} as a number` });
        this.range.addEventListener('input', () => this.moved());
        for (const [event, held] of [['pointerdown', true], ['pointerup', false], ['pointercancel', false]]) {
            this.range.addEventListener(event, () => this.onhold(held));
        }
        this.box.addEventListener('change', () => this.typed());
        const jump = (text, value) => el('button', { type: 'button', class: 'quiet', onclick: () => this.set(value) }, text);
        this.element = el('div', { class: 'factor' },
            el('span', { class: 'factor-name' }, el('code', {}, `${label}=scale:`), this.box),
            el('span', { class: 'factor-range' }, this.range, this.buildMarks(marks)),
            el('span', { class: 'factor-jumps' }, jump('0', 0), jump('1', 1), jump('as drawn', eps)),
            note ? el('p', { class: 'hint' }, note) : null);
        this.show();
    }

    // Ticks under the slider: those that the figure has first, then the usual ones where there is room.
    buildMarks(marks) {
        const shown = [];
        const add = (eps, text, drawn) => {
            const place = placeOf(eps);
            if (shown.every((other) => Math.abs(other.place - place) >= NEAR)) shown.push({ place, text, drawn });
        };
        for (const eps of new Set(marks)) add(eps, factorText(eps), true);
        for (const [eps, text] of FACTOR_TICKS) add(eps, text, false);
        return el('span', { class: 'factor-marks', 'aria-hidden': 'true' }, ...shown.map(({ place, text, drawn }) => {
            const mark = el('span', { class: drawn ? 'factor-mark drawn' : 'factor-mark' }, text);
            mark.style.left = `${(100 * place) / FACTOR_STEPS}%`;
            return mark;
        }));
    }

    // Moved by the user: the thumb stays where it is, also between places that mean the same.
    moved() {
        this.value = factorAt(Number(this.range.value));
        this.showNumber();
        this.oninput(this.value);
    }

    typed() {
        const value = plainNumber(this.box.value), fits = Math.abs(value) <= 1e6;
        this.box.setAttribute('aria-invalid', String(!fits));
        if (fits) this.set(value);
    }

    set(eps) {
        this.value = eps;
        this.show();
        this.oninput(eps);
    }

    show() {
        this.range.value = String(placeOf(this.value));
        this.showNumber();
    }

    showNumber() {
        this.box.value = String(this.value);
        this.box.setAttribute('aria-invalid', 'false');
        this.range.setAttribute('aria-valuetext', String(this.value));
    }
}
