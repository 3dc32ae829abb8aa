// The picture of the explorer in the README: node tests/browser/screenshot.mjs [OUT.png]. Wants tinyllama (qkv pull).
import { Stage } from './stage.mjs';

const stage = new Stage('screenshot');
try {
    const server = await stage.serve(['-m', 'tinyllama', '-p', 'The river runs past the old mill and down to the sea.']);
    const hash = '#l=15&h=16&e=q@15.h16=scale:0.3';
    const page = await stage.open(server.url, { hash, viewport: { width: 1500, height: 1060 } });
    await page.screenshot({ path: process.argv[2] || 'docs/images/explorer.png' });
} finally {
    await stage.close();
}
