// The page inside a file: a figure, a study or a chart of a sweep, without a server. Everything it shows is in the block of
// JSON beside it: a title, notes, and parts, each shown by the class of its type. Nothing is fetched.
//
// A part has `elements`, for the page; it may have `header`, which stands below the title, begin(), called when all parts are
// in the page, and forgetTheme(), called when colours change.
import { Palette } from './colors.js';
import { CellAttention } from './offline_attention.js';
import { HeatmapPart, openFirst } from './offline_heatmap.js';
import { MapsPart } from './offline_maps.js';
import { SweepPart } from './offline_sweep.js';
import { CellNumbers, FactsPart, ImagePart, ListPart, TablePart } from './offline_table.js';
import { el, titleNodes } from './text.js';
import { ThemeSwitch } from './theme.js';

const PARTS = { maps: MapsPart, heatmap: HeatmapPart, image: ImagePart, table: TablePart, facts: FactsPart, list: ListPart, sweep: SweepPart };

class OfflinePage {
    constructor(root, data) {
        this.data = data;
        this.palette = new Palette(data.colors);
        this.attention = data.attention ? new CellAttention(data.attention, this.palette) : null;
        this.cell = new CellNumbers(data.parts.filter(({ type }) => type === 'table'));
        this.parts = data.parts.map((part) => new PARTS[part.type](part, this));
        const theme = el('button', { type: 'button', class: 'quiet theme' });
        root.replaceChildren(this.buildHeader(), ...this.parts.flatMap(({ elements }) => elements), this.buildNotes(), theme);
        for (const part of this.parts) part.begin?.();
        openFirst(this.partsOf(HeatmapPart));
        new ThemeSwitch(theme, () => this.forgetTheme());
    }

    partsOf(Part) {
        return this.parts.filter((part) => part instanceof Part);
    }

    buildHeader() {
        const { title } = this.data;
        return el('header', { class: 'figure-header' }, title ? el('h1', {}, ...titleNodes(title)) : null, ...this.parts.flatMap(({ header }) => header ?? []));
    }

    // What the file says about itself.
    buildNotes() {
        const { small_print: smallPrint, about, options, id } = this.data;
        return el('footer', { class: 'figure-notes' }, smallPrint ? el('p', {}, smallPrint) : null,
            el('p', {}, `${about} Nothing is fetched. `.trimStart(), el('code', {}, ['qkv reproduce FILE', options, '--check'].filter(Boolean).join(' ')), ` makes it again (${id}).`));
    }

    forgetTheme() {
        for (const part of [...this.parts, this.attention]) part?.forgetTheme?.();
    }
}

try {
    new OfflinePage(document.getElementById('page'), JSON.parse(document.getElementById('qkv-data').textContent));
    document.documentElement.dataset.ready = 'yes';
} catch (problem) {
    document.getElementById('page').replaceChildren(el('p', { role: 'alert' }, `This file cannot be shown: ${problem.message}`));
    throw problem;
}
