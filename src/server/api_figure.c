/*
 * POST /api/figure: the bytes that `qkv figure` writes for the same command line, or that command line
 * alone (`dry`). The options go to the library by their names (qkv/figure_spec.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number_list.h"
#include "qkv/figure_spec.h"
#include "qkv/hub.h"
#include "server/command_words.h"
#include "server/request_plan.h"

enum { MOST_PROMPTS = 8, MOST_DPI = 600, MOST_PANEL = 1000, MOST_PANELS = 96 };
enum { USUAL_PANEL = 170, USUAL_DPI = 150 }; /* of qkv_grid_style, where nothing is given */

/* What a figure may take of memory and time: cells of its maps, of which a CSV file writes some seventy
 * bytes each, and pixels of a PNG. Larger ones are for the program. */
#define MOST_CELLS (64.0 * 1024 * 1024)
#define MOST_CSV_CELLS (4.0 * 1024 * 1024)
#define MOST_PIXELS 100e6

typedef struct figure_request {
    const qkv_pool_model *which;
    qkv_model *model;
    const char *format;
    int dry;
    size_t n_panels;        /* at most, unless it is a figure of heads or rows */
    double panel_size, dpi; /* 0: not given */
    qkv_figure_spec *spec;
    qkv_request_prompt wanted[MOST_PROMPTS];
    qkv_pooled_prompt pooled[MOST_PROMPTS];
    qkv_prompt prompts[MOST_PROMPTS];
    size_t n_prompts;
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

/* Is a field given, and not as its default? */
static int is_given(const json_t *request, const char *name) {
    const json_t *value = json_object_get(request, name);
    const char *word = json_string_value(value);
    if (!value || json_is_null(value) || json_is_false(value)) return 0;
    return !(word && strcmp(word, "auto") == 0);
}

/* The program refuses what a format has no use for. */
static int check_uses(const figure_request *r, const json_t *request, qkv_error *err) {
    static const char *const printed[] = {"font", "width", "hide_notes"};
    static const char *const drawn[] = {"labels", "values", "hide_axes"};
    const char *kind = json_string_value(json_object_get(request, "kind"));
    const char *masked = json_string_value(json_object_get(request, "masked"));
    const char *useless = NULL;
    const int is_data = formats[find_format(r->format)].is_data;
    const int is_page = strcmp(r->format, "html") == 0;
    const int has_letters = strcmp(r->format, "svg") == 0 || strcmp(r->format, "pdf") == 0;
    for (size_t i = 0; i < 3; i++) {
        if ((is_data || (is_page && i < 2)) && is_given(request, printed[i])) useless = printed[i];
        if (is_page && is_given(request, drawn[i])) useless = drawn[i];
    }
    if (is_page && is_given(request, "panel_size") && kind && strcmp(kind, "heads") != 0)
        useless = "panel_size";
    if (is_page && masked && strcmp(masked, "hatch") == 0) useless = "masked";
    if (is_given(request, "dpi") && strcmp(r->format, "png") != 0) useless = "dpi";
    if (is_given(request, "text") && !has_letters) useless = "text";
    if (!useless) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` means nothing for %s", useless, r->format);
}

/* What a drawing may take is bounded by its size. */
static int check_drawing(figure_request *r, const json_t *request, qkv_error *err) {
    int status = qkv_request_real(request, "dpi", 0, MOST_DPI, &r->dpi, err);
    if (status == QKV_OK)
        status = qkv_request_real(request, "panel_size", 0, MOST_PANEL, &r->panel_size, err);
    return status == QKV_OK ? check_uses(r, request, err) : status;
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

/* Maps of heads and rows are pooled while they are computed; all others are whole. */
static int check_cells(const figure_request *r, qkv_error *err) {
    const qkv_figure_kind kind = qkv_figure_spec_kind(r->spec);
    const double most = strcmp(r->format, "csv") == 0 ? MOST_CSV_CELLS : MOST_CELLS;
    const double per_prompt = kind == QKV_FIGURE_MEAN ? 3 : (double)r->n_panels;
    double cells = 0;
    if (kind == QKV_FIGURE_HEADS || kind == QKV_FIGURE_ROWS) return QKV_OK;
    for (size_t i = 0; i < r->n_prompts; i++) {
        const double n_tokens = (double)r->pooled[i].n_tokens;
        cells += per_prompt * n_tokens * n_tokens;
    }
    return cells > most ? fail_size("cells", cells, most, err) : QKV_OK;
}

/* Where neither size nor resolution is given, the library bounds the picture. */
static int check_pixels(const figure_request *r, qkv_error *err) {
    const qkv_model_info *info = qkv_model_get_info(r->model);
    const double n_panels = qkv_figure_spec_kind(r->spec) == QKV_FIGURE_HEADS
                                ? (double)info->n_layer * info->n_head
                                : (double)r->n_panels;
    const double usual =
        n_panels > MOST_PANELS ? USUAL_PANEL / 4.0 : USUAL_PANEL; /* many are small */
    const double size = r->panel_size > 0 ? r->panel_size : usual,
                 side = size * (r->dpi > 0 ? r->dpi : USUAL_DPI) / 72;
    const double pixels = n_panels * side * side;
    if (strcmp(r->format, "png") != 0 || !(r->panel_size > 0 || r->dpi > 0)) return QKV_OK;
    return pixels > MOST_PIXELS ? fail_size("pixels", pixels, MOST_PIXELS, err) : QKV_OK;
}

/* The library's own fields of the request, as text. */
static int read_spec(figure_request *r, const json_t *request, qkv_error *err) {
    static const char *const others[] = {"model",   "client", "slot",   "seq",
                                         "prompts", "prompt", "format", "dry"};
    json_t *fields = json_copy((json_t *)request);
    for (size_t i = 0; fields && i < sizeof others / sizeof *others; i++)
        json_object_del(fields, others[i]);
    char *text = fields ? qkv_json_dump(fields, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(fields);
    if (!text) return qkv_fail_memory(err);
    const int status = qkv_figure_spec_new(&r->spec, text, strlen(text), err);
    free(text);
    return status;
}

static int read_prompt(figure_request *r, const json_t *given, qkv_error *err) {
    qkv_request_prompt *wanted = &r->wanted[r->n_prompts];
    qkv_prompt *prompt = &r->prompts[r->n_prompts++];
    *prompt = (qkv_prompt)QKV_PROMPT_INIT;
    const int status = qkv_request_prompt_read(wanted, given, err);
    prompt->text = wanted->text;
    prompt->tokens = wanted->tokens;
    prompt->n_tokens = wanted->n_tokens;
    if (wanted->parse_special) prompt->flags |= QKV_TOKENIZE_PARSE_SPECIAL;
    return status;
}

static int read_prompts(figure_request *r, const json_t *request, qkv_error *err) {
    const json_t *list = json_object_get(request, "prompts"),
                 *one = json_object_get(request, "prompt");
    int status = QKV_OK;
    if (list && one) return qkv_fail(err, QKV_ERR_ARGUMENT, "give `prompt` or `prompts`, not both");
    if (one) return read_prompt(r, one, err);
    if (list && (!json_is_array(list) || json_array_size(list) > MOST_PROMPTS))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`prompts` is a list of %d at most", MOST_PROMPTS);
    for (size_t i = 0; i < json_array_size(list) && status == QKV_OK; i++)
        status = read_prompt(r, json_array_get(list, i), err);
    return status;
}

/* The same turns before every prompt, as the program has them; and --parse-special for all. */
static int check_prompts(const figure_request *r, qkv_error *err) {
    for (size_t i = 0; i < r->n_prompts; i++) {
        if (r->wanted[i].chat && r->n_prompts > 1)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "a chat is the only prompt of a figure");
        if (r->wanted[i].parse_special != r->wanted[0].parse_special)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "`parse_special` is one for all prompts");
    }
    return QKV_OK;
}

/* Every prompt has its tokens counted; those of a chat are what is drawn. */
static int tokenize(figure_request *r, qkv_model_pool *pool, const json_t *request,
                    qkv_error *err) {
    const json_t *list = json_object_get(request, "prompts"),
                 *one = json_object_get(request, "prompt");
    int status = QKV_OK;
    for (size_t i = 0; i < r->n_prompts && status == QKV_OK; i++) {
        qkv_pooled_prompt *made = &r->pooled[i];
        json_t *with = json_pack("{s:O}", "prompt", one ? one : json_array_get(list, i));
        status =
            with ? qkv_model_pool_prompt(pool, r->model, with, made, err) : qkv_fail_memory(err);
        json_decref(with);
        if (status != QKV_OK || !r->wanted[i].chat) continue;
        r->prompts[i].text = NULL;
        r->prompts[i].tokens = made->tokens;
        r->prompts[i].n_tokens = made->n_tokens;
        r->prompts[i].written = made->text;
    }
    return status;
}

/* ---- the command line ---- */

static void add_chat(qkv_words *words, const qkv_request_prompt *wanted) {
    qkv_words_add(words, "--chat");
    if (wanted->system) qkv_words_pair(words, "--system", wanted->system);
    for (size_t i = 0; i + 1 < json_array_size(wanted->turns); i++) {
        const json_t *turn = json_array_get(wanted->turns, i);
        qkv_text text = {0};
        qkv_text_printf(&text, "%s=%s", json_string_value(json_object_get(turn, "role")),
                        json_string_value(json_object_get(turn, "content")));
        qkv_words_pair(words, "--turn", text.failed ? NULL : text.data);
        qkv_text_release(&text);
    }
    if (wanted->date) qkv_words_pair(words, "--date", wanted->date);
}

static void add_prompt(qkv_words *words, const qkv_request_prompt *wanted) {
    qkv_text ids = {0};
    if (wanted->chat) add_chat(words, wanted);
    if (wanted->text) qkv_words_pair(words, "-p", wanted->text);
    if (wanted->text) return;
    for (size_t i = 0; i < wanted->n_tokens; i++)
        qkv_text_printf(&ids, "%s%d", i ? "," : "", (int)wanted->tokens[i]);
    qkv_words_pair(words, "--tokens", ids.failed ? NULL : ids.data);
    qkv_text_release(&ids);
}

/* `model`: what stands behind -m; NULL: no -m. */
static void write_command(const figure_request *r, qkv_words *words, const char *model) {
    char output[32];
    const char *word;
    qkv_words_add(words, "qkv");
    qkv_words_add(words, "figure");
    qkv_words_add(words, qkv_figure_kind_name(qkv_figure_spec_kind(r->spec)));
    if (model) qkv_words_pair(words, "-m", model);
    for (size_t i = 0; i < r->n_prompts; i++) add_prompt(words, &r->wanted[i]);
    if (r->n_prompts && r->wanted[0].parse_special) qkv_words_add(words, "--parse-special");
    for (size_t i = 0; (word = qkv_figure_spec_word(r->spec, i)); i++) qkv_words_add(words, word);
    snprintf(output, sizeof output, "figure.%s", r->format);
    qkv_words_pair(words, formats[find_format(r->format)].is_data ? "--data" : "-o", output);
}

/* Recipes tell the last part of a path, as the program does (cli_command_words). */
static int make_commands(figure_request *r, qkv_error *err) {
    const char *model = r->which->argument;
    write_command(r, &r->words, model);
    write_command(r, &r->shown, model && !qkv_model_is_name(model) ? qkv_path_base(model) : model);
    return r->words.failed || r->shown.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- answers ---- */

static int send_command(const figure_request *r, qkv_reply *reply, qkv_error *err) {
    qkv_text line = {0};
    qkv_words_quote(&r->words, &line);
    json_t *list = json_array();
    for (size_t i = 0; i < r->words.n; i++)
        json_array_append_new(list, qkv_json_text(r->words.items[i]));
    json_t *json =
        line.failed ? NULL
                    : json_pack("{s:o, s:o}", "command", qkv_json_text(line.data), "words", list);
    if (line.failed) json_decref(list);
    qkv_text_release(&line);
    return qkv_reply_json(reply, json, err);
}

static int draw(const figure_request *r, qkv_model_pool *pool, qkv_reply *reply, qkv_error *err) {
    qkv_session *session = NULL;
    qkv_figure *figure = NULL;
    char *bytes = NULL;
    size_t n_bytes = 0;
    int status = qkv_model_pool_session(pool, r->model, &session, err);
    if (status == QKV_OK)
        status =
            qkv_figure_spec_make(r->spec, &figure, session, r->prompts, r->n_prompts, r->format,
                                 (const char *const *)r->shown.items, r->shown.n, err);
    if (status == QKV_OK) status = qkv_figure_render(figure, r->format, &bytes, &n_bytes, err);
    if (status == QKV_OK)
        qkv_reply_bytes(reply, bytes, n_bytes, formats[find_format(r->format)].type);
    qkv_figure_free(figure);
    return status;
}

static int read_request(figure_request *r, const json_t *request, qkv_error *err) {
    r->format = "png";
    int status = qkv_request_text(request, "format", 16, &r->format, err);
    if (status == QKV_OK) status = qkv_request_flag(request, "dry", &r->dry, err);
    if (status == QKV_OK && find_format(r->format) == N_FORMATS)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "`format` is none of png, svg, pdf, html, safetensors, npz and csv");
    if (status == QKV_OK) status = check_drawing(r, request, err);
    if (status == QKV_OK) status = check_panels(r, request, err);
    if (status == QKV_OK) status = read_spec(r, request, err);
    if (status == QKV_OK) status = read_prompts(r, request, err);
    return status == QKV_OK ? check_prompts(r, err) : status;
}

int qkv_api_figure(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    figure_request r = {0};
    int status = qkv_model_pool_open(pool, call->common.model, &r.which, &r.model, err);
    if (status == QKV_OK) status = read_request(&r, call->request, err);
    if (status == QKV_OK) status = make_commands(&r, err);
    if (status == QKV_OK) status = tokenize(&r, pool, call->request, err);
    if (status == QKV_OK && !r.dry) status = check_cells(&r, err);
    if (status == QKV_OK && !r.dry) status = check_pixels(&r, err);
    if (status == QKV_OK)
        status = r.dry ? send_command(&r, reply, err) : draw(&r, pool, reply, err);
    for (size_t i = 0; i < r.n_prompts; i++) {
        qkv_request_prompt_release(&r.wanted[i]);
        qkv_pooled_prompt_release(&r.pooled[i]);
    }
    qkv_words_release(&r.words);
    qkv_words_release(&r.shown);
    qkv_figure_spec_free(r.spec);
    qkv_model_free(r.model);
    return status;
}
