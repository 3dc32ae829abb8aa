/*
 * The page of a figure. Its part "maps" has tokens, panels, factors, and numbers, each map once; where the figure was
 * measured the parts of its report follow.
 *
 * A page is bounded. Maps are kept in F32 up to MOST_EXACT bytes. Beyond that, those that the page can
 * make of scores are left to it; what still is too much is kept in F16, and then pooled. Scores
 * are F32 or not there (figure_scores.c). The page says which.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "study/html_page.h"
#include "study/report.h"

enum { MOST_EXACT = 4 << 20, MOST_BYTES = 8 << 20, MOST_POOLED = 512 };

/* One map of the page, and what became of it. */
typedef struct stored_map {
    html_map map;
    float *own;      /* of a pooled one */
    int is_scores;   /* stays as it is */
    int can_be_made; /* by the page, of scores */
    int is_left_out;
    json_int_t index; /* among those written */
} stored_map;

typedef struct map_store {
    stored_map *items;
    size_t n, capacity;
    html_type type;
    size_t pooled; /* tokens on a side of a cell; 0: nothing was pooled */
    size_t bytes;  /* of all numbers */
} map_store;

/* ---- which maps ---- */

static int same_map(const html_map *a, const html_map *b) {
    return a->rows == b->rows && a->cols == b->cols && a->causal == b->causal &&
           a->window == b->window &&
           memcmp(a->values, b->values, a->rows * a->cols * sizeof *a->values) == 0;
}

/* Its number, also where one with the same bits is there; SIZE_MAX when memory is short. */
static size_t add_map(map_store *store, html_map map, int can_be_made) {
    map.is_masked = qkv_html_map_is_masked(&map);
    for (size_t i = 0; i < store->n; i++) {
        stored_map *other = &store->items[i];
        if (other->is_scores || !same_map(&other->map, &map)) continue;
        other->can_be_made &= can_be_made;
        return i;
    }
    const stored_map item = {.map = map, .can_be_made = can_be_made};
    return QKV_PUSH(store->items, store->capacity, store->n, item) ? store->n - 1 : SIZE_MAX;
}

static size_t add_scores(map_store *store, html_map map) {
    /* What the mask takes away is never read where weights are made of them. */
    map.is_masked = map.causal || map.window > 0;
    const stored_map item = {.map = map, .is_scores = 1};
    return QKV_PUSH(store->items, store->capacity, store->n, item) ? store->n - 1 : SIZE_MAX;
}

/* ---- how they are kept ---- */

static size_t count_bytes(const map_store *store, html_type type) {
    size_t bytes = 0;
    for (size_t i = 0; i < store->n; i++) {
        const stored_map *item = &store->items[i];
        if (item->is_left_out || item->is_scores) continue;
        bytes += qkv_html_map_count(&item->map) * (type == HTML_F16 ? 2 : 4);
    }
    return bytes;
}

static void leave_out(map_store *store) {
    for (size_t i = 0; i < store->n; i++) {
        store->items[i].is_left_out = store->items[i].can_be_made;
    }
}

static size_t longest_side(const map_store *store, size_t *n_maps) {
    size_t most = 0;
    *n_maps = 0;
    for (size_t i = 0; i < store->n; i++) {
        const stored_map *item = &store->items[i];
        if (item->is_scores || item->is_left_out) continue;
        ++*n_maps;
        if (item->map.rows == item->map.cols && item->map.rows > most) most = item->map.rows;
    }
    return most;
}

/* Maps of queries and keys get fewer cells; other tables are small. */
static int pool_maps(map_store *store, qkv_error *err) {
    size_t n_maps, side = longest_side(store, &n_maps), step = 1;
    while (side / step > MOST_POOLED ||
           (side / step > 16 && n_maps * (side / step) * (side / step) * 2 > MOST_BYTES)) {
        step++;
    }
    int status = QKV_OK;
    for (size_t i = 0; i < store->n && status == QKV_OK && step > 1; i++) {
        stored_map *item = &store->items[i];
        if (item->is_scores || item->is_left_out || item->map.rows != item->map.cols) continue;
        html_map pooled;
        status = qkv_html_map_pool(&item->map, step, &pooled, err);
        item->own = (float *)pooled.values;
        item->map = pooled;
        store->pooled = step;
    }
    return status;
}

static int choose_storage(map_store *store, qkv_error *err) {
    int status = QKV_OK;
    if (count_bytes(store, HTML_F32) > MOST_EXACT) leave_out(store);
    if (count_bytes(store, HTML_F32) > MOST_EXACT) store->type = HTML_F16;
    if (count_bytes(store, store->type) > MOST_BYTES) status = pool_maps(store, err);
    json_int_t index = 0;
    store->bytes = count_bytes(store, store->type);
    for (size_t i = 0; i < store->n; i++) {
        stored_map *item = &store->items[i];
        if (item->is_scores) store->bytes += qkv_html_map_count(&item->map) * sizeof(float);
        if (!item->is_left_out) item->index = index++;
    }
    return status;
}

static json_t *write_maps(const map_store *store) {
    json_t *list = json_array();
    for (size_t i = 0; i < store->n; i++) {
        const stored_map *item = &store->items[i];
        if (item->is_left_out) continue;
        json_t *map = qkv_html_map_json(&item->map, item->is_scores ? HTML_F32 : store->type);
        if (qkv_json_push(list, map) != 0) return json_decref(list), NULL;
    }
    return list;
}

static void release_store(map_store *store) {
    for (size_t i = 0; i < store->n; i++) free(store->items[i].own);
    free(store->items);
}

/* ---- the figure ---- */

/* Where the maps of prompts and panels are in the store; SIZE_MAX: there is none. */
typedef struct figure_maps {
    size_t *plain, *scores; /* per prompt */
    size_t *before, *shown; /* per panel */
    map_store store;
} figure_maps;

static void release_maps(figure_maps *maps) {
    free(maps->plain);
    free(maps->scores);
    free(maps->before);
    free(maps->shown);
    release_store(&maps->store);
}

static int reserve_maps(figure_maps *maps, size_t n_prompts, size_t n_panels, qkv_error *err) {
    maps->plain = qkv_calloc(n_prompts, sizeof *maps->plain);
    maps->scores = qkv_calloc(n_prompts, sizeof *maps->scores);
    maps->before = qkv_calloc(n_panels, sizeof *maps->before);
    maps->shown = qkv_calloc(n_panels, sizeof *maps->shown);
    const int there = maps->plain && maps->scores && maps->before && maps->shown;
    return there ? QKV_OK : qkv_fail_memory(err);
}

static html_map prompt_map(const qkv_figure *fig, size_t prompt, const float *values) {
    const size_t n = fig->prompts.items[prompt].n_tokens;
    const int has_mask = fig->site == QKV_SITE_PATTERN;
    return (html_map){.values = values,
                      .rows = n,
                      .cols = n,
                      .step = 1,
                      .causal = has_mask && fig->scores->causal,
                      .window = has_mask ? fig->scores->window : 0};
}

static int collect_prompts(const qkv_figure *fig, figure_maps *maps, qkv_error *err) {
    for (size_t p = 0; p < fig->prompts.n; p++) {
        const float *scores = fig->scores->maps[p];
        maps->plain[p] = maps->scores[p] = SIZE_MAX;
        if (fig->plain[p]) {
            maps->plain[p] =
                add_map(&maps->store, prompt_map(fig, p, fig->plain[p]), scores != NULL);
            if (maps->plain[p] == SIZE_MAX) return qkv_fail_memory(err);
        }
        if (scores) {
            maps->scores[p] = add_scores(&maps->store, prompt_map(fig, p, scores));
            if (maps->scores[p] == SIZE_MAX) return qkv_fail_memory(err);
        }
    }
    return QKV_OK;
}

/* Of heads and rows. Pooled maps of heads keep the triangle. */
static html_map watched_map(const qkv_figure *fig, const figure_cell *cell, const float *values) {
    const int is_heads = fig->kind != QKV_FIGURE_ROWS;
    return (html_map){.values = values,
                      .rows = cell->map_rows,
                      .cols = cell->map_cols,
                      .step = cell->map_step,
                      .causal = is_heads && fig->scores->causal};
}

static int collect_panels(const qkv_figure *fig, figure_maps *maps, qkv_error *err) {
    const int is_watched = qkv_figure_is_watched(fig);
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        const html_map map = is_watched ? watched_map(fig, cell, cell->pattern)
                                        : prompt_map(fig, cell->prompt, cell->pattern);
        const int made = cell->factors.complete && fig->scores->maps[cell->prompt] != NULL;
        maps->before[i] = maps->plain[cell->prompt];
        maps->shown[i] = add_map(&maps->store, map, made);
        if (is_watched) {
            maps->before[i] = add_map(&maps->store, watched_map(fig, cell, cell->before), 0);
        }
        if (maps->shown[i] == SIZE_MAX || maps->before[i] == SIZE_MAX) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

/* null: the page makes it of scores. */
static json_t *map_index(const figure_maps *maps, size_t at) {
    if (at == SIZE_MAX || maps->store.items[at].is_left_out) return json_null();
    return json_integer(maps->store.items[at].index);
}

/* ---- JSON ---- */

static json_t *describe_tokens(const uint8_t *tokens, size_t n) {
    if (!tokens) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, json_integer(tokens[i]));
    return list;
}

static json_t *describe_factors(const edit_factors *factors, size_t n_tokens) {
    static const char *const axes[] = {
        [FACTOR_QUERY] = "query", [FACTOR_KEY] = "key", [FACTOR_NOTHING] = "none"};
    json_t *list = json_array();
    for (size_t i = 0; i < factors->n; i++) {
        const edit_factor *f = &factors->items[i];
        qkv_json_push(list,
                      json_pack("{s:o, s:s, s:o, s:s, s:o}", "target", qkv_json_text(f->target),
                                "site", f->site, "eps", qkv_json_exact(f->eps), "axis",
                                axes[f->axis], "tokens", describe_tokens(f->tokens, n_tokens)));
    }
    return list;
}

static json_t *describe_report(const report_panel *panel) {
    static const int shown[] = {REPORT_first_column, REPORT_diagonal,   REPORT_near_diagonal,
                                REPORT_far,          REPORT_uniformity, REPORT_tv};
    json_t *numbers = json_array();
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        qkv_json_push(numbers, json_pack("[s, o]", qkv_report_headings[shown[i]],
                                         qkv_json_real(panel->values[shown[i]])));
    }
    return json_pack("{s:s, s:o}", "class", panel->kind, "numbers", numbers);
}

static json_t *describe_panel(const qkv_figure *fig, const figure_maps *maps, size_t i) {
    const figure_cell *cell = &fig->cells[i];
    const size_t n_tokens = fig->prompts.items[cell->prompt].n_tokens;
    json_t *panel = json_pack(
        "{s:I, s:I, s:I, s:o, s:o, s:i, s:i, s:o, s:o, s:b, s:o}", "row",
        (json_int_t)(i / fig->cols), "col", (json_int_t)(i % fig->cols), "prompt",
        (json_int_t)cell->prompt, "title", qkv_json_text(cell->title ? cell->title : ""), "edits",
        qkv_json_text(cell->edits), "layer", (int)cell->layer, "head", (int)cell->head, "before",
        map_index(maps, maps->before[i]), "map", map_index(maps, maps->shown[i]), "scored",
        cell->factors.complete && fig->scores->maps[cell->prompt], "factors",
        describe_factors(&cell->factors, n_tokens));
    if (panel && fig->report) {
        qkv_json_put(panel, "report", describe_report(&fig->report->panels[i]));
    }
    return panel;
}

static json_t *describe_panels(const qkv_figure *fig, const figure_maps *maps) {
    json_t *list = json_array();
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        qkv_json_push(list, describe_panel(fig, maps, i));
    }
    return list;
}

static json_t *describe_prompt(const qkv_figure *fig, const figure_maps *maps, size_t p) {
    const qkv_own_prompt *prompt = &fig->prompts.items[p];
    json_t *tokens = qkv_html_texts((const char *const *)prompt->labels, prompt->n_tokens);
    json_t *text = prompt->text ? qkv_json_string(prompt->text, prompt->length) : json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "text", text, "tokens", tokens, "map",
                     map_index(maps, maps->plain[p]), "scores", map_index(maps, maps->scores[p]));
}

static json_t *describe_prompts(const qkv_figure *fig, const figure_maps *maps) {
    json_t *list = json_array();
    for (size_t p = 0; p < fig->prompts.n; p++) {
        qkv_json_push(list, describe_prompt(fig, maps, p));
    }
    return list;
}

static json_t *describe_look(const qkv_figure *fig) {
    const qkv_figure_options *o = &fig->options;
    return json_pack("{s:s, s:o, s:o, s:s, s:s, s:o, s:o, s:b, s:b, s:I, s:b}", "scale",
                     qkv_scale_name(fig->scale), "gamma", qkv_json_exact(fig->gamma), "floor",
                     qkv_json_exact(qkv_figure_log_floor(fig)), "colormap",
                     qkv_colormap_name(fig->colormap), "masked", qkv_masked_name(fig->masked),
                     "low", qkv_json_exact(fig->low), "high", qkv_json_exact(fig->high), "signed",
                     fig->is_signed, "diff", o->diff, "skip_keys", (json_int_t)o->skip_keys,
                     "sink_column", o->sink_column);
}

static json_t *describe_storage(const map_store *store) {
    int made = 0;
    for (size_t i = 0; i < store->n; i++) made |= store->items[i].is_left_out;
    return json_pack("{s:I, s:s, s:I, s:b}", "bytes", (json_int_t)store->bytes, "type",
                     store->type == HTML_F16 ? "F16" : "F32", "pooled", (json_int_t)store->pooled,
                     "made", made);
}

static json_t *describe(const qkv_figure *fig, const figure_maps *maps) {
    const figure_scores *all = fig->scores;
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "type", "maps", "kind", qkv_figure_kind_name(fig->kind), "site", qkv_site_name(fig->site),
        "rows", (json_int_t)fig->rows, "cols", (json_int_t)fig->cols, "layer", (int)fig->layer,
        "head", (int)fig->head, "causal", all->causal, "window", (int)all->window, "softcap",
        qkv_json_exact(all->softcap), "sink",
        all->has_sink ? qkv_json_exact(all->sink) : json_null(), "slope",
        qkv_json_exact(all->slope), "look", describe_look(fig), "row_names",
        qkv_html_texts((const char *const *)fig->row_names, fig->n_row_names), "storage",
        describe_storage(&maps->store), "prompts", describe_prompts(fig, maps), "panels",
        describe_panels(fig, maps), "maps", write_maps(&maps->store));
}

/* A list that memory ran short for lacks something. */
static int is_complete(const json_t *data, const qkv_figure *fig) {
    return data && json_array_size(json_object_get(data, "prompts")) == fig->prompts.n &&
           json_array_size(json_object_get(data, "panels")) == fig->rows * fig->cols;
}

int qkv_html_figure_part(const qkv_figure *fig, json_t **out, qkv_error *err) {
    figure_maps maps = {0};
    *out = NULL;
    int status = reserve_maps(&maps, fig->prompts.n, fig->rows * fig->cols, err);
    if (status == QKV_OK) status = collect_prompts(fig, &maps, err);
    if (status == QKV_OK) status = collect_panels(fig, &maps, err);
    if (status == QKV_OK) status = choose_storage(&maps.store, err);
    if (status == QKV_OK) *out = describe(fig, &maps);
    if (status == QKV_OK && !is_complete(*out, fig)) {
        json_decref(*out);
        *out = NULL;
        status = qkv_fail_memory(err);
    }
    release_maps(&maps);
    return status;
}

/* ---- the page ---- */

/* What became of the numbers, in words. */
static void put_about(const json_t *part, qkv_text *about) {
    const json_t *storage = json_object_get(part, "storage");
    const double bytes = (double)json_integer_value(json_object_get(storage, "bytes"));
    const int pooled = (int)json_integer_value(json_object_get(storage, "pooled"));
    const int is_made = json_is_true(json_object_get(storage, "made"));
    const int is_half = strcmp(json_string_value(json_object_get(storage, "type")), "F16") == 0;
    if (bytes < 1e6)
        qkv_text_printf(about, "%.0f kB", fmax(1, round(bytes / 1000)));
    else
        qkv_text_printf(about, "%.1f MB", bytes / 1e6);
    qkv_text_puts(about, " of numbers in this file");
    if (is_made)
        qkv_text_puts(about,
                      "; scores in F32, of which maps under factors are made when they are shown");
    if (is_half)
        qkv_text_puts(about, "; maps in half precision (three digits)");
    else if (!is_made)
        qkv_text_puts(about, "; maps in F32, the engine\xe2\x80\x99s own bits");
    if (pooled)
        qkv_text_printf(about, "; pooled: a cell is the largest of %d \xc3\x97 %d weights", pooled,
                        pooled);
    qkv_text_puts(about, ".");
}

int qkv_figure_html(const qkv_figure *fig, qkv_text *out, qkv_error *err) {
    const char *own = fig->title ? fig->title : "Attention Weights";
    json_t *parts = json_array(), *maps = NULL;
    qkv_text about = {0};
    int status = qkv_html_figure_part(fig, &maps, err);
    if (status == QKV_OK) {
        put_about(maps, &about);
        qkv_json_push(parts, maps);
        if (fig->report) qkv_report_parts(fig->report, parts);
        const html_page page = {.title = fig->options.title ? fig->options.title : own,
                                .name = own,
                                .small_print = fig->options.hide_notes ? NULL : fig->small_print,
                                .about = about.data,
                                .id = fig->id,
                                .recipe = fig->options.no_recipe ? NULL : fig->recipe,
                                .colormap = fig->colormap,
                                .parts = parts};
        status = about.failed ? qkv_fail_memory(err) : qkv_html_page_write(&page, out, err);
    }
    qkv_text_release(&about);
    json_decref(parts);
    return status;
}
