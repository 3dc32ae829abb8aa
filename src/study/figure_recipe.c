/* The recipe of a figure, written. See figure_recipe.h. */
#include "study/figure_recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "qkv/version.h"
#include "study/figure.h"

/* ---- inputs ---- */

static json_t *describe_tokens(const qkv_own_prompt *prompt) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        qkv_json_push(list, json_integer(prompt->tokens[i]));
    }
    return list;
}

/* Tokens are what counts; the text is for people, and so that a figure made of it is the same. */
static json_t *describe_prompt(const qkv_own_prompt *prompt) {
    json_t *input = json_pack("{s:o}", "tokens", describe_tokens(prompt));
    if (input && prompt->name) qkv_json_put(input, "name", qkv_json_text(prompt->name));
    if (!input || !prompt->text) return input;
    qkv_json_put(input, "text", qkv_json_string(prompt->text, prompt->length));
    if (prompt->flags & QKV_TOKENIZE_PARSE_SPECIAL)
        qkv_json_put(input, "parse_special", json_true());
    if (!(prompt->flags & QKV_TOKENIZE_ADD_SPECIAL))
        qkv_json_put(input, "add_special", json_false());
    return input;
}

json_t *qkv_recipe_prompts(const qkv_own_prompts *prompts) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompts->n; i++) {
        qkv_json_push(list, describe_prompt(&prompts->items[i]));
    }
    return list;
}

static json_t *describe_sides(const qkv_figure_side *sides, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        qkv_figure_side side = QKV_FIGURE_SIDE_INIT;
        qkv_sized_read_item(&side, sizeof side, sides, i, "qkv_figure_side", NULL);
        qkv_json_push(list,
                      json_pack("{s:o, s:o}", "label", qkv_json_text(side.label ? side.label : ""),
                                "edits", qkv_json_text(side.edits ? side.edits : "")));
    }
    return list;
}

/* ---- numbers ---- */

/* As many digits as an F32 needs. */
static json_t *number(double value) {
    return qkv_json_exact(qkv_round_digits(value, 9));
}

static json_t *describe_sample(const panel_summary *summary) {
    json_t *list = json_array();
    for (size_t i = 0; i < summary->n_sample; i++) {
        qkv_json_push(list, number(summary->sample[i]));
    }
    return list;
}

void qkv_recipe_add_summary(json_t *panel, const panel_summary *summary) {
    qkv_json_put(panel, "shape",
                 json_pack("[I, I]", (json_int_t)summary->n_rows, (json_int_t)summary->n_cols));
    qkv_json_put(panel, "digest", json_string(summary->digest));
    qkv_json_put(panel, "least", number(summary->least));
    qkv_json_put(panel, "most", number(summary->most));
    qkv_json_put(panel, "norm", number(summary->norm));
    qkv_json_put(panel, "sample", describe_sample(summary));
}

static json_t *describe_panel(const qkv_figure *fig, size_t index, const panel_summary *summary) {
    const figure_cell *cell = &fig->cells[index];
    json_t *panel = json_pack("{s:i, s:i, s:i, s:o}", "row", (int)(index / fig->cols), "col",
                              (int)(index % fig->cols), "input", (int)cell->prompt, "edits",
                              qkv_json_text(cell->edits));
    qkv_recipe_add_summary(panel, summary);
    return panel;
}

/* Adds "panels", and the digest of all of theirs. */
static int add_panels(const qkv_figure *fig, json_t *recipe, qkv_error *err) {
    const size_t n = fig->rows * fig->cols;
    char digest[QKV_FINGERPRINT_SIZE];
    json_t *list = json_array();
    qkv_fingerprint all;
    int status = qkv_fingerprint_start(&all, err);
    if (status != QKV_OK) return json_decref(list), status;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const figure_cell *cell = &fig->cells[i];
        panel_summary summary;
        status = qkv_panel_summarize(&summary, cell->values, cell->n_rows, cell->n_cols,
                                     qkv_panel_sample_size(n), err);
        if (status != QKV_OK) break;
        qkv_fingerprint_add(&all, summary.digest, sizeof summary.digest);
        qkv_json_push(list, describe_panel(fig, i, &summary));
    }
    qkv_fingerprint_end(&all, digest);
    const int failed = json_array_size(list) != n;
    qkv_json_put(recipe, "panels", list);
    qkv_json_put(recipe, "digest", json_string(digest));
    return status == QKV_OK && failed ? qkv_fail_memory(err) : status;
}

/* ---- the id ---- */

int qkv_recipe_id(const json_t *recipe, char out[RECIPE_ID_SIZE], qkv_error *err) {
    static const char *const keys[] = {"format",       "kind",  "model_hash", "inputs",
                                       "sources",      "rows",  "options",    "cols",
                                       "results_hash", "study", "other_hash", "set"};
    char digest[QKV_FINGERPRINT_SIZE];
    json_t *work = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(recipe, keys[i]);
        if (value) qkv_json_put(work, keys[i], json_incref(value));
    }
    char *text = qkv_json_dump(work, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    json_decref(work);
    if (!text) return qkv_fail_memory(err);
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status == QKV_OK) {
        qkv_fingerprint_add(&print, text, strlen(text));
        qkv_fingerprint_end(&print, digest);
        memcpy(out, digest, RECIPE_ID_SIZE - 1);
        out[RECIPE_ID_SIZE - 1] = '\0';
    }
    free(text);
    return status;
}

int qkv_recipe_finish(json_t *recipe, char id[RECIPE_ID_SIZE], char **text, qkv_error *err) {
    qkv_text out = {0};
    if (!recipe) return qkv_fail_memory(err);
    const int status = qkv_recipe_id(recipe, id, err);
    if (status != QKV_OK) return status;
    if (qkv_json_put(recipe, "id", json_string(id)) != 0) return qkv_fail_memory(err);
    qkv_json_append_value(&out, recipe);
    if (out.failed) {
        qkv_text_release(&out);
        return qkv_fail_memory(err);
    }
    *text = out.data;
    return QKV_OK;
}

/* ---- the recipe ---- */

json_t *qkv_recipe_command(const char *const *words, size_t n) {
    if (n == 0) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) qkv_json_push(list, qkv_json_text(words[i]));
    return list;
}

/* How it is drawn, chosen by the caller or by the figure. */
static json_t *describe_look(const qkv_figure *fig) {
    json_t *look = json_pack(
        "{s:s, s:s, s:s, s:s}", "scale", qkv_scale_name(fig->scale), "colormap",
        qkv_colormap_name(fig->colormap), "masked", qkv_masked_name(fig->masked), "pooling",
        qkv_pooling_name(fig->is_signed ? QKV_POOLING_MAGNITUDE : QKV_POOLING_LARGEST));
    if (look && fig->scale == QKV_SCALE_POWER) qkv_json_put(look, "gamma", number(fig->gamma));
    if (look && fig->scale == QKV_SCALE_LOG)
        qkv_json_put(look, "log_floor", number(qkv_figure_log_floor(fig)));
    return look;
}

static json_t *describe(const qkv_figure *fig, const qkv_session *session, const char *hash) {
    const qkv_figure_options *o = &fig->options;
    const qkv_model_info *info = qkv_model_get_info(qkv_session_model(session));
    json_t *json = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:i, s:i, s:[o, o], s:o, s:o, s:o, s:o, s:o, s:o}",
        "format", RECIPE_FORMAT, "kind", qkv_figure_kind_name(fig->kind), "qkv_version",
        qkv_version(), "ggml_version", qkv_session_ggml(session), "backend",
        qkv_session_backend(session), "command", qkv_recipe_command(o->command, o->n_command),
        "model", qkv_json_text(qkv_path_model(info->path)), "model_hash", hash, "site",
        qkv_site_name(fig->site), "layer", (int)fig->layer, "head", (int)fig->head, "range",
        number(fig->low), number(fig->high), "look", describe_look(fig), "options",
        qkv_fields_write(&qkv_figure_table, o), "inputs", qkv_recipe_prompts(&fig->prompts),
        "sources", qkv_recipe_prompts(&fig->sources), "rows", describe_sides(o->rows, o->n_rows),
        "cols", describe_sides(o->cols, o->n_cols));
    if (json && fig->set.n) qkv_json_put(json, "set", qkv_recipe_prompts(&fig->set));
    if (json && info->notices[0]) qkv_json_put(json, "model_notices", qkv_json_text(info->notices));
    return json;
}

int qkv_figure_make_recipe(qkv_figure *fig, const qkv_session *session, qkv_error *err) {
    char hash[33];
    int status = qkv_model_hash(qkv_session_model(session), hash, err);
    if (status != QKV_OK) return status;
    json_t *recipe = describe(fig, session, hash);
    if (recipe) status = add_panels(fig, recipe, err);
    if (status == QKV_OK) status = qkv_recipe_finish(recipe, fig->id, &fig->recipe, err);
    json_decref(recipe);
    return status;
}
