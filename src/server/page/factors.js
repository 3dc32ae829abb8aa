// Sliders for the factors of edits: logarithmic, with 0 and 1 in reach, and a box for any number.
//
//     const slider = new FactorSlider({ label: 'q@5.h0', eps: 0.5, marks: [0.5, 1e-3] });
//     slider.oninput = (eps) => ...;   slider.onhold = (held) => ...;
//
// The value is the number that is written: three digits, so that a text of the edit says it exactly.
import { clampNumber, el, factorText } from './text.js';

const DECADES = [-10, 1]; // powers of ten at the ends
const STEPS = 100; // of a decade
const LAST = 1 + (DECADES[1] - DECADES[0]) * STEPS;

// Place 0 is the factor 0, place 1 the smallest power; 1 has a place of its own.
export function placeOfFactor(eps) {
    if (!(eps > 0)) return 0;
    return clampNumber(Math.round(1 + (Math.log10(eps) - DECADES[0]) * STEPS), 1, LAST);
}

export function factorAtPlace(place) {
    if (place <= 0) return 0;
    return Number(factorText(10 ** ((place - 1) / STEPS + DECADES[0])));
}

export class FactorSlider {
    constructor({ label, eps, marks = [], note = '' }) {
        this.own = eps;
        this.value = eps;
        this.oninput = this.onhold = () => {};
        this.range = el('input', { type: 'range', min: '0', max: String(LAST), step: '1', 'aria-label': `Factor of ${label}` });
        this.box = el('input', { class: 'number factor-box', inputmode: 'decimal', 'aria-label': `Factor of ${label} as a number` });
        this.range.addEventListener('input', () => this.set(factorAtPlace(Number(this.range.value))));
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

    // Ticks under the slider: the factors that the figure has, and 0 and 1.
    buildMarks(marks) {
        const all = [...new Set([0, 1, ...marks])];
        return el('span', { class: 'factor-marks', 'aria-hidden': 'true' }, ...all.map((eps) => {
            const mark = el('span', { class: marks.includes(eps) ? 'factor-mark drawn' : 'factor-mark' }, factorText(eps));
            mark.style.left = `${(100 * placeOfFactor(eps)) / LAST}%`;
            return mark;
        }));
    }

    typed() {
        const value = Number(this.box.value.trim().replace('−', '-'));
        const fits = this.box.value.trim() !== '' && Number.isFinite(value) && Math.abs(value) <= 1e6;
        this.box.setAttribute('aria-invalid', String(!fits));
        if (fits) this.set(value);
    }

    set(eps) {
        this.value = eps;
        this.show();
        this.oninput(eps);
    }

    show() {
        this.box.value = String(this.value);
        this.box.setAttribute('aria-invalid', 'false');
        this.range.value = String(placeOfFactor(this.value));
        this.range.setAttribute('aria-valuetext', String(this.value));
    }
}
