// The banner below the head of the page: something went wrong, or the server does not answer, or not to this page.
import { el } from './text.js';

export class Banner {
    // fragment: gives what goes along to another address of the server.
    constructor(element, fragment) {
        this.element = element;
        this.fragment = fragment;
        this.why = null;
    }

    hide() {
        this.why = null;
        this.element.hidden = true;
    }

    show(...parts) {
        this.element.replaceChildren(...parts);
        this.element.hidden = false;
    }

    showProblem(message) {
        this.showNotice(message, el('b', {}, 'Problem:'));
    }

    // Nothing is wrong, but it should be known.
    showNotice(message, ...title) {
        this.why = null;
        const close = el(
            'button',
            { type: 'button', class: 'quiet', 'aria-label': 'Dismiss', onclick: () => this.hide() },
            '✕',
        );
        this.show(...title, el('span', {}, message), close);
    }

    // why: 'gone', or 'refused' where it came back with another token. Asked again and again, it is shown once.
    showLost(why) {
        if (this.why === why) return;
        this.why = why;
        if (why === 'refused') {
            const text =
                'It was started again and has another token. Paste the address that it printed; ' +
                'what you see here goes along.';
            const title = el('b', {}, 'The server does not accept this page.');
            return this.show(title, el('span', {}, text), ...this.buildAddress());
        }
        this.show(
            el('b', {}, 'The server does not answer.'),
            el(
                'span',
                {},
                'It is asked again every few seconds. Nothing on this page is lost: what you change now is ' +
                    'computed when it is back.',
            ),
        );
    }

    buildAddress() {
        const address = el('input', {
            type: 'url',
            'aria-label': 'New address',
            placeholder: 'http://127.0.0.1:…/?token=…',
        });
        const go = () => {
            try {
                const target = new URL(address.value.trim());
                if (!/^https?:$/.test(target.protocol)) throw new TypeError('not an address');
                target.hash = this.fragment();
                location.href = target.href;
            } catch {
                address.setAttribute('aria-invalid', 'true');
            }
        };
        return [address, el('button', { type: 'button', class: 'strong', onclick: go }, 'Continue there')];
    }
}
