/*
 * One head's attention weights in block characters: queries down, keys across. Longer texts are put
 * together, several tokens to a cell, which shows the largest of its weights.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/columns.h"
#include "cli/run_changes.h"

enum { MOST_CELLS = 32, WIDE_CELLS = 12, LABEL_WIDTH = 14 };

typedef struct small_map {
    const float *weights; /* T x T */
    int64_t n_tokens, n_cells;
} small_map;

/* Tokens of cell i: from first_of(i) on, before first_of(i + 1). */
static int64_t first_of(const small_map *map, int64_t cell) {
    return cell * map->n_tokens / map->n_cells;
}

static float cell_of(const small_map *map, int64_t row, int64_t column) {
    float most = 0;
    for (int64_t i = first_of(map, row); i < first_of(map, row + 1); i++) {
        for (int64_t j = first_of(map, column); j < first_of(map, column + 1); j++) {
            const float w = map->weights[i * map->n_tokens + j];
            if (w > most) most = w;
        }
    }
    return most;
}

/* Of the least weights that they stand for. */
static const struct {
    float least;
    const char *block;
} blocks[] = {{0.75F, "█"}, {0.5F, "▓"}, {0.25F, "▒"}, {0.05F, "░"}, {1e-30F, "·"}};
#define BLOCKS_KEY "█ from 0.75, ▓ 0.5, ▒ 0.25, ░ 0.05, · less"

static const char *block_of(float weight) {
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (weight >= blocks[i].least) return blocks[i].block;
    }
    return " ";
}

/* Up to column n. */
static void print_row(const small_map *map, int64_t row, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        const char *block = block_of(cell_of(map, row, j));
        printf(map->n_cells <= WIDE_CELLS ? "%s%s" : "%s", block, block);
    }
}

/* After the last column that is not empty. */
static int64_t row_end(const small_map *map, int64_t row) {
    int64_t n = map->n_cells;
    while (n > 0 && *block_of(cell_of(map, row, n - 1)) == ' ') n--;
    return n;
}

/* The tokens of a row: the text of one, or where several begin and end. */
static void print_label(const cli_outcome *outcome, const small_map *map, int64_t row) {
    const int64_t first = first_of(map, row), last = first_of(map, row + 1) - 1;
    const int32_t *tokens = qkv_plan_tokens(outcome->plan, NULL);
    qkv_text label = {0}, shown = {0};
    if (first == last)
        cli_append_token(&label, outcome->model, tokens[first]);
    else
        qkv_text_printf(&label, "%" PRId64 "-%" PRId64, first, last);
    if (label.data && cli_columns(label.data) > LABEL_WIDTH)
        qkv_text_append_short(&shown, label.data, label.length, LABEL_WIDTH / 2);
    const char *whole = cli_shown(&label), *cut = cli_shown(&shown), *text = *cut ? cut : whole;
    const size_t columns = cli_columns(text);
    printf("%*s%s  ", columns < LABEL_WIDTH ? (int)(LABEL_WIDTH - columns) : 0, "", text);
    qkv_text_release(&shown);
    qkv_text_release(&label);
}

static void print_maps(const cli_outcome *outcome, const small_map *maps, size_t n,
                       const char *const *names) {
    const int64_t cells = maps[0].n_cells;
    const int width = (int)(cells <= WIDE_CELLS ? 2 * cells : cells);
    printf("%*s", LABEL_WIDTH + 2, "");
    for (size_t m = 0; m + 1 < n; m++) printf("%-*s  ", width, names[m]);
    printf("%s", names[n - 1]);
    putchar('\n');
    for (int64_t row = 0; row < cells; row++) {
        print_label(outcome, &maps[0], row);
        for (size_t m = 0; m < n; m++) {
            const int is_last = m + 1 == n;
            print_row(&maps[m], row, is_last ? row_end(&maps[m], row) : cells);
            if (!is_last) printf(" |");
        }
        putchar('\n');
    }
}

static small_map map_of(const qkv_tensor *pattern, size_t index) {
    const int64_t T = pattern->shape[2];
    return (small_map){.weights = pattern->data + (int64_t)index * T * T,
                       .n_tokens = T,
                       .n_cells = T < MOST_CELLS ? T : MOST_CELLS};
}

static const cli_change *largest_of(const cli_changes *changes) {
    const cli_change *largest = NULL;
    for (size_t i = 0; i < changes->n; i++) {
        const cli_change *change = &changes->items[i];
        if (change->head_tv > 0 && (!largest || change->head_tv > largest->head_tv))
            largest = change;
    }
    return largest;
}

/* The one head of a run without variants; 0 when there are none or several. */
static int find_single(const cli_outcome *outcome, int32_t *layer, qkv_tensor *found) {
    size_t variant, n = 0;
    qkv_site site;
    int32_t at;
    qkv_tensor tensor = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(outcome->result, i, &variant, &site, &at, &tensor); i++) {
        if (site != QKV_SITE_PATTERN || tensor.reduction != QKV_REDUCTION_NONE) continue;
        n += variant == 0 ? (size_t)tensor.n_heads : 2;
        *layer = at;
        *found = tensor;
    }
    return n == 1;
}

void cli_map_print(const cli_changes *changes, const cli_outcome *outcome) {
    const cli_change *change = largest_of(changes);
    qkv_tensor base = QKV_TENSOR_INIT, edited = QKV_TENSOR_INIT;
    int32_t layer;
    if (change && qkv_result_get(outcome->result, 0, QKV_SITE_PATTERN, change->layer, &base) &&
        qkv_result_get(outcome->result, change->variant, QKV_SITE_PATTERN, change->layer,
                       &edited)) {
        char name[32];
        const small_map maps[] = {map_of(&base, change->index), map_of(&edited, change->index)};
        const char *const names[] = {"v0", name};
        snprintf(name, sizeof name, "v%zu", change->variant);
        printf("\nlayer %" PRId32 ", head %" PRId32 " (queries down, keys across; " BLOCKS_KEY
               ")\n",
               change->layer, change->head);
        print_maps(outcome, maps, 2, names);
    } else if (find_single(outcome, &layer, &base)) {
        const small_map map = map_of(&base, 0);
        const char *const names[] = {"v0"};
        printf("\nlayer %" PRId32 ", head %" PRId32 " (queries down, keys across; " BLOCKS_KEY
               ")\n",
               layer, base.heads[0]);
        print_maps(outcome, &map, 1, names);
    }
}
