// The numbers of a file's page against the engine's: reads a figure that `qkv figure -o` wrote, makes its maps with
// attention.js as the page does, and compares with `qkv run`.
import fs from 'node:fs';
import path from 'node:path';
import url from 'node:url';

const here = path.dirname(url.fileURLToPath(import.meta.url));
export const pageFolder = path.join(here, '..', '..', 'src', 'server', 'page');

// The module as the page has it; node would take a file .js without a package for another kind of script.
export const attention = await import('data:text/javascript;base64,' +
    fs.readFileSync(path.join(pageFolder, 'attention.js')).toString('base64'));

// The data of a page in a file.
export function pageData(file) {
    const text = fs.readFileSync(file, 'utf8');
    const found = text.match(/<script type="application\/json" id="qkv-data">(.*?)<\/script>/s);
    if (!found) throw new Error(`${file} has no data`);
    return JSON.parse(found[1]);
}

// The parts of a type, and of a figure its maps.
export const partsOf = (file, type) => pageData(file).parts.filter((part) => part.type === type);
export const figureData = (file) => partsOf(file, 'maps')[0];

// The head that a figure shows, for a prompt.
export function headOf(data, prompt = 0) {
    const { tokens, scores } = data.prompts[prompt];
    return new attention.ScoredHead({ n: tokens.length, scores: attention.decodeMap(data.maps[scores]), causal: data.causal,
                                      window: data.window, softcap: data.softcap, sink: data.sink, slope: data.slope });
}
