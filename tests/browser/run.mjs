// Runs one case of the browser tests: node run.mjs NAME runs case_NAME of a cases_*.mjs.
//
// Exit 0: passed; 1: failed, with the reason and a screenshot's place; 77: could not run here, and why.
// The environment says where things are: QKV the program, QKV_BROWSER_DEPS the folder with node_modules
// (scripts/setup.sh browser makes it), QKV_CHROMIUM the browser, MODELS the folder of the model that ships with qkv.
import fs from 'node:fs';
import path from 'node:path';
import url from 'node:url';
import { Stage, SkippedHere } from './stage.mjs';

const here = path.dirname(url.fileURLToPath(import.meta.url));

async function findCase(name) {
    for (const file of fs.readdirSync(here).filter((entry) => /^cases_.*\.mjs$/.test(entry))) {
        const cases = await import(url.pathToFileURL(path.join(here, file)));
        if (cases[`case_${name}`]) return cases[`case_${name}`];
    }
    throw new Error(`there is no case_${name}`);
}

const name = process.argv[2];
const stage = new Stage(name);
let code = 0;
try {
    await (
        await findCase(name)
    )(stage);
    stage.checkQuiet();
    console.log(`${name}: passed`);
} catch (error) {
    if (error instanceof SkippedHere) {
        console.log(`skipped: browser_${name}: ${error.message}`);
        code = 77;
    } else {
        console.error(`${name}: failed\n${error.stack || error}`);
        await stage.keepScreenshot();
        code = 1;
    }
} finally {
    await stage.close();
}
process.exit(code);
