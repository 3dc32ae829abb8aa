/*
 * Cells and blocks are never listed: a number is taken apart into prompt, layer, head, target and
 * setting, so that memory does not depend on how many there are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/sized.h"
#include "base/text.h"
#include "sweep/patching.h"
#include "sweep/sweep.h"

/* Variants in one plan: more of them save nothing, and what is measured is kept for all of them. */
enum { LARGEST_BLOCK = 64 };

#define LARGEST_SWEEP ((int64_t)1 << 40)

static int multiply(int64_t *n, size_t by) {
    if (by && *n > LARGEST_SWEEP / (int64_t)by) return 0;
    *n *= (int64_t)by;
    return 1;
}

int qkv_sweep_count(qkv_sweep *s, qkv_error *err) {
    s->n_groups = s->n_prompts;
    s->first_baseline = s->baseline && s->at_output;
    s->per_head = (int64_t)(s->n_targets * s->n_settings) + (s->baseline && !s->at_output);
    s->per_layer = s->per_head;
    int64_t all = 0;
    int fits = multiply(&s->per_layer, s->n_heads);
    s->per_prompt = s->per_layer;
    fits = fits && multiply(&s->per_prompt, s->n_layers);
    s->per_prompt += s->first_baseline;
    all = s->per_prompt;
    if (!fits || !multiply(&all, s->n_prompts))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the sweep has more than 10^12 cells");
    if (s->per_layer == 0 || s->n_targets == 0) { /* one plan for the whole prompt */
        s->block_cells = s->per_prompt;
        s->layer_blocks = 0;
        s->prompt_blocks = 1;
        return QKV_OK;
    }
    s->block_cells = s->isolated && s->per_layer > LARGEST_BLOCK ? LARGEST_BLOCK : s->per_layer;
    s->layer_blocks = (s->per_layer + s->block_cells - 1) / s->block_cells;
    s->prompt_blocks = s->layer_blocks * (int64_t)s->n_layers + s->first_baseline;
    return QKV_OK;
}

/* ---- cells ---- */

/* A cell as numbers. target and setting count when it is not the baseline. */
typedef struct place {
    size_t prompt;
    int32_t layer, head;
    int64_t slot; /* in its head, the baseline being none */
    int is_baseline;
    size_t target, setting;
} place;

static place place_of(const qkv_sweep *s, int64_t id) {
    place p = {.prompt = (size_t)(id / s->per_prompt), .layer = -1, .head = -1, .slot = -1};
    int64_t rest = id % s->per_prompt - s->first_baseline;
    if (rest < 0) {
        p.is_baseline = 1;
        return p;
    }
    p.layer = s->layers[rest / s->per_layer];
    rest %= s->per_layer;
    p.head = s->heads[rest / s->per_head];
    rest %= s->per_head;
    p.slot = rest - (s->baseline && !s->at_output);
    if (p.slot < 0) {
        p.is_baseline = 1;
        return p;
    }
    p.target = (size_t)p.slot / s->n_settings;
    p.setting = (size_t)p.slot % s->n_settings;
    return p;
}

/* "q@3.h1=scale:0.5": of one head, or of the heads in a list. */
static void append_edit(const qkv_sweep *s, const place *p, const char *heads, qkv_text *text) {
    qkv_text_printf(text, "%s@", qkv_site_name(s->targets[p->target]));
    if (p->layer == QKV_TOGETHER)
        qkv_text_puts(text, "*");
    else
        qkv_text_printf(text, "%d", (int)p->layer);
    if (heads)
        qkv_text_printf(text, ".h%s", heads);
    else if (p->head != QKV_TOGETHER)
        qkv_text_printf(text, ".h%d", (int)p->head);
    qkv_text_printf(text, "=%s", s->settings[p->setting].text);
}

static qkv_cell make_cell(const qkv_sweep *sweep, int64_t id) {
    place p = place_of(sweep, id);
    qkv_cell cell = {.size = sizeof cell,
                     .id = id,
                     .prompt = p.prompt,
                     .layer = p.layer,
                     .head = p.head,
                     .target = "none",
                     .op = "",
                     .epsilon = NAN,
                     .position = -1};
    if (p.is_baseline) return cell;
    cell.target = qkv_site_name(sweep->targets[p.target]);
    cell.op = sweep->settings[p.setting].op;
    cell.epsilon = sweep->settings[p.setting].epsilon;
    qkv_text edit = {0};
    append_edit(sweep, &p, NULL, &edit);
    snprintf(cell.edit, sizeof cell.edit, "%s", edit.data ? edit.data : "");
    qkv_text_release(&edit);
    return cell;
}

int qkv_sweep_get_cell(const qkv_sweep *sweep, int64_t id, qkv_cell *out) {
    if (!sweep || !out || id < 0 || id >= qkv_sweep_n_cells(sweep)) return 0;
    const qkv_cell cell = sweep->patching ? qkv_patching_cell(sweep, id) : make_cell(sweep, id);
    const int is_whole = !cell.op[0] || cell.edit[0]; /* memory may be short for the edit */
    return qkv_sized_write(out, &cell, sizeof cell, "qkv_cell", NULL) == QKV_OK && is_whole;
}

int64_t qkv_cell_variant(const qkv_sweep *sweep, int64_t id) {
    place p = place_of(sweep, id);
    if (p.is_baseline) return -1;
    return sweep->isolated ? id : p.slot;
}

void qkv_cell_variant_text(const qkv_sweep *sweep, int64_t id, char **text) {
    place p = place_of(sweep, id);
    /* Query heads are named also where all of them are meant: on k and v that edits what each
     * query head sees, exactly as the cells' own edits do. */
    char *heads = sweep->isolated ? NULL : qkv_sweep_list(sweep->heads, sweep->n_heads);
    qkv_text edit = {0};
    append_edit(sweep, &p, heads, &edit);
    if (!sweep->isolated && !heads) edit.failed = 1;
    free(heads);
    if (edit.failed) qkv_text_release(&edit);
    *text = edit.data;
}

char *qkv_sweep_list(const int32_t *numbers, size_t n) {
    qkv_text list = {0};
    if (n == 1 && numbers[0] == QKV_TOGETHER) qkv_text_puts(&list, "*");
    for (size_t i = 0; i < n && numbers[i] != QKV_TOGETHER; i++)
        qkv_text_printf(&list, "%s%d", i ? "," : "", (int)numbers[i]);
    if (list.failed) qkv_text_release(&list);
    return list.data;
}

/* ---- blocks ---- */

int64_t qkv_sweep_n_cells(const qkv_sweep *sweep) {
    return sweep ? sweep->per_prompt * (int64_t)sweep->n_groups : 0;
}

int64_t qkv_sweep_n_blocks(const qkv_sweep *sweep) {
    return sweep ? sweep->prompt_blocks * (int64_t)sweep->n_groups : 0;
}

int64_t qkv_sweep_block(const qkv_sweep *s, int64_t block, int64_t *n_cells) {
    int64_t ignored;
    if (!n_cells) n_cells = &ignored;
    *n_cells = 0;
    if (block < 0 || block >= qkv_sweep_n_blocks(s)) return -1;
    if (s->patching) return qkv_patching_block(s, block, n_cells);
    int64_t first = block / s->prompt_blocks * s->per_prompt;
    int64_t rest = block % s->prompt_blocks - s->first_baseline;
    *n_cells = s->layer_blocks ? 1 : s->block_cells;
    if (rest < 0 || s->layer_blocks == 0) return first;
    int64_t within = rest % s->layer_blocks * s->block_cells;
    *n_cells = s->per_layer - within < s->block_cells ? s->per_layer - within : s->block_cells;
    return first + s->first_baseline + rest / s->layer_blocks * s->per_layer + within;
}

int64_t qkv_sweep_unit(const qkv_sweep *sweep, int64_t n_workers) {
    if (!sweep) return 0;
    return (int64_t)sweep->n_groups >= n_workers ? sweep->prompt_blocks : 1;
}
