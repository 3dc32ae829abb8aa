// The page inside a file: a figure, a chart or a study that stays alive without a server. Everything it shows is in the block
// of JSON beside it; nothing is fetched.
import { Palette } from './colors.js';
import { el } from './text.js';
import { OfflineFigure } from './offline_figure.js';
import { OfflinePlot } from './offline_plot.js';
import { OfflineStudy } from './offline_study.js';
import { ThemeSwitch } from './theme.js';

function begin() {
    const root = document.getElementById('living');
    const data = JSON.parse(document.getElementById('qkv-data').textContent);
    const palette = new Palette(data.colors);
    root.replaceChildren();
    const Page = { plot: OfflinePlot, study: OfflineStudy }[data.kind] ?? OfflineFigure;
    const page = new Page(root, data, palette);
    const theme = el('button', { type: 'button', class: 'quiet theme' });
    root.append(theme);
    new ThemeSwitch(theme, () => page.forgetTheme());
    document.documentElement.dataset.ready = 'yes';
}

try {
    begin();
} catch (problem) {
    document.getElementById('living').replaceChildren(el('p', { role: 'alert' }, `This file cannot be shown: ${problem.message}`));
    throw problem;
}
