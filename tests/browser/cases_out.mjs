// What leaves the page and comes back: figures, numbers, the command line, links, dropped figures; and why.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pageFolder } from './attention.mjs';
import { assertPageEqualsRun, chatModel, clickCell, headOf, PROMPT } from './helpers.mjs';
import { qkv, readSafetensors } from './stage.mjs';

const START = '#l=5&h=0&gn=0&e=q@5.h0=scale:0.125';

// Saves by the page's own button and gives the bytes, and what the file is called.
async function saved(page, format) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`[data-format=${format}]`)]);
    return { bytes: fs.readFileSync(await download.path()), name: download.suggestedFilename() };
}

// The words of the command line that the page shows, as a shell would read them.
function wordsOf(line) {
    return [...line.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].reduce((words, [, quoted, plain], i, all) => {
        const glued = i > 0 && all[i].index === all[i - 1].index + all[i - 1][0].length;
        const word = quoted !== undefined ? quoted.replaceAll("'\\''", "'") : plain;
        if (glued) words[words.length - 1] += word;
        else words.push(word);
        return words;
    }, []);
}

// What the page saves, figures and numbers, is byte for byte what the command line that it shows writes, under the same
// name: all formats, all kinds. The name says what it is.
export async function case_figure_bytes(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START, acceptDownloads: true });
    for (const [kind, formats, wanted] of [
        ['grid', ['png', 'svg', 'pdf', 'html', 'safetensors', 'csv'], 'default-l5-h0-q-scale-0.125'],
        ['diff', ['svg', 'csv'], 'default-l5-h0-q-scale-0.125-diff'],
        ['pattern', ['svg', 'html'], 'default-l5-h0-q-scale-0.125-pattern'],
        ['modify', ['svg'], 'default-l5-h0-modify'],
        ['mean', ['svg', 'safetensors'], 'default-l5-h0-mean'],
        ['heads', ['svg', 'csv'], 'default-heads-q-scale-0.125'],
    ]) {
        await page.getByLabel('What is drawn').selectOption(kind);
        await stage.ready();
        for (const format of formats) {
            const { bytes, name } = await saved(page, format),
                isData = format === 'safetensors' || format === 'csv';
            await stage.ready();
            const line = await page.getByLabel(`The command line that gives the same ${isData ? 'numbers' : 'figure'}`).textContent();
            const [program, ...args] = wordsOf(line),
                out = stage.file(name);
            assert.equal(program, 'qkv');
            assert.equal(name, `${wanted}.${format}`);
            assert.deepEqual(args.slice(-2), [isData ? '--data' : '-o', name]);
            qkv(args, { cwd: stage.folder });
            assert.ok(
                fs.readFileSync(out).equals(bytes),
                `${kind}.${format}: ${bytes.length} bytes of the page, ${fs.statSync(out).size} of qkv ${args.join(' ')}`,
            );
        }
    }
}

// A difference is never on a log scale, neither on the page nor in its figure, which is saved all the same.
export async function case_figure_difference_scale(stage) {
    const long = `${PROMPT} `.repeat(4).trim();
    for (const [prompt, kind] of [
        [PROMPT, 'linear'],
        [long, 'power'],
    ]) {
        const server = await stage.serve(['-p', prompt]);
        const page = await stage.open(server.url, { hash: `${START}&sc=log&fk=diff`, acceptDownloads: true });
        const legend = (name) => page.textContent(`.panel-${name} .legend`);
        assert.match(await legend('after'), /log/);
        assert.doesNotMatch(await legend('diff'), /log/);
        assert.equal(await page.evaluate(() => window.explorer.head.changes.kind), kind);
        const line = await page.textContent('.command pre');
        assert.match(line, /^qkv figure grid .*--diff/);
        const { bytes, name } = await saved(page, 'svg'),
            words = wordsOf(line);
        qkv([...words.slice(1, words.indexOf('-o')), '-o', name], { cwd: stage.folder });
        assert.ok(fs.readFileSync(stage.file(name)).equals(bytes));
        const recipe = JSON.parse(/<metadata id="qkv-recipe">(.*?)<\/metadata>/s.exec(bytes)[1].replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&'));
        assert.equal(recipe.drawn.scale, kind, 'the figure has the scale of the page');
    }
}

// A figure of the command line, chosen or dropped, brings back what it was made from.
export async function case_figure_dropped(stage) {
    const server = await stage.serve();
    const page = await stage.open(server.url, { hash: '#l=0&h=0&gn=0' });
    for (const format of ['png', 'svg', 'pdf', 'html']) {
        const file = stage.file(`mill.${format}`),
            factor = { png: '0.25', svg: '0.5', pdf: '0.75', html: '0.875' }[format];
        qkv([
            'figure',
            'grid',
            '-p',
            'The old mill by the sea.',
            '--layer',
            '3',
            '--head',
            '1',
            '--col',
            `Keys=k@3.h1=scale:${factor}`,
            '--baseline',
            '-o',
            file,
            '--quiet',
        ]);
        if (format === 'png') await drop(page, file);
        else await page.getByLabel('A figure of qkv').setInputFiles(file);
        await page.waitForFunction(
            (edit) => document.querySelector('.edit-text')?.value === edit,
            `k@3.h1=scale:${factor}`,
        );
        await stage.ready();
        assert.equal(await page.inputValue('textarea[aria-label=Prompt]'), 'The old mill by the sea.');
        assert.match(await page.textContent('#head-title'), /Layer 3, head 1/);
        await assertPageEqualsRun(stage, page, { prompt: ['-p', 'The old mill by the sea.'] });
    }
    stage.allow(/status of 4\d\d/);
    await page
        .getByLabel('A figure of qkv')
        .setInputFiles({ name: 'note.png', mimeType: 'image/png', buffer: Buffer.from('no figure') });
    await page.waitForFunction(() => /note\.png: /.test(document.querySelector('#out').textContent));
    assert.match(await page.textContent('#head-title'), /Layer 3, head 1/, 'another file changes nothing');
    qkv(['lens', '-p', 'The old mill by the sea.', '-o', stage.file('lens.svg'), '--quiet']);
    await drop(page, stage.file('lens.svg'));
    await page.waitForFunction(() => /this is a study: drop a figure/.test(document.querySelector('#out').textContent));
    assert.match(await page.textContent('#head-title'), /Layer 3, head 1/);
}

// How a figure was drawn comes back with it: the page's own figure is then the same drawing.
export async function case_figure_dropped_display(stage) {
    const prompt = 'The old mill by the sea.',
        place = ['-p', prompt, '--layer', '3', '--head', '1'],
        after = ['--col', 'After=k@3.h1=scale:0.25'];
    const figures = [
        [['grid', ...place, '--baseline', ...after, '--scale', 'log', '--colormap', 'viridis'], { scale: 'log', colormap: 'viridis' }],
        [['grid', ...place, '--baseline', ...after, '--skip-keys', '2', '--masked', 'zero'], { skipKeys: 2, maskedZero: true }],
        [['grid', ...place, '--baseline', ...after, '--range', '0.1,0.6'], { low: 0.1, high: 0.6 }],
        [['grid', ...place, '--diff', ...after, '--range', '-0.5,0.5'], { low: null, high: 0.5 }],
        [['grid', ...place, '--col', 'Plain='], {}],
        [['modify', ...place], {}],
        [['mean', ...place], {}],
        [['heads', '-p', prompt, '--variant', 'k@3.h1=scale:0.25'], {}],
    ];
    const server = await stage.serve();
    const page = await stage.open(server.url, { hash: '#l=0&h=0&gn=0' });
    for (const [words, view] of figures) {
        const name = words.join(' '),
            file = stage.file('drawn.svg');
        qkv(['figure', ...words, '-o', file, '--quiet']);
        await page.evaluate(() => (document.querySelector('#out .tip[role=status]').textContent = ''));
        await drop(page, file);
        await page.waitForFunction(() => /brought back/.test(document.querySelector('#out').textContent));
        assert.match(await page.textContent('#out .tip[role=status]'), /was made from$/, `${name}: all of it`);
        await stage.ready();
        const shown = await page.evaluate(() => window.explorer.state.view);
        for (const [key, value] of Object.entries(view)) assert.equal(shown[key], value, `${name}: ${key}`);
        assert.equal(await page.inputValue('textarea[aria-label=Prompt]'), prompt, name);
        const [saved] = await Promise.all([page.waitForEvent('download'), page.click('[data-format=svg]')]);
        // But for the command line that made it, whose options stand in another order.
        const drawing = (path) => fs.readFileSync(path, 'utf8').replace(/<metadata.*?<\/metadata>/s, '');
        assert.ok(!drawing(file).includes('<metadata') && drawing(file).length > 1000, name);
        assert.ok(drawing(await saved.path()) === drawing(file), `${name}: ${await page.textContent('#out pre')}`);
    }
}

// What of a dropped figure the page cannot show is said; a conversation comes back turn by turn.
export async function case_figure_dropped_parts(stage) {
    const model = chatModel(stage),
        server = await stage.serve(['-m', model]);
    const page = await stage.open(server.url, { hash: '#l=0&h=0&gn=0' });
    const file = stage.file('parts.svg');
    const use = async (...words) => {
        qkv(['figure', ...words, '-o', file, '--quiet']);
        await page.evaluate(() => (document.querySelector('#out .tip[role=status]').textContent = ''));
        await drop(page, file);
        await page.waitForFunction(() => /brought back/.test(document.querySelector('#out').textContent));
        await stage.ready();
        return (await page.textContent('#out .tip[role=status]')).replace('brought back what parts.svg was made from', '');
    };
    const own = ['-m', model, '--layer', '3', '--head', '1'],
        talk = ['--chat', '--system', 'Be brief.', '--turn', 'user=Hi', '--turn', 'assistant=Hello =)', '-p', 'What is a mill?'];
    assert.equal(await use('modify', ...own, ...talk), '');
    assert.equal(await page.getAttribute('[data-mode=chat]', 'aria-pressed'), 'true');
    assert.deepEqual(
        await page.locator('.chat textarea').evaluateAll((areas) => areas.map((area) => area.value)),
        ['Be brief.', 'Hi', 'Hello =)', 'What is a mill?'],
    );
    await assertPageEqualsRun(stage, page, { model: ['-m', model], prompt: talk });
    fs.writeFileSync(stage.file('other.jinja'), '{% for m in messages %}<{{ m.content }}>{% endfor %}');
    assert.match(await use('modify', ...own, ...talk, '--template', stage.file('other.jinja')), /^, but for: the turns of its conversation/);
    assert.equal(await page.evaluate(() => Boolean(window.explorer.state.prompt.chat)), false);
    const text = ['-p', 'The old mill by the sea.'];
    assert.equal(
        await use('grid', ...own, ...text, '--row', 'R=v@2=zero', '--col', 'A=k@{layer}.h{head}=scale:0.5', '--col', 'B=q@3.h1=zero', '--title', 'Mills'),
        ', but for: 1 of its 2 edits; options of its drawing (title)',
    );
    assert.deepEqual(await page.evaluate(() => window.explorer.state.edits), ['v@2=zero', 'k@3.h1=scale:0.5'], 'of the row and of the column');
    assert.match(await use('rows', '-m', model, ...text, '--query', '5'), /^, but for: its table of one query/);
    assert.deepEqual(await page.evaluate(() => window.explorer.state.view.pins), { queries: [5], keys: [] }, 'the query is pinned');
    assert.equal(await use('grid', ...own, ...text, '-p', 'The new mill.'), ', but for: 1 of its 2 prompts');
    assert.equal(await use('modify', ...own, ...text, '--epsilon', '0.1,0.2'), ', but for: options of its drawing (eps)');
    assert.equal(await use('grid', ...own, ...text, '--col', 'A=k@3=zero', '--range', 'auto', '--masked', 'hatch'), ', but for: options of its drawing (range, masked)');
    assert.equal(await use('grid', ...own, '-p', '--chat', '--col', 'A=k@3=zero'), '', 'a prompt of that name is not a conversation');
}

// What is seen and not part of a figure is said before it is saved.
export async function case_figure_unlike(stage) {
    const server = await stage.serve();
    const page = await stage.open(server.url, { hash: '#l=3&h=1&gn=0' });
    assert.equal(await page.isVisible('.unlike'), false);
    await page.evaluate(() => window.explorer.head.change({ skipKeys: 1 }));
    await stage.ready();
    assert.equal(await page.isVisible('.unlike'), false, 'hidden keys are part of figures');
    await page.evaluate(() => window.explorer.head.change({ renormalise: true }));
    await page.waitForSelector('.unlike:visible');
    assert.match(await page.textContent('.unlike'), /weights as they are, not renormalised/);
    await page.evaluate(() => window.explorer.head.setZoom([1, 6, 1, 6]));
    await page.waitForFunction(() => /all tokens.*, and weights/.test(document.querySelector('.unlike').textContent));
    await page.evaluate(() => window.explorer.head.change({ renormalise: false, zoom: null }));
    await page.waitForSelector('.unlike', { state: 'hidden' });
}

async function drop(page, file) {
    const bytes = fs.readFileSync(file).toString('base64');
    await page.evaluate(
        ([data, name]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name));
            for (const kind of ['dragenter', 'dragover', 'drop'])
                window.dispatchEvent(
                    new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }),
                );
        },
        [bytes, path.basename(file)],
    );
}

// Why: the channels sum to the score that `qkv run` has, before and after.
export async function case_why(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    assert.match(await page.textContent('#why'), /Pin one cell/);
    await clickCell(page, 'before', 10, 3);
    await page.waitForSelector('#why canvas');
    await stage.ready();
    const out = stage.file('scores.safetensors');
    qkv(['run', '-p', PROMPT, '--variant', 'q@5.h0=scale:0.125', '--capture', 'scores@5.h0', '-o', out, '--quiet']);
    const { tensors } = readSafetensors(stage.read(out)),
        n = (await headOf(page)).n;
    const reply = await page.evaluate(() => window.explorer.why.reply);
    for (const [side, variant] of [
        ['before', 'v0'],
        ['after', 'v1'],
    ]) {
        const score = tensors[`${variant}/scores.5`].values[10 * n + 3],
            sum = reply[side].channels.reduce((a, b) => a + b, 0);
        assert.ok(Math.abs(sum - score) < 1e-4 * Math.max(1, Math.abs(score)), `${side}: ${sum} is ${score}`);
        assert.ok(Math.abs(reply[side].score - score) < 1e-4 * Math.max(1, Math.abs(score)));
    }
    assert.equal(reply.before.channels.length, 32);
    assert.ok((await page.locator('#why tbody tr').count()) >= 5);
    assert.match(await page.getAttribute('#why canvas', 'aria-label'), /Contribution of each of 32 channels/);
    await page.keyboard.press('Escape');
    assert.match(await page.textContent('#why'), /Pin one cell/);
}

// The link and the command line go onto the clipboard.
export async function case_copies(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: START });
    await page.click('#copy-link');
    await page.waitForFunction(() => document.querySelector('#copy-link').textContent === 'Copied');
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(link, await page.evaluate(() => location.href));
    assert.match(link, /#m=default&p=The\+river\+runs[^&]*&e=q@5\.h0=scale:0\.125&l=5&h=0/);
    await page.click('.command button');
    await page.waitForFunction(() => document.querySelector('.command button').textContent === 'Copied');
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^qkv figure grid -p 'The river/);
}

// Of two texts what differs is marked, token by token; what both have again after a difference is not.
export async function case_text_differences(stage) {
    const server = await stage.serve(['-p', PROMPT]);
    const page = await stage.open(server.url, { hash: '#l=5&h=0&gn=0&e=q@5.h0=scale:1' });
    const shown = (baseline, variant) =>
        page.evaluate(
            ([a, b]) => {
                window.explorer.follow.setGenerated({ baseline: a, variant: b, differs_at: a.findIndex((piece, i) => piece !== b[i]) }, true);
                const parts = (node) => [...node.childNodes].map((part) => (part.className === 'differs' ? `[${part.textContent}]` : part.textContent)).join('');
                const { without, withEdit, verdict } = window.explorer.follow;
                return [parts(without), parts(withEdit), verdict.textContent];
            },
            [baseline, variant],
        );
    const words = (text) => text.match(/ ?\S+/g);
    assert.deepEqual(await shown(words('the old mill by the sea and the wind'), words('the old barn by the sea and the tide')), [
        'the old[ mill] by the sea and the[ wind]',
        'the old[ barn] by the sea and the[ tide]',
        'The first difference is at token 3; 2 of 9 tokens are marked as different.',
    ]);
    assert.deepEqual((await shown(words('the boat waits'), words('the small red boat waits'))).slice(0, 2), ['the boat waits', 'the[ small red] boat waits']);
    // Of the model's own texts: what is not marked is the same in both, and all of it is there.
    await page.fill('.slider .number', '0');
    await page.keyboard.press('Enter');
    await page.getByLabel('tokens', { exact: true }).fill('40');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /^The (first difference|edit does)/.test(window.explorer.follow.verdict.textContent) && window.explorer.follow.without.textContent.length > 60);
    await stage.ready();
    const plain = await page.evaluate(() => ['without', 'withEdit'].map((name) => [...window.explorer.follow[name].childNodes].filter((part) => part.className !== 'differs')
        .map((part) => part.textContent).join('')));
    assert.equal(plain[0], plain[1]);
}
