/*
 * GET /api/kinds: what studies there are, and the fields of each. POST /api/study: a study of any kind, as JSON or as
 * the bytes that the program writes for the same command line; or that command line alone (`dry`).
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "server/limits.h"
#include "server/prompt_list.h"
#include "server/request_plan.h"
#include "server/study_options.h"

_Static_assert((int)QKV_LIMIT_STUDY_PROMPTS <= (int)QKV_PROMPT_LIST_MOST,
               "the list has room for them");

#define MOST_BYTES ((size_t)64 << 20) /* of an answer */

static const struct {
    const char *format, *type;
} formats[] = {{"json", NULL},
               {"png", "image/png"},
               {"svg", "image/svg+xml"},
               {"pdf", "application/pdf"},
               {"html", "text/html; charset=utf-8"},
               {"csv", "text/csv; charset=utf-8"},
               {"sqlite", "application/octet-stream"}};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static size_t find_format(const char *name) {
    size_t i = 0;
    while (i < N_FORMATS && strcmp(formats[i].format, name) != 0) i++;
    return i;
}

/* ---- kinds ---- */

static json_t *field_json(const qkv_study_field *field) {
    static const char *const types[] = {
        [QKV_FIELD_FLAG] = "flag",   [QKV_FIELD_INTEGER] = "integer", [QKV_FIELD_REAL] = "real",
        [QKV_FIELD_RANGE] = "range", [QKV_FIELD_LENGTH] = "length",   [QKV_FIELD_WORD] = "word",
        [QKV_FIELD_TEXT] = "text",   [QKV_FIELD_LIST] = "list",       [QKV_FIELD_FILE] = "file",
        [QKV_FIELD_PATH] = "path"};
    const int bounded = field->least != 0 || field->most != 0;
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s?, s:s, s:o}", "name", field->name, "type",
                     types[field->type], "use", field->use == QKV_FIELD_WORK ? "work" : "look",
                     "words", qkv_study_split(field->words), "least",
                     bounded ? qkv_json_exact(field->least) : json_null(), "most",
                     bounded ? qkv_json_exact(field->most) : json_null(), "value", field->value,
                     "help", field->help, "outputs", qkv_study_split(field->outputs));
}

static json_t *list_fields(const char *kind) {
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    json_t *list = json_array();
    for (size_t i = 0; qkv_study_option(kind, i, &field); i++)
        qkv_json_push(list, field_json(&field));
    return list;
}

static size_t most_prompts(const qkv_study_kind *kind) {
    return kind->most_prompts < QKV_LIMIT_STUDY_PROMPTS ? kind->most_prompts
                                                        : QKV_LIMIT_STUDY_PROMPTS;
}

static json_t *kind_json(const qkv_study_kind *kind) {
    return json_pack("{s:s, s:s, s:s, s:s, s:{s:I, s:I, s:I, s:o}, s:i, s:b, s:s?, s:o}", "name",
                     kind->name, "title", kind->title, "description", kind->description, "examples",
                     kind->examples, "prompts", "least", (json_int_t)kind->least_prompts, "most",
                     (json_int_t)most_prompts(kind), "default", (json_int_t)kind->default_prompts,
                     "names", qkv_study_split(kind->prompt_names), "models", (int)kind->n_models,
                     "has_cells", (int)kind->has_cells, "operand", kind->operand, "fields",
                     list_fields(kind->name));
}

int qkv_api_kinds(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    const char *name;
    json_t *kinds = json_array(), *names = json_array();
    (void)pool;
    (void)call;
    for (size_t i = 0; (name = qkv_study_kind_name(i)); i++) {
        qkv_study_kind kind = QKV_STUDY_KIND_INIT;
        if (qkv_study_get_kind(name, &kind, err) == QKV_OK) qkv_json_push(kinds, kind_json(&kind));
    }
    for (size_t i = 0; i < N_FORMATS; i++) qkv_json_push(names, json_string(formats[i].format));
    return qkv_reply_json(reply, json_pack("{s:o, s:o}", "kinds", kinds, "formats", names), err);
}

/* ---- reading ---- */

typedef struct study_request {
    qkv_study_kind kind;
    const json_t *options; /* NULL or null: none */
    const char *format, *name;
    int dry;
    const qkv_pool_model *which[2]; /* the second of a comparison; else NULL */
    qkv_model *models[2];
    qkv_prompt_list prompts;
    qkv_study *study;
    qkv_words words; /* of the command line */
    qkv_words shown; /* the same as recipes tell it */
} study_request;

static int read_kind(study_request *r, const json_t *request, qkv_error *err) {
    const char *name = NULL;
    int status = qkv_request_need(request, "kind", err);
    if (status == QKV_OK)
        status = qkv_request_text(request, "kind", QKV_REQUEST_FILE_NAME, &name, err);
    return status == QKV_OK ? qkv_study_get_kind(name, &r->kind, err) : status;
}

static int read_options(study_request *r, const json_t *request, qkv_error *err) {
    r->options = json_object_get(request, "options");
    int status = qkv_study_options_check(r->options, r->kind.name, r->format, err);
    if (status == QKV_OK) status = qkv_study_new(&r->study, r->kind.name, err);
    if (status != QKV_OK || !json_is_object(r->options)) return status;
    char *text = qkv_json_dump(r->options, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text) return qkv_fail_memory(err);
    status = qkv_study_set_json(r->study, text, err);
    free(text);
    return status;
}

static int read_prompts(study_request *r, const json_t *request, qkv_error *err) {
    const qkv_study_kind *kind = &r->kind;
    const json_t *given = json_object_get(request, "prompts");
    if (kind->most_prompts == 0 && json_array_size(given))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s takes no prompts", kind->name);
    int status = qkv_prompt_list_read(&r->prompts, given, QKV_LIMIT_STUDY_PROMPTS, err);
    if (status == QKV_OK) status = qkv_prompt_list_check(&r->prompts, err);
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    int only_text = kind->prompt_names != NULL;
    for (size_t i = 0; !only_text && qkv_study_option(kind->name, i, &field); i++)
        only_text = strcmp(field.name, "chat") == 0; /* it makes conversations itself */
    for (size_t i = 0; i < r->prompts.n && status == QKV_OK; i++) {
        const qkv_request_prompt *wanted = &r->prompts.wanted[i];
        if (only_text && (wanted->chat || (wanted->tokens && kind->prompt_names)))
            status = qkv_fail(err, QKV_ERR_ARGUMENT, "prompts of %s are texts", kind->name);
    }
    return status;
}

/* Is it one of "png|svg|pdf"? */
static int has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length) {
        const int begins = at == words || at[-1] == '|', ends = !at[length] || at[length] == '|';
        if (begins && ends) return 1;
    }
    return 0;
}

static int read_request(study_request *r, const json_t *request, qkv_error *err) {
    r->kind = (qkv_study_kind)QKV_STUDY_KIND_INIT;
    r->format = formats[0].format;
    int status = read_kind(r, request, err);
    r->name = r->kind.name;
    if (status == QKV_OK) status = qkv_request_text(request, "format", 16, &r->format, err);
    if (status == QKV_OK && find_format(r->format) == N_FORMATS)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "`format` must be json, png, svg, pdf, html, csv or sqlite");
    if (status == QKV_OK && !has_word(r->kind.formats, r->format))
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "`format`: %s is not written as %s, but as %s",
                          r->kind.name, r->format, r->kind.formats);
    if (status == QKV_OK) status = qkv_request_flag(request, "dry", &r->dry, err);
    if (status == QKV_OK) status = qkv_request_file_name(request, &r->name, err);
    if (status == QKV_OK) status = read_options(r, request, err);
    return status == QKV_OK ? read_prompts(r, request, err) : status;
}

/* A comparison without a second model is one with the edited first. */
static int open_models(study_request *r, qkv_model_pool *pool, const qkv_call *call,
                       qkv_error *err) {
    const char *second = NULL;
    int status = qkv_request_text(call->request, "second_model", 4096, &second, err);
    if (status == QKV_OK && second && r->kind.n_models == 1)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "%s takes one model: leave out `second_model`",
                          r->kind.name);
    if (status == QKV_OK && !second && r->kind.n_models == 2 &&
        !qkv_study_option_value(r->options, "edit"))
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "%s wants a `second_model`, or the option `edit` to compare a model with "
                          "its edited self",
                          r->kind.name);
    if (status == QKV_OK)
        status = qkv_model_pool_open(pool, call->common.model, &r->which[0], &r->models[0], err);
    if (status != QKV_OK || r->kind.n_models == 1) return status;
    return qkv_model_pool_open(pool, second ? second : call->common.model, &r->which[1],
                               &r->models[1], err);
}

/* ---- the command line ---- */

/* What the command takes without its name: the first word where none is given. */
static void add_operand(const study_request *r, qkv_words *words) {
    const char *given = json_string_value(json_object_get(r->options, r->kind.operand));
    qkv_study_field field = QKV_STUDY_FIELD_INIT;
    for (size_t i = 0; qkv_study_option(r->kind.name, i, &field); i++) {
        if (strcmp(field.name, r->kind.operand) != 0) continue;
        char *word =
            given ? qkv_strdup(given) : qkv_strndup(field.words, strcspn(field.words, "|"));
        qkv_words_add(words, word);
        free(word);
    }
}

/* Of studies with cells, -o FILE.sqlite is the file of results, which is another one. */
static void add_output(const study_request *r, qkv_words *words) {
    qkv_text output = {0};
    if (strcmp(r->format, "json") == 0) {
        qkv_words_add(words, "--json");
    } else if (strcmp(r->format, "sqlite") == 0 && r->kind.has_cells) {
        qkv_words_pair(words, "--format", r->format);
        qkv_words_pair(words, "-o", "-");
    } else {
        qkv_text_printf(&output, "%s.%s", r->name, r->format);
        qkv_words_pair(words, "-o", output.failed ? NULL : output.data);
    }
    qkv_text_release(&output);
}

/* Of two models both are named; the one that comes with qkv has no name but its path. */
static void add_models(const study_request *r, qkv_words *words, int is_short) {
    const int n = r->models[1] && r->which[0] != r->which[1] ? 2 : 1;
    for (int i = 0; i < n; i++) {
        const char *model = r->which[i]->argument;
        if (!model && n == 2) model = qkv_model_get_info(r->models[i])->path;
        if (model) qkv_words_pair(words, "-m", is_short ? qkv_words_short_model(model) : model);
    }
}

/* "figure modify" is two words. */
static void add_name(const char *command, qkv_words *words) {
    while (*command) {
        const size_t n = strcspn(command, " ");
        char *word = qkv_strndup(command, n);
        qkv_words_add(words, word);
        free(word);
        command += n + (command[n] == ' ');
    }
}

static void write_command(const study_request *r, qkv_words *words, int is_short) {
    qkv_words_add(words, "qkv");
    add_name(r->kind.command, words);
    if (r->kind.operand) add_operand(r, words);
    add_models(r, words, is_short);
    qkv_prompt_list_add_words(&r->prompts, r->kind.prompt_names, words);
    qkv_study_options_words(r->options, &r->kind, words);
    add_output(r, words);
}

static int make_commands(study_request *r, qkv_error *err) {
    write_command(r, &r->words, 0);
    write_command(r, &r->shown, 1);
    return r->words.failed || r->shown.failed ? qkv_fail_memory(err) : QKV_OK;
}

static json_t *command_json(const study_request *r) {
    json_t *json = qkv_words_json(&r->words);
    qkv_json_put(json, "files", qkv_study_options_files(r->options, r->kind.name));
    return json;
}

/* ---- bounds ---- */

static int check_tokens(const study_request *r, qkv_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < r->prompts.n; i++) n += r->prompts.pooled[i].n_tokens;
    if (n <= QKV_LIMIT_STUDY_TOKENS) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT,
                    "the prompts have %zu tokens together; %d are the most of a study here", n,
                    QKV_LIMIT_STUDY_TOKENS);
}

static int check_cells(const study_request *r, qkv_error *err) {
    qkv_sweep *sweep = NULL;
    if (!r->kind.has_cells) return QKV_OK;
    int status = qkv_study_make_sweep(r->study, r->models[0], &sweep, err);
    if (status != QKV_OK) return status;
    const long long cells = qkv_sweep_n_cells(sweep);
    const size_t metrics = qkv_sweep_n_metrics(sweep);
    if ((double)cells * (double)metrics > QKV_LIMIT_STUDY_CELLS)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "this study has %lld cells of %zu metric%s; %d values are the most here; "
                          "the command line can make it",
                          cells, metrics, metrics == 1 ? "" : "s", QKV_LIMIT_STUDY_CELLS);
    qkv_sweep_free(sweep);
    return status;
}

/* All that can be told before anything is computed. */
static int prepare(study_request *r, qkv_model_pool *pool, qkv_error *err) {
    int status = qkv_prompt_list_tokenize(&r->prompts, pool, r->models[0], err);
    if (status == QKV_OK) status = check_tokens(r, err);
    for (size_t i = 0; i < r->prompts.n && status == QKV_OK; i++)
        status = qkv_study_add_prompt(r->study, &r->prompts.prompts[i], err);
    if (status == QKV_OK) status = make_commands(r, err);
    if (status == QKV_OK)
        status =
            qkv_study_set_command(r->study, (const char *const *)r->shown.items, r->shown.n, err);
    if (status == QKV_OK && strcmp(r->format, "html") == 0)
        status = qkv_study_set(r->study, "page", "true", err);
    if (status == QKV_OK) status = qkv_study_check(r->study, err);
    return status == QKV_OK ? check_cells(r, err) : status;
}

/* ---- answers ---- */

static json_t *list_pictures(const qkv_study *study) {
    const char *name;
    json_t *list = json_array();
    for (size_t i = 0; (name = qkv_study_picture_name(study, i)); i++) {
        const char *title = qkv_study_picture_title(study, i);
        qkv_json_push(list, json_pack("{s:s, s:o}", "name", name, "title",
                                      title ? qkv_json_text(title) : json_null()));
    }
    return list;
}

/* The JSON that the program writes, and what else there is to know. */
static int send_json(const study_request *r, const char *text, size_t length, qkv_reply *reply,
                     qkv_error *err) {
    qkv_study_info info = QKV_STUDY_INFO_INIT;
    const int status = qkv_study_get_info(r->study, &info, err);
    if (status != QKV_OK) return status;
    json_t *json = qkv_json_parse(text, length, JSON_ALLOW_NUL, NULL), *command = command_json(r);
    qkv_json_put(json, "id", qkv_json_text(info.id));
    qkv_json_put(json, "n_printed", json_integer((json_int_t)info.n_printed));
    qkv_json_put(json, "pictures", list_pictures(r->study));
    qkv_json_put_all(json, command);
    json_decref(command);
    return qkv_reply_json(reply, json, err);
}

static int send_study(const study_request *r, qkv_reply *reply, qkv_error *err) {
    const char *type = formats[find_format(r->format)].type;
    char *bytes = NULL;
    size_t n_bytes = 0;
    int status = qkv_study_render(r->study, r->format, &bytes, &n_bytes, err);
    if (status == QKV_OK && n_bytes > MOST_BYTES)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "the answer has %zu MiB; %zu are the most here; the command line can "
                          "make it",
                          n_bytes >> 20, MOST_BYTES >> 20);
    if (status == QKV_OK && !type) status = send_json(r, bytes, n_bytes, reply, err);
    if (status == QKV_OK && type)
        qkv_reply_bytes(reply, bytes, n_bytes, type);
    else
        qkv_bytes_free(bytes);
    return status;
}

static int run(const study_request *r, qkv_model_pool *pool, qkv_error *err) {
    qkv_session *session = NULL, *other = NULL;
    int status = qkv_model_pool_session(pool, r->models[0], &session, err);
    if (status == QKV_OK && r->models[1])
        status = qkv_model_pool_new_session(pool, r->models[1], &other, err);
    if (status == QKV_OK) status = qkv_study_run(r->study, session, other, err);
    qkv_session_free(other);
    return status;
}

int qkv_api_study(qkv_model_pool *pool, const qkv_call *call, qkv_reply *reply, qkv_error *err) {
    study_request r = {0};
    int status = read_request(&r, call->request, err);
    if (status == QKV_OK) status = open_models(&r, pool, call, err);
    if (status == QKV_OK) status = prepare(&r, pool, err);
    if (status == QKV_OK && r.dry) status = qkv_reply_json(reply, command_json(&r), err);
    if (status == QKV_OK && !r.dry) {
        status = run(&r, pool, err);
        if (status == QKV_OK) status = send_study(&r, reply, err);
    }
    qkv_prompt_list_release(&r.prompts);
    qkv_words_release(&r.words);
    qkv_words_release(&r.shown);
    qkv_study_free(r.study);
    for (int i = 0; i < 2; i++) qkv_model_free(r.models[i]);
    return status;
}
