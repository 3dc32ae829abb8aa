/*
 * POST /api/figure: the bytes that `qkv figure` writes for the same command line, or that command line
 * alone (`dry`). The options go to the library by their names: those of the study of the same kind (qkv/study.h), and
 * some that requests call otherwise.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/number_list.h"
#include "qkv/head_choice.h"
#include "qkv/hub.h"
#include "qkv/study.h"
#include "server/command_words.h"
#include "server/prompt_list.h"
#include "server/request_plan.h"

enum { MOST_PROMPTS = 8, MOST_DPI = 600, MOST_PANEL = 1000, MOST_PANELS = 96 };
enum { MOST_SIDES = 64, MOST_EDITS = 20000 };
enum { USUAL_PANEL = 170, USUAL_DPI = 150 }; /* of qkv_grid_style, where nothing is given */

/* What a figure may take of memory and time: cells of its maps, of which a CSV file writes some seventy
 * bytes each, and pixels of a PNG. Larger ones are for the program. */
#define MOST_CELLS (64.0 * 1024 * 1024)
#define MOST_CSV_CELLS (4.0 * 1024 * 1024)
#define MOST_PIXELS 100e6

typedef struct figure_request {
    const qkv_pool_model *which;
    qkv_model *model;
    const char *format, *name;
    int dry;
    size_t n_panels;        /* at most, unless it is a figure of heads or rows */
    double panel_size, dpi; /* 0: not given */
    const char *heads;      /* of the figure pattern; NULL: one */
    const char *kind;
    json_t *fields; /* as the study calls them */
    qkv_study *study;
    qkv_prompt_list prompts;
    qkv_words words; /* of the command line */
    qkv_words shown; /* the same as recipes tell it */
} figure_request;

static const struct {
    const char *format, *type;
    int is_data; /* --data, not -o */
} formats[] = {{"png", "image/png", 0},
               {"svg", "image/svg+xml", 0},
               {"pdf", "application/pdf", 0},
               {"html", "text/html; charset=utf-8", 0},
               {"safetensors", "application/octet-stream", 1},
               {"npz", "application/octet-stream", 1},
               {"csv", "text/csv; charset=utf-8", 1}};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static size_t find_format(const char *name) {
    size_t i = 0;
    while (i < N_FORMATS && strcmp(formats[i].format, name) != 0) i++;
    return i;
}

/* ---- reading ---- */

/* What requests call otherwise than studies. */
static const struct {
    const char *given, *field;
} renamed[] = {{"all_heads", "edit_heads"},
               {"hide_axes", "no_axis_labels"},
               {"hide_notes", "no_notes"},
               {"heads", "head"},
               {"rows", "row"},
               {"cols", "col"}};
enum { N_RENAMED = sizeof renamed / sizeof *renamed };

/* The name of a field in the request. */
static const char *name_in(const json_t *request, const char *field) {
    for (size_t i = 0; i < N_RENAMED; i++) {
        if (strcmp(renamed[i].field, field) == 0 && json_object_get(request, renamed[i].given))
            return renamed[i].given;
    }
    return field;
}

static int has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    while (*words) {
        const size_t n = strcspn(words, "|");
        if (n == length && memcmp(words, word, n) == 0) return 1;
        words += n + (words[n] == '|');
    }
    return 0;
}

/* Is it what the field has when it is not given? */
static int is_default(const qkv_study_field *field, const json_t *value) {
    const char *word = json_string_value(value);
    if (!value || json_is_null(value) || json_is_false(value)) return 1;
    if (field->type == QKV_FIELD_WORD && word)
        return strncmp(field->words, word, strlen(word)) == 0 && field->words[strlen(word)] == '|';
    if (field->type == QKV_FIELD_INTEGER && json_is_integer(value))
        return json_integer_value(value) == QKV_AUTO ||
               (strcmp(field->name, "skip_keys") == 0 && json_integer_value(value) == 0);
    return (field->type == QKV_FIELD_REAL || field->type == QKV_FIELD_LENGTH) &&
           json_is_number(value) && !(json_number_value(value) != 0);
}

/* The program refuses what a format has no use for. */
static int check_uses(const figure_request *r, const json_t *request, qkv_error *err) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    const char *useless = NULL;
    for (size_t i = 0; qkv_study_get_field(r->kind, i, &field); i++) {
        const json_t *value = json_object_get(r->fields, field.name);
        const char *word = json_string_value(value);
        if (is_default(&field, value)) continue;
        const int hatched = word && strcmp(field.name, "masked") == 0 && !strcmp(word, "hatch");
        if ((field.outputs && !has_word(field.outputs, r->format)) ||
            (hatched && strcmp(r->format, "html") == 0))
            useless = name_in(request, field.name);
    }
    if (!useless) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` means nothing for %s", useless, r->format);
}

/* What a drawing may take is bounded by its size. */
static int check_drawing(figure_request *r, const json_t *request, qkv_error *err) {
    r->heads = json_string_value(json_object_get(request, "heads"));
    int status = qkv_request_real(request, "dpi", 0, MOST_DPI, &r->dpi, err);
    return status == QKV_OK
               ? qkv_request_real(request, "panel_size", 0, MOST_PANEL, &r->panel_size, err)
               : status;
}

/* Every panel is a run and a drawing of its own. */
static int check_panels(figure_request *r, const json_t *request, qkv_error *err) {
    const size_t rows = json_array_size(json_object_get(request, "rows"));
    const size_t cols = json_array_size(json_object_get(request, "cols"));
    const char *eps = NULL;
    char *list = NULL;
    size_t n = 1;
    int status = qkv_request_text(request, "eps", 4000, &eps, err);
    if (status == QKV_OK && eps) status = qkv_number_list_expand(&list, eps, err);
    for (const char *at = list; at && *at; at++) n += *at == ',';
    free(list);
    if (status != QKV_OK) return status;
    const size_t of_grid = (rows ? rows : 1) * (cols ? cols : 1), of_eps = 3 * n;
    if (of_grid > MOST_PANELS || of_eps > MOST_PANELS)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a figure has %d panels at most here", MOST_PANELS);
    r->n_panels = rows || cols ? of_grid : eps ? of_eps : 9;
    return QKV_OK;
}

static int fail_size(const char *what, double has, double most, qkv_error *err) {
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "this figure has %.0f million %s, and %.0f million are the most here; the "
                    "command line can make it",
                    has / 1e6, what, most / 1e6);
}

/* How many heads a list such as "1,3" or "0-3" names; what is wrong with it shows later. */
static double count_heads(const char *list, double all) {
    double n = 0;
    while (list && *list) {
        char *end = NULL;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        n += last > first ? fmin((double)(last - first), all) + 1 : 1;
        list = end + strcspn(end, ",");
        list += *list == ',';
    }
    return fmin(fmax(n, 1), all);
}

static int is_kind(const figure_request *r, const char *kind) {
    return strcmp(r->kind, kind) == 0;
}

static double panels_per_prompt(const figure_request *r) {
    if (is_kind(r, "pattern")) return count_heads(r->heads, qkv_model_get_info(r->model)->n_head);
    return is_kind(r, "mean") ? 3 : (double)r->n_panels;
}

/* Maps of heads and rows are pooled while they are computed; all others are whole. */
static int check_cells(const figure_request *r, qkv_error *err) {
    const double most = strcmp(r->format, "csv") == 0 ? MOST_CSV_CELLS : MOST_CELLS;
    const double per_prompt = panels_per_prompt(r);
    double cells = 0;
    if (is_kind(r, "heads") || is_kind(r, "rows")) return QKV_OK;
    for (size_t i = 0; i < r->prompts.n; i++) {
        const double n_tokens = (double)r->prompts.pooled[i].n_tokens;
        cells += per_prompt * n_tokens * n_tokens;
    }
    return cells > most ? fail_size("cells", cells, most, err) : QKV_OK;
}

/* Where neither size nor resolution is given, the library bounds the picture. */
static int check_pixels(const figure_request *r, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->model);
    const double n_panels =
        is_kind(r, "heads") ? (double)info->n_layer * info->n_head : panels_per_prompt(r);
    const double usual =
        n_panels > MOST_PANELS ? USUAL_PANEL / 4.0 : USUAL_PANEL; /* many are small */
    const double size = r->panel_size > 0 ? r->panel_size : usual,
                 side = size * (r->dpi > 0 ? r->dpi : USUAL_DPI) / 72;
    const double pixels = n_panels * side * side;
    if (strcmp(r->format, "png") != 0 || !(r->panel_size > 0 || r->dpi > 0)) return QKV_OK;
    return pixels > MOST_PIXELS ? fail_size("pixels", pixels, MOST_PIXELS, err) : QKV_OK;
}

/* ---- the fields of a study ---- */

static int read_kind(figure_request *r, const json_t *request, qkv_error *err) {
    qkv_study_kind kind = QKV_STUDY_KIND_INIT;
    r->kind = json_string_value(json_object_get(request, "kind"));
    if (r->kind && qkv_study_get_kind(r->kind, &kind, NULL) == QKV_OK &&
        strncmp(kind.command, "figure ", 7) == 0)
        return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "`kind` must be modify, mean, grid, heads, rows or pattern");
}

/* {"label", "edits"} as LABEL=EDITS. */
static json_t *join_side(const json_t *side) {
    const json_t *label = json_object_get(side, "label"), *edits = json_object_get(side, "edits");
    const char *name = json_string_value(label);
    if (!name || !json_is_string(edits) || json_object_size(side) != 2 || !*name ||
        strpbrk(name, "=\n") || json_string_length(label) > MOST_EDITS ||
        json_string_length(edits) > MOST_EDITS)
        return json_null();
    qkv_text text = {0};
    qkv_text_printf(&text, "%s=%s", name, json_string_value(edits));
    json_t *joined = text.failed ? NULL : qkv_json_text(text.data);
    qkv_text_release(&text);
    return joined;
}

static int join_sides(json_t *fields, const char *key, qkv_error *err) {
    const json_t *list = json_object_get(fields, key);
    if (!list) return QKV_OK;
    if (!json_is_array(list) || json_array_size(list) > MOST_SIDES)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`%ss` is a list of %d at most", key, MOST_SIDES);
    json_t *joined = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *side = join_side(json_array_get(list, i));
        if (json_is_null(side)) {
            json_decref(joined);
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "`%ss` is a list of {\"label\", \"edits\"}, labels without '='", key);
        }
        qkv_json_push(joined, side);
    }
    const int is_whole = json_array_size(joined) == json_array_size(list);
    if (json_array_size(list) == 0)
        return json_decref(joined), json_object_del(fields, key), QKV_OK;
    return qkv_json_put(fields, key, joined) == 0 && is_whole ? QKV_OK : qkv_fail_memory(err);
}

/* A value as the command line has it, in place of the JSON. */
static int put_text(json_t *fields, const char *key, const qkv_text *text, qkv_error *err) {
    json_t *value = text->failed ? NULL : qkv_json_text(text->data);
    return value && qkv_json_put(fields, key, value) == 0 ? QKV_OK : qkv_fail_memory(err);
}

static int join_range(json_t *fields, qkv_error *err) {
    const json_t *range = json_object_get(fields, "range");
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    qkv_text text = {0};
    if (!json_is_array(range)) return QKV_OK;
    if (json_array_size(range) != 2 || !json_is_number(low) || !json_is_number(high))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`range` is two numbers, or \"auto\"");
    qkv_text_append_number(&text, json_number_value(low));
    qkv_text_puts(&text, ",");
    qkv_text_append_number(&text, json_number_value(high));
    const int status = put_text(fields, "range", &text, err);
    qkv_text_release(&text);
    return status;
}

/* Layers and heads are counted from 0 here; the head of a pattern is a text. */
static int check_places(const figure_request *r, qkv_error *err) {
    static const char *const names[] = {"layer", "head"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *place = json_object_get(r->fields, names[i]);
        if (!json_is_integer(place)) continue;
        if (json_integer_value(place) < QKV_AUTO)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is counted from 0", names[i]);
        if (i == 0 || !is_kind(r, "pattern")) continue;
        qkv_text text = {0};
        qkv_text_printf(&text, json_integer_value(place) < 0 ? "auto" : "%" JSON_INTEGER_FORMAT,
                        json_integer_value(place));
        const int status = put_text(r->fields, names[i], &text, err);
        qkv_text_release(&text);
        return status;
    }
    return QKV_OK;
}

static int rename_fields(figure_request *r, qkv_error *err) {
    const json_t *all_heads = json_object_get(r->fields, "all_heads");
    if (all_heads && !json_is_boolean(all_heads))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`all_heads` is true or false");
    if (all_heads && qkv_json_put(r->fields, "all_heads",
                                  json_string(json_is_true(all_heads) ? "all" : "shown")) != 0)
        return qkv_fail_memory(err);
    if (json_object_get(r->fields, "heads") && json_object_get(r->fields, "head"))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`head` and `heads` exclude each other");
    for (size_t i = 0; i < N_RENAMED; i++) {
        json_t *value = json_object_get(r->fields, renamed[i].given);
        if (!value || (strcmp(renamed[i].given, "heads") == 0 && !is_kind(r, "pattern"))) continue;
        if (qkv_json_put(r->fields, renamed[i].field, json_incref(value)) != 0)
            return qkv_fail_memory(err);
        json_object_del(r->fields, renamed[i].given);
    }
    return QKV_OK;
}

static int find_field(const char *kind, const char *name, qkv_study_field *field) {
    for (size_t i = 0; qkv_study_get_field(kind, i, field); i++) {
        if (strcmp(field->name, name) == 0) return 1;
    }
    return 0;
}

/* What a field has when it is not given is left out, also of fields that the kind does not have. */
static int leave_out(figure_request *r, qkv_error *err) {
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(r->fields, next, name, value) {
        qkv_study_field field = QKV_STUDY_FIELD_INIT;
        const char *word = json_string_value(value);
        const int is_known = find_field(r->kind, name, &field);
        if (!is_known && !json_is_null(value) && !json_is_false(value) &&
            !(word && strcmp(word, "auto") == 0))
            return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is not for the figure %s", name, r->kind);
        if (!is_known || is_default(&field, value)) json_object_del(r->fields, name);
    }
    return QKV_OK;
}

static int set_fields(figure_request *r, qkv_error *err) {
    char *text = qkv_json_dump(r->fields, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text) return qkv_fail_memory(err);
    int status = qkv_study_new(&r->study, r->kind, err);
    if (status == QKV_OK) status = qkv_study_set_json(r->study, text, err);
    free(text);
    return status;
}

/* The fields of the request that are the study's. */
static int read_fields(figure_request *r, const json_t *request, qkv_error *err) {
    static const char *const others[] = {"model",  "client", "slot", "seq", "prompts",
                                         "prompt", "format", "name", "dry", "kind"};
    r->fields = qkv_json_copy(request);
    if (!r->fields) return qkv_fail_memory(err);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        json_object_del(r->fields, others[i]);
    int status = rename_fields(r, err);
    if (status == QKV_OK) status = join_sides(r->fields, "row", err);
    if (status == QKV_OK) status = join_sides(r->fields, "col", err);
    if (status == QKV_OK) status = join_range(r->fields, err);
    if (status == QKV_OK) status = check_places(r, err);
    if (status == QKV_OK) status = leave_out(r, err);
    if (status == QKV_OK) status = check_uses(r, request, err);
    return status == QKV_OK ? set_fields(r, err) : status;
}

static int read_prompts(figure_request *r, const json_t *request, qkv_error *err) {
    const json_t *list = json_object_get(request, "prompts"),
                 *one = json_object_get(request, "prompt");
    if (list && one) return qkv_fail(err, QKV_ERR_ARGUMENT, "give `prompt` or `prompts`, not both");
    const int status = one ? qkv_prompt_list_add(&r->prompts, one, err)
                           : qkv_prompt_list_read(&r->prompts, list, MOST_PROMPTS, err);
    return status == QKV_OK ? qkv_prompt_list_check(&r->prompts, err) : status;
}

/* What does not fit together is told also of a command that is not run. */
static int give_prompts(figure_request *r, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; i < r->prompts.n && status == QKV_OK; i++)
        status = qkv_study_add_prompt(r->study, &r->prompts.prompts[i], err);
    return status == QKV_OK ? qkv_study_check(r->study, err) : status;
}

/* ---- the command line ---- */

static void write_value(qkv_text *out, const qkv_study_field *field, const json_t *value) {
    if (json_is_string(value))
        qkv_text_puts(out, json_string_value(value));
    else
        qkv_text_append_number(out, json_number_value(value));
    if (field->type == QKV_FIELD_LENGTH && json_is_number(value)) qkv_text_puts(out, "pt");
}

static void add_field(qkv_words *words, const qkv_study_field *field, const json_t *value) {
    qkv_text name = {0};
    qkv_text_puts(&name, "--");
    for (const char *at = field->name; *at; at++) qkv_text_append(&name, *at == '_' ? "-" : at, 1);
    if (field->type == QKV_FIELD_FLAG) qkv_words_add(words, name.data);
    const size_t n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n && field->type != QKV_FIELD_FLAG; i++) {
        qkv_text text = {0};
        qkv_text_puts(&text, "");
        write_value(&text, field, json_is_array(value) ? json_array_get(value, i) : value);
        qkv_words_pair(words, name.data, text.failed ? NULL : text.data);
        qkv_text_release(&text);
    }
    words->failed |= name.failed;
    qkv_text_release(&name);
}

/* In the order of the study's fields. */
static void add_fields(qkv_words *words, const figure_request *r) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_get_field(r->kind, i, &field); i++) {
        const json_t *value = json_object_get(r->fields, field.name);
        if (value) add_field(words, &field, value);
    }
}

/* `model`: what stands after -m; NULL: no -m. */
static void write_command(const figure_request *r, qkv_words *words, const char *model) {
    qkv_text output = {0};
    qkv_words_add(words, "qkv");
    qkv_words_add(words, "figure");
    qkv_words_add(words, r->kind);
    if (model) qkv_words_pair(words, "-m", model);
    qkv_prompt_list_add_words(&r->prompts, NULL, words);
    add_fields(words, r);
    qkv_text_printf(&output, "%s.%s", r->name, r->format);
    qkv_words_pair(words, formats[find_format(r->format)].is_data ? "--data" : "-o",
                   output.failed ? NULL : output.data);
    qkv_text_release(&output);
}

/* Recipes tell the last part of a path, as the program does (cli_command_words). */
static int make_commands(figure_request *r, qkv_error *err) {
    write_command(r, &r->words, r->which->argument);
    write_command(r, &r->shown, qkv_words_short_model(r->which->argument));
    return r->words.failed || r->shown.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- answers ---- */

static int send_command(const figure_request *r, qkv_reply *reply, qkv_error *err) {
    return qkv_reply_json(reply, qkv_words_json(&r->words), err);
}

static int draw(const figure_request *r, qkv_model_pool *pool, qkv_reply *reply, qkv_error *err) {
    qkv_session *session = NULL;
    char *bytes = NULL;
    size_t n_bytes = 0;
    int status = qkv_model_pool_session(pool, r->model, &session, err);
    if (status == QKV_OK)
        status =
            qkv_study_set_command(r->study, (const char *const *)r->shown.items, r->shown.n, err);
    if (status == QKV_OK && strcmp(r->format, "html") == 0)
        status = qkv_study_set(r->study, "page", "true", err);
    if (status == QKV_OK) status = qkv_study_run(r->study, session, NULL, err);
    if (status == QKV_OK) status = qkv_study_render(r->study, r->format, &bytes, &n_bytes, err);
    if (status == QKV_OK)
        qkv_reply_bytes(reply, bytes, n_bytes, formats[find_format(r->format)].type);
    return status;
}

static int read_request(figure_request *r, const json_t *request, qkv_error *err) {
    r->format = "png";
    r->name = "figure";
    int status = qkv_request_text(request, "format", 16, &r->format, err);
    if (status == QKV_OK) status = qkv_request_flag(request, "dry", &r->dry, err);
    if (status == QKV_OK && find_format(r->format) == N_FORMATS)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "`format` must be png, svg, pdf, html, safetensors, npz or csv");
    if (status == QKV_OK) status = qkv_request_file_name(request, &r->name, err);
    if (status == QKV_OK) status = read_kind(r, request, err);
    if (status == QKV_OK) status = check_drawing(r, request, err);
    if (status == QKV_OK) status = check_panels(r, request, err);
    if (status == QKV_OK) status = read_fields(r, request, err);
    return status == QKV_OK ? read_prompts(r, request, err) : status;
}

int qkv_api_figure(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    figure_request r = {0};
    int status = qkv_model_pool_open(pool, call->common.model, &r.which, &r.model, err);
    if (status == QKV_OK) status = read_request(&r, call->request, err);
    if (status == QKV_OK) status = make_commands(&r, err);
    if (status == QKV_OK) status = qkv_prompt_list_tokenize(&r.prompts, pool, r.model, err);
    if (status == QKV_OK) status = give_prompts(&r, err);
    if (status == QKV_OK && !r.dry) status = check_cells(&r, err);
    if (status == QKV_OK && !r.dry) status = check_pixels(&r, err);
    if (status == QKV_OK)
        status = r.dry ? send_command(&r, reply, err) : draw(&r, pool, reply, err);
    qkv_prompt_list_release(&r.prompts);
    qkv_words_release(&r.words);
    qkv_words_release(&r.shown);
    qkv_study_free(r.study);
    json_decref(r.fields);
    qkv_model_free(r.model);
    return status;
}
