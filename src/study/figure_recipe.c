/* The recipe of a figure, written. See figure_recipe.h. */
#include "study/figure_recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/sized.h"
#include "qkv/version.h"
#include "study/figure.h"

/* ---- options ---- */

/* clang-format off: one option to a line */
#define FIELD(name, kind)                                                                          \
    { #name, FIELD_##kind, offsetof(qkv_figure_options, name), NULL, 0, 0 }
#define WORDS(name, words)                                                                         \
    { #name, FIELD_WORD, offsetof(qkv_figure_options, name), words, 0, 0 }
#define LIMITED(name, kind, least, most)                                                           \
    { #name, FIELD_##kind, offsetof(qkv_figure_options, name), NULL, least, most }

/* Bytes of texts that files bring along. */
enum {
    MOST_TITLE = 4000,
    MOST_EPS = 20000,
    MOST_FONT = 200,
    MOST_LAYERS = 4000,
    MOST_EDITS = 20000
};

/* Everything in qkv_figure_options but its lists and the command. What excludes each other, and what
 * a kind has, is checked when the figure is made. */
const field qkv_figure_fields[] = {
    LIMITED(layer, INDEX, 0, INT32_MAX),
    LIMITED(head, INDEX, 0, INT32_MAX),
    FIELD(all_heads, FLAG),
    LIMITED(eps, TEXT, 0, MOST_EPS),
    WORDS(show, "pattern|scores"),
    FIELD(baseline, FLAG),
    FIELD(diff, FLAG),
    LIMITED(skip_keys, COUNT, 0, INT32_MAX),
    FIELD(sink_column, FLAG),
    FIELD(report, FLAG),
    WORDS(labels, "auto|tokens|index|none"),
    WORDS(values, "auto|always|never"),
    FIELD(hide_axes, FLAG),
    WORDS(scale, "linear|log|power"),
    FIELD(gamma, REAL),
    FIELD(range, RANGE),
    LIMITED(title, TEXT, 0, MOST_TITLE),
    LIMITED(dpi, REAL, 0, 2400),
    FIELD(panel_size, REAL),
    FIELD(always_linear, FLAG),
    FIELD(auto_range, FLAG),
    WORDS(colormap, "auto|coolwarm|viridis|cividis|magma|grey"),
    WORDS(masked, "auto|zero|white|hatch"),
    WORDS(text, "auto|paths|text"),
    LIMITED(font, TEXT, 0, MOST_FONT),
    LIMITED(width, REAL, 0, 14400),
    FIELD(hide_notes, FLAG),
    LIMITED(layers, TEXT, 0, MOST_LAYERS),
    LIMITED(variant, TEXT, 0, MOST_EDITS),
    LIMITED(query, INDEX, INT32_MIN, INT32_MAX),
};
/* clang-format on */
const size_t qkv_figure_n_fields = sizeof qkv_figure_fields / sizeof *qkv_figure_fields;

/* ---- inputs ---- */

static json_t *describe_tokens(const study_prompt *prompt) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        json_array_append_new(list, json_integer(prompt->tokens[i]));
    }
    return list;
}

/* Tokens are what counts; the text is for people, and so that a figure made of it is the same. */
static json_t *describe_prompt(const study_prompt *prompt) {
    json_t *input = json_pack("{s:o}", "tokens", describe_tokens(prompt));
    if (input && prompt->name) json_object_set_new(input, "name", qkv_json_text(prompt->name));
    if (!input || !prompt->text) return input;
    json_object_set_new(input, "text", qkv_json_string(prompt->text, prompt->length));
    if (prompt->flags & QKV_TOKENIZE_PARSE_SPECIAL)
        json_object_set_new(input, "parse_special", json_true());
    if (!(prompt->flags & QKV_TOKENIZE_ADD_SPECIAL))
        json_object_set_new(input, "add_special", json_false());
    return input;
}

json_t *qkv_recipe_prompts(const study_prompts *prompts) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompts->n; i++) {
        json_array_append_new(list, describe_prompt(&prompts->items[i]));
    }
    return list;
}

static json_t *describe_sides(const qkv_figure_side *sides, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        qkv_figure_side side = QKV_FIGURE_SIDE_INIT;
        qkv_sized_read_item(&side, sizeof side, sides, i, "qkv_figure_side", NULL);
        json_array_append_new(list, json_pack("{s:o, s:o}", "label",
                                              qkv_json_text(side.label ? side.label : ""), "edits",
                                              qkv_json_text(side.edits ? side.edits : "")));
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
        json_array_append_new(list, number(summary->sample[i]));
    }
    return list;
}

void qkv_recipe_add_summary(json_t *panel, const panel_summary *summary) {
    json_object_set_new(
        panel, "shape",
        json_pack("[I, I]", (json_int_t)summary->n_rows, (json_int_t)summary->n_cols));
    json_object_set_new(panel, "digest", json_string(summary->digest));
    json_object_set_new(panel, "least", number(summary->least));
    json_object_set_new(panel, "most", number(summary->most));
    json_object_set_new(panel, "norm", number(summary->norm));
    json_object_set_new(panel, "sample", describe_sample(summary));
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
        json_array_append_new(list, describe_panel(fig, i, &summary));
    }
    qkv_fingerprint_end(&all, digest);
    const int failed = json_array_size(list) != n;
    json_object_set_new(recipe, "panels", list);
    json_object_set_new(recipe, "digest", json_string(digest));
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
        if (value) json_object_set(work, keys[i], value);
    }
    const qkv_locale host = qkv_locale_enter();
    char *text = json_dumps(work, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    qkv_locale_leave(host);
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
    if (json_object_set_new(recipe, "id", json_string(id)) != 0) return qkv_fail_memory(err);
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
    for (size_t i = 0; i < n; i++) json_array_append_new(list, qkv_json_text(words[i]));
    return list;
}

/* How it is drawn, chosen by the caller or by the figure. */
static json_t *describe_look(const qkv_figure *fig) {
    json_t *look = json_pack(
        "{s:s, s:s, s:s, s:s}", "scale", qkv_scale_name(fig->scale), "colormap",
        qkv_colormap_name(fig->colormap), "masked", qkv_masked_name(fig->masked), "pooling",
        qkv_pooling_name(fig->is_signed ? QKV_POOLING_MAGNITUDE : QKV_POOLING_LARGEST));
    if (look && fig->scale == QKV_SCALE_POWER)
        json_object_set_new(look, "gamma", number(fig->gamma));
    if (look && fig->scale == QKV_SCALE_LOG)
        json_object_set_new(look, "log_floor", number(qkv_figure_log_floor(fig)));
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
        qkv_fields_write(qkv_figure_fields, qkv_figure_n_fields, o), "inputs",
        qkv_recipe_prompts(&fig->prompts), "sources", qkv_recipe_prompts(&fig->sources), "rows",
        describe_sides(o->rows, o->n_rows), "cols", describe_sides(o->cols, o->n_cols));
    if (json && fig->set.n) json_object_set_new(json, "set", qkv_recipe_prompts(&fig->set));
    if (json && info->notices[0])
        json_object_set_new(json, "model_notices", qkv_json_text(info->notices));
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
