/* Cells and blocks of patching: numbers taken apart, as in cells.c. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/text.h"
#include "sweep/patching_paths.h"
#include "sweep/sweep.h"

enum {
    N_UNEDITED = 2, /* cells of a pair that come first: its two prompts as they are */
    LARGEST_BLOCK = 64
};
#define LARGEST_SWEEP ((int64_t)1 << 40)

static int64_t n_columns(const qkv_sweep *s, const qkv_patch_map *map) {
    return (int64_t)(map->by_head ? s->n_heads : s->patching->n_positions);
}

int qkv_patching_count(qkv_sweep *s, qkv_error *err) {
    qkv_patching *p = s->patching;
    s->n_groups = p->n_pairs;
    s->per_layer = 0;
    for (size_t i = 0; i < p->n_maps; i++) s->per_layer += n_columns(s, &p->maps[i]);
    assert(s->per_layer > 0); /* no list of a specification is empty, and every target is a map */
    const double all =
        (double)s->per_layer * (double)s->n_layers * (double)p->n_directions * (double)p->n_pairs;
    if (all > (double)LARGEST_SWEEP)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the sweep has more than 10^12 cells");
    p->per_run = s->per_layer * (int64_t)s->n_layers;
    s->per_prompt = N_UNEDITED + p->per_run * (int64_t)p->n_directions;
    s->block_cells = s->per_layer < LARGEST_BLOCK ? s->per_layer : LARGEST_BLOCK;
    s->layer_blocks = (s->per_layer + s->block_cells - 1) / s->block_cells;
    s->prompt_blocks = 1 + s->layer_blocks * (int64_t)s->n_layers * (int64_t)p->n_directions;
    if (s->block_cells < N_UNEDITED) s->block_cells = N_UNEDITED;
    return QKV_OK;
}

/* ---- edits ---- */

static const char *op_of(size_t run) {
    return run == QKV_PATCH_CORRUPT ? "patch:clean" : "patch:corrupt";
}

int qkv_patching_is_one_length(const qkv_sweep *s, size_t pair) {
    return s->prompts[2 * pair].n_tokens == s->prompts[2 * pair + 1].n_tokens;
}

/* Are they the same positions in both prompts? */
static int is_even(const qkv_sweep *s, size_t pair) {
    return qkv_patching_is_one_length(s, pair) &&
           s->patching->pairs[pair].n_aligned == s->prompts[2 * pair].n_tokens;
}

/* What an edit of a run selects, and where that comes from in the other prompt: the aligned
 * positions [first, first + n). */
static void append_tokens(const qkv_sweep *s, const qkv_cell *cell, size_t first, size_t n,
                          qkv_text *text) {
    const qkv_patch_pair *pair = &s->patching->pairs[cell->prompt / 2];
    const int clean = cell->prompt % 2 == QKV_PATCH_CLEAN;
    const int32_t to = (clean ? pair->clean : pair->corrupt)[first];
    const int32_t from = (clean ? pair->corrupt : pair->clean)[first];
    const int32_t count = (int32_t)n;
    const int is_same = to == from && qkv_patching_is_one_length(s, cell->prompt / 2);
    if (n == 1 && is_same)
        qkv_text_printf(text, "[%d]", (int)to);
    else if (n == 1)
        qkv_text_printf(text, "[%d<-%d]", (int)to, (int)from);
    else if (is_same)
        qkv_text_printf(text, "[%d:%d]", (int)to, (int)(to + count));
    else
        qkv_text_printf(text, "[%d:%d<-%d:%d]", (int)to, (int)(to + count), (int)from,
                        (int)(from + count));
}

static void append_where(const qkv_cell *cell, qkv_text *text) {
    qkv_text_printf(text, "%s@%d", cell->target, (int)cell->layer);
    if (cell->head >= 0) qkv_text_printf(text, ".h%d", (int)cell->head);
}

/* What follows both prompts. */
static void append_more(const qkv_sweep *s, const qkv_cell *cell, size_t n_more, qkv_text *text) {
    const size_t to = s->prompts[cell->prompt].n_tokens;
    const size_t from = s->prompts[cell->prompt ^ 1u].n_tokens;
    qkv_text_puts(text, " + ");
    append_where(cell, text);
    if (to == from)
        qkv_text_printf(text, "[%zu:%zu]", to, to + n_more);
    else
        qkv_text_printf(text, "[%zu:%zu<-%zu:%zu]", to, to + n_more, from, from + n_more);
    qkv_text_printf(text, "=%s", cell->op);
}

/* One edit for every stretch of positions that keeps its distance. */
static void append_stretches(const qkv_sweep *s, const qkv_cell *cell, qkv_text *text) {
    const qkv_patch_pair *pair = &s->patching->pairs[cell->prompt / 2];
    for (size_t i = 0, n; i < pair->n_aligned; i += n) {
        for (n = 1; i + n < pair->n_aligned && pair->clean[i + n] == pair->clean[i] + (int32_t)n &&
                    pair->corrupt[i + n] == pair->corrupt[i] + (int32_t)n;
             n++) {}
        if (i) qkv_text_puts(text, " + ");
        append_where(cell, text);
        append_tokens(s, cell, i, n, text);
        qkv_text_printf(text, "=%s", cell->op);
    }
}

static size_t aligned_number(const qkv_patch_pair *pair, int64_t position) {
    size_t i = 0;
    while (i < pair->n_aligned && pair->clean[i] != position) i++;
    return i;
}

char *qkv_patching_edit(const qkv_sweep *s, const qkv_cell *cell, size_t n_more) {
    qkv_text text = {0};
    const size_t pair = cell->prompt / 2;
    if (cell->position < 0 && !is_even(s, pair)) {
        append_stretches(s, cell, &text);
        if (n_more) append_more(s, cell, n_more, &text);
    } else {
        append_where(cell, &text);
        if (cell->position >= 0)
            append_tokens(s, cell, aligned_number(&s->patching->pairs[pair], cell->position), 1,
                          &text);
        qkv_text_printf(&text, "=%s", cell->op);
    }
    if (s->patching->n_receivers) qkv_patching_append_freezes(s, cell->layer, &text);
    if (text.failed) qkv_text_release(&text);
    return text.data;
}

/* ---- cells ---- */

qkv_cell qkv_patching_cell(const qkv_sweep *s, int64_t id) {
    const qkv_patching *p = s->patching;
    const size_t pair = (size_t)(id / s->per_prompt);
    int64_t rest = id % s->per_prompt;
    qkv_cell cell = {.size = sizeof cell,
                     .id = id,
                     .prompt = 2 * pair + (size_t)rest,
                     .layer = -1,
                     .head = -1,
                     .target = "none",
                     .op = "",
                     .epsilon = NAN,
                     .position = -1};
    if (rest < N_UNEDITED) return cell;
    rest -= N_UNEDITED;
    const size_t run = p->directions[rest / p->per_run];
    rest %= p->per_run;
    cell.prompt = 2 * pair + run;
    cell.layer = s->layers[rest / s->per_layer];
    cell.op = op_of(run);
    rest %= s->per_layer;
    const qkv_patch_map *map = p->maps;
    for (; rest >= n_columns(s, map); map++) rest -= n_columns(s, map);
    cell.target = qkv_site_name(map->site);
    if (map->by_head)
        cell.head = s->heads[rest];
    else
        cell.position = p->positions[rest];
    char *edit = qkv_patching_edit(s, &cell, 0);
    snprintf(cell.edit, sizeof cell.edit, "%s", edit ? edit : "");
    free(edit);
    return cell;
}

int64_t qkv_patching_block(const qkv_sweep *s, int64_t block, int64_t *n_cells) {
    const int64_t first = block / s->prompt_blocks * s->per_prompt;
    int64_t rest = block % s->prompt_blocks;
    *n_cells = N_UNEDITED;
    if (rest == 0) return first;
    rest -= 1;
    const int64_t size = s->per_layer < LARGEST_BLOCK ? s->per_layer : LARGEST_BLOCK;
    const int64_t within = rest % s->layer_blocks * size;
    *n_cells = s->per_layer - within < size ? s->per_layer - within : size;
    return first + N_UNEDITED + rest / s->layer_blocks * s->per_layer + within;
}

/* ---- positions ---- */

int64_t qkv_patching_at(const qkv_sweep *s, size_t prompt) {
    const int64_t at = s->patching->at;
    return at < 0 ? at + (int64_t)s->prompts[prompt].n_tokens : at;
}

int qkv_patching_is_idle(const qkv_sweep *s, const qkv_cell *cell) {
    const size_t pair = cell->prompt / 2;
    return cell->position >= 0 && is_even(s, pair) &&
           cell->position < s->patching->pairs[pair].first_difference;
}
