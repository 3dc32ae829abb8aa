// Light or dark: as the system has it, or as chosen. The choice is kept in this browser, not in the address.

const CHOICES = ['auto', 'light', 'dark'];

export class ThemeSwitch {
    constructor(button, onchange) {
        this.button = button;
        this.onchange = onchange;
        this.choice = this.read();
        this.apply();
        button.addEventListener('click', () => {
            this.choice = CHOICES[(CHOICES.indexOf(this.choice) + 1) % CHOICES.length];
            this.write();
            this.apply();
            onchange();
        });
        window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', onchange);
    }

    apply() {
        if (this.choice === 'auto') delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = this.choice;
        this.button.textContent = `Theme: ${this.choice}`;
    }

    // A page in a frame may have no storage.
    read() {
        try {
            const kept = localStorage.getItem('qkv-theme');
            return CHOICES.includes(kept) ? kept : 'auto';
        } catch {
            return 'auto';
        }
    }

    write() {
        try {
            localStorage.setItem('qkv-theme', this.choice);
        } catch {
            // It holds until the page is closed.
        }
    }
}
