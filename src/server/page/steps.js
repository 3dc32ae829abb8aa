// The steps that were taken on the page, as entries of the browser's history: Back and Forward, Undo and Redo move between
// them. Each entry has its number, and its fragment holds all of the state.
//
//     const steps = new Steps({ undo, redo });        // buttons
//     steps.begin();
//     steps.take(fragment, group);                    // before a change: what comes now is another step
//     steps.write(fragment);                          // the state of the step that is shown
//     steps.setPending(drop);                         // a step is being prepared: Undo drops it; null: none is
//     steps.onmove = (hash, kept) => ...;                   // another step is to be shown
//     steps.fragment = () => ...;                     // of the state as it is
//     steps.kept = () => ({ .. });                    // what else of it a step keeps: it is given to onmove again

const LAST_STEP = 'qkv-last-step'; // of the tab's storage
const GROUP_REST = 1500; // milliseconds: later changes of a group are a step of their own

export class Steps {
    constructor({ undo, redo }) {
        Object.assign(this, { undoButton: undo, redoButton: redo });
        this.group = null;
        this.held = false;
        this.pending = null;
        this.onmove = () => {};
        this.fragment = () => location.hash;
        this.kept = () => ({});
    }

    begin() {
        this.at = history.state?.step ?? 0;
        this.last = Math.max(this.at, history.state ? storedLast() : 0);
        history.replaceState({ ...history.state, step: this.at }, '');
        this.written = location.hash;
        window.addEventListener('popstate', (event) => this.moved(event.state));
        this.undoButton.addEventListener('click', () => this.undo());
        this.redoButton.addEventListener('click', () => this.redo());
        document.addEventListener('keydown', (event) => this.keyPressed(event));
        this.show();
    }

    // group: changes of one kind that follow each other, as those of a slider, are one step; null: a step of its own.
    take(group = null) {
        const now = performance.now(),
            goesOn = group !== null && group === this.group && (this.held || now - this.time < GROUP_REST);
        this.group = group;
        this.time = now;
        if (goesOn) return;
        this.write(this.fragment());
        this.last = ++this.at;
        history.pushState({ step: this.at }, '', location.hash);
        this.show();
    }

    write(fragment) {
        history.replaceState({ ...this.kept(), step: this.at }, '', fragment);
        this.written = location.hash;
    }

    // While a slider is held its moves are one step, however long it rests; each time that it is taken hold of is another.
    hold(on) {
        this.held = on;
        if (on) this.group = null;
    }

    // An entry without a number is a new one: the address was changed by hand, or by a link.
    moved(state) {
        if (Number.isInteger(state?.step)) this.at = state.step;
        else this.last = ++this.at;
        this.last = Math.max(this.last, this.at);
        this.group = null;
        history.replaceState({ ...state, step: this.at }, '');
        this.written = location.hash;
        this.show();
        this.onmove(location.hash, history.state);
    }

    show() {
        storeLast(this.last);
        this.undoButton.disabled = this.at <= 0 && !this.pending;
        this.redoButton.disabled = this.at >= this.last;
    }

    setPending(drop) {
        this.pending = drop;
        this.show();
    }

    undo() {
        if (this.pending) return this.pending();
        if (this.at <= 0) return;
        this.write(this.fragment());
        history.back();
    }

    redo() {
        if (this.at >= this.last) return;
        this.write(this.fragment());
        history.forward();
    }

    // In fields with text the keys undo what was typed there, as everywhere.
    keyPressed(event) {
        const key = event.key.toLowerCase();
        if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.closest?.('textarea, input:not([type=range], [type=checkbox])')) return;
        if (key === 'z' && !event.shiftKey) this.undo();
        else if (key === 'y' || key === 'z') this.redo();
        else return;
        event.preventDefault();
    }
}

// How many steps there are outlives a reload, as the history does. A browser may keep nothing for pages: then Redo waits
// for the next step.
function storedLast() {
    try {
        return Number(sessionStorage.getItem(LAST_STEP)) || 0;
    } catch {
        return 0;
    }
}

function storeLast(last) {
    try {
        sessionStorage.setItem(LAST_STEP, String(last));
    } catch {
        // Not kept.
    }
}
