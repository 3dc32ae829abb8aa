export class OfflinePlot {
    constructor(root, data, palette) {
        Object.assign(this, { root, data, palette });
    }

    forgetTheme() {}
}
