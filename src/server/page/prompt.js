// The prompt: a text or a conversation, and its tokens.
//
//     const panel = new PromptPanel(element, { examples });
//     panel.set(prompt, { hasChat, keptChat });      panel.onchange = (prompt, typing) => ...;
import { el, fillSelect } from './text.js';
import { Chips } from './chips.js';

const TYPING_REST = 350; // milliseconds without a key before what was typed is used

export class PromptPanel {
    constructor(element, { examples }) {
        this.prompt = { text: '' };
        this.keptChat = null; // the conversation that a text was made of
        this.onchange = () => {};
        this.text = el('textarea', {
            rows: '3',
            'aria-label': 'Prompt',
            dir: 'auto',
            spellcheck: 'false',
            oninput: () => this.typed(),
        });
        this.special = el('input', { type: 'checkbox', onchange: () => this.typed(0) });
        const tab = (mode, label) =>
            el(
                'button',
                { type: 'button', 'data-mode': mode, 'aria-pressed': 'false', onclick: () => this.setMode(mode) },
                label,
            );
        this.tabs = [tab('text', 'Text'), tab('chat', 'Chat')];
        const example = el('select', {
            'aria-label': 'Examples',
            onchange: () => {
                this.keptChat = null;
                if (example.value) this.use({ text: example.value });
                example.value = '';
            },
        });
        fillSelect(example, [
            ['', 'Examples…'],
            ...examples.map((text) => [text, text.length > 44 ? `${text.slice(0, 43)}…` : text]),
        ]);
        this.chat = el('div', { class: 'chat', hidden: true });
        this.error = el('p', { class: 'edit-error', role: 'alert', hidden: true });
        const tokens = el('div', { class: 'prompt-tokens' });
        element.append(
            el('div', { class: 'row' }, ...this.tabs, example),
            this.text,
            this.chat,
            el(
                'label',
                { class: 'soft', title: 'Names of special tokens, such as </s>, become those tokens' },
                this.special,
                'read names of special tokens',
            ),
            this.error,
            tokens,
        );
        this.chips = new Chips(tokens);
    }

    set(prompt, { hasChat, keptChat }) {
        clearTimeout(this.timer);
        Object.assign(this, { prompt, hasChat, keptChat });
        this.special.checked = Boolean(prompt.parse_special);
        this.show();
    }

    get mode() {
        return this.prompt.chat ? 'chat' : 'text';
    }

    // Fields are filled from the prompt, but not while they are typed into.
    show() {
        for (const tab of this.tabs) tab.setAttribute('aria-pressed', String(tab.dataset.mode === this.mode));
        this.tabs[1].disabled = !this.hasChat && this.mode !== 'chat';
        this.tabs[1].title = this.hasChat ? '' : 'This model has no chat template';
        this.text.hidden = this.mode === 'chat';
        this.chat.hidden = this.mode !== 'chat';
        if (this.mode === 'chat') this.buildChat();
        else {
            const text = this.prompt.tokens ? '' : this.prompt.text;
            if (this.text.value !== text) this.text.value = text;
            this.text.placeholder = this.prompt.tokens ? `${this.prompt.tokens.length} token ids` : '';
        }
    }

    // A text has room for one turn, the last. The others, and the system's, are there again when it becomes a chat.
    setMode(mode) {
        if (mode === this.mode) return;
        clearTimeout(this.timer);
        const { chat, text = '' } = this.readFields();
        if (mode === 'text') {
            this.keptChat = chat;
            return this.use({ text: chat.turns.at(-1).content });
        }
        const { turns, ...rest } = this.keptChat ?? { turns: [{ role: 'user' }] };
        this.use({ chat: { ...rest, turns: [...turns.slice(0, -1), { ...turns.at(-1), content: text }] } });
    }

    use(prompt) {
        this.prompt = this.withSpecial(prompt);
        this.show();
        this.onchange(this.prompt, false);
    }

    withSpecial(prompt) {
        return this.special.checked ? { ...prompt, parse_special: true } : prompt;
    }

    // What the fields say.
    readFields() {
        if (this.mode === 'chat') return { chat: this.readChat() };
        return this.prompt.tokens && !this.text.value ? { tokens: this.prompt.tokens } : { text: this.text.value };
    }

    typed(rest = TYPING_REST) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
            this.prompt = this.withSpecial(this.readFields());
            this.onchange(this.prompt, rest > 0);
        }, rest);
    }

    // ---- conversations ----

    buildChat() {
        const { system = '', turns } = this.prompt.chat;
        const area = (label, value, rows) =>
            el(
                'textarea',
                { rows, 'aria-label': label, dir: 'auto', spellcheck: 'false', oninput: () => this.typed() },
                value,
            );
        this.system = area('System', system, '1');
        this.system.placeholder = 'System (may be empty)';
        const turnNodes = turns.map((turn, i) => {
            const last = i === turns.length - 1;
            const content = area(`Turn ${i + 1}, ${turn.role}`, turn.content, '2');
            content.dataset.role = turn.role;
            const remove = last
                ? null
                : el(
                      'button',
                      {
                          type: 'button',
                          class: 'quiet',
                          'aria-label': `Remove turn ${i + 1}`,
                          onclick: () => this.changeTurns((list) => list.filter((_, k) => k !== i)),
                      },
                      '✕',
                  );
            return el('div', { class: 'turn' }, el('span', { class: 'soft' }, turn.role), content, remove);
        });
        const add = el(
            'button',
            {
                type: 'button',
                onclick: () =>
                    this.changeTurns((list) => [
                        ...list.slice(0, -1),
                        list.at(-1),
                        { role: 'assistant', content: '' },
                        { role: 'user', content: '' },
                    ]),
            },
            '+ Add turn',
        );
        this.chat.replaceChildren(this.system, ...turnNodes, add);
    }

    readChat() {
        const turns = [...this.chat.querySelectorAll('.turn textarea')].map((node) => ({
            role: node.dataset.role,
            content: node.value,
        }));
        const { date } = this.prompt.chat, // there is no field for it: it is kept
            chat = date ? { date, turns } : { turns };
        return this.system.value ? { system: this.system.value, ...chat } : chat;
    }

    changeTurns(change) {
        const chat = this.readChat();
        this.use({ chat: { ...chat, turns: change(chat.turns) } });
    }

    setError(message) {
        this.error.hidden = !message;
        this.error.textContent = message || '';
    }
}
