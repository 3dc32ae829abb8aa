/* What is set of a study, and its run: inputs and options to tables and pictures. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/sized.h"
#include "study/study.h"
#include "sweep/sweep.h"

void qkv_study_forget_ready(qkv_study *study) {
    qkv_own_prompts_release(&study->ready.prompts);
    qkv_sweep_free(study->ready.sweep);
    qkv_model_free(study->ready.model);
    study->ready = (study_ready){0};
}

/* ---- fields ---- */

int qkv_study_read_options(void **out, const study_kind *kind, const json_t *from, qkv_error *err) {
    *out = qkv_calloc(1, kind->options_size);
    if (!*out) return qkv_fail_memory(err);
    qkv_fields_clear(&kind->fields, *out, kind->options_size);
    return from ? qkv_fields_read(&kind->fields, from, *out, err) : QKV_OK;
}

/* The field of this name, and what it is for. */
static int find_field(const qkv_study *study, const char *name, const field **found,
                      qkv_field_use *use, qkv_error *err) {
    field_table tables[3];
    qkv_study_tables(study->kind, tables);
    for (int i = 0; i < 3; i++) {
        *found = qkv_field_find(&tables[i], name);
        *use = tables[i].use;
        if (*found) return QKV_OK;
    }
    return qkv_field_fail_name(tables, 3, name, err);
}

/* What was computed stays as it was asked for. */
static int check_time(const qkv_study *study, const char *name, qkv_field_use use, qkv_error *err) {
    /* The recipe of a figure has its look, and its small print the recipe's id. */
    if (!study->has_run || (use == QKV_FIELD_LOOK && !study->kind->figure)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`%s` is set before a study runs, and this one has run",
                    name);
}

int qkv_study_set(qkv_study *study, const char *name, const char *value, qkv_error *err) {
    const field *f = NULL;
    qkv_field_use use = QKV_FIELD_WORK;
    QKV_NEED(err, study);
    QKV_NEED(err, name);
    int status = find_field(study, name, &f, &use, err);
    if (status == QKV_OK) status = check_time(study, name, use, err);
    if (status != QKV_OK) return status;
    if (use == QKV_FIELD_WORK) qkv_study_forget_ready(study);
    if (value || f->kind == FIELD_FLAG) return qkv_field_put_text(f, study->set[use], value, err);
    json_object_del(study->set[use], f->name);
    return QKV_OK;
}

/* All of an object into copies of what is set, which take its place in the end. */
static int put_all(const qkv_study *study, const json_t *object, json_t *copies[3],
                   qkv_error *err) {
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) {
        const field *f = NULL;
        qkv_field_use use = QKV_FIELD_WORK;
        int status = find_field(study, name, &f, &use, err);
        if (status == QKV_OK) status = check_time(study, name, use, err);
        if (status == QKV_OK && json_is_null(value))
            json_object_del(copies[use], f->name);
        else if (status == QKV_OK)
            status = qkv_field_put_json(f, copies[use], value, err);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

static int set_all(qkv_study *study, const json_t *object, qkv_error *err) {
    json_t *copies[3];
    int status = QKV_OK;
    if (!json_is_object(object)) return qkv_fail(err, QKV_ERR_SYNTAX, "options are a JSON object");
    for (int i = 0; i < 3; i++) {
        copies[i] = qkv_json_copy(study->set[i]);
        if (!copies[i]) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = put_all(study, object, copies, err);
    qkv_study_forget_ready(study);
    for (int i = 0; i < 3; i++) {
        json_decref(status == QKV_OK ? study->set[i] : copies[i]);
        if (status == QKV_OK) study->set[i] = copies[i];
    }
    return status;
}

int qkv_study_set_options(qkv_study *study, const json_t *options, qkv_error *err) {
    return set_all(study, options, err);
}

int qkv_study_set_json(qkv_study *study, const char *object, qkv_error *err) {
    QKV_NEED(err, study);
    QKV_NEED(err, object);
    json_error_t where;
    json_t *tree =
        qkv_json_parse(object, strlen(object), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!tree) return qkv_fail(err, QKV_ERR_SYNTAX, "the options are not JSON: %s", where.text);
    const int status = set_all(study, tree, err);
    json_decref(tree);
    return status;
}

int qkv_study_set_command(qkv_study *study, const char *const *words, size_t n_words,
                          qkv_error *err) {
    QKV_NEED(err, study);
    if (n_words && !words) return qkv_fail(err, QKV_ERR_ARGUMENT, "the command has no words");
    char **copy = qkv_study_keep(study, NULL, n_words * sizeof *copy);
    for (size_t i = 0; copy && i < n_words; i++)
        copy[i] = (char *)qkv_study_keep_text(study, words[i] ? words[i] : "");
    if (study->failed) return qkv_fail_memory(err);
    study->command = copy;
    study->n_command = n_words;
    return QKV_OK;
}

/* ---- prompts ---- */

int qkv_study_add_prompt(qkv_study *study, const qkv_prompt *prompt, qkv_error *err) {
    qkv_prompt own = QKV_PROMPT_INIT;
    QKV_NEED(err, study);
    QKV_NEED(err, prompt);
    int status = qkv_sized_read(&own, sizeof own, prompt, "qkv_prompt", err);
    if (status == QKV_OK) status = qkv_prompts_check(&own, 1, "prompt", err);
    if (status == QKV_OK && study->has_run)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "prompts are added before a study runs");
    if (status != QKV_OK) return status;
    qkv_study_forget_ready(study);
    own.size = sizeof own;
    if (own.text && !own.length) own.length = strlen(own.text);
    char *text = own.text ? qkv_study_keep(study, own.text, own.length + 1) : NULL;
    if (text) text[own.length] = '\0';
    own.text = text;
    own.tokens =
        own.tokens ? qkv_study_keep(study, own.tokens, own.n_tokens * sizeof *own.tokens) : NULL;
    own.name = qkv_study_keep_text(study, own.name);
    own.written = qkv_study_keep_text(study, own.written);
    own.pair = qkv_study_keep_text(study, own.pair);
    if (!study->failed && QKV_PUSH(study->given, study->given_capacity, study->n_given, own))
        return QKV_OK;
    study->failed = 1;
    return qkv_fail_memory(err);
}

static int check_number(const study_kind *kind, size_t n, qkv_error *err) {
    if (n < kind->least_prompts)
        return qkv_fail(
            err, QKV_ERR_ARGUMENT, "the study '%s' wants %s%zu prompt%s, and %zu %s given",
            kind->name, kind->most_prompts > kind->least_prompts ? "at least " : "",
            kind->least_prompts, qkv_plural(kind->least_prompts), n, n == 1 ? "is" : "are");
    if (n > kind->most_prompts)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the study '%s' takes %zu prompt%s, and %zu are given", kind->name,
                        kind->most_prompts, qkv_plural(kind->most_prompts), n);
    return QKV_OK;
}

/* ---- what can be told without a model ---- */

/* *options is freed by the caller also after a failure. */
static int check(qkv_study *study, void **options, qkv_error *err) {
    const study_kind *kind = study->kind;
    if (study->has_run) return qkv_fail(err, QKV_ERR_ARGUMENT, "this study has run already");
    if (study->failed) return qkv_fail_memory(err);
    int status = qkv_study_read_options(options, kind, study->set[QKV_FIELD_WORK], err);
    const char *text;
    if (status == QKV_OK) status = qkv_edit_inputs_take(study, err);
    const size_t n_given = qkv_edit_inputs_count_plain(study);
    for (size_t i = 0; i < kind->default_prompts && n_given <= i && status == QKV_OK &&
                       (text = qkv_default_prompt(i));
         i++) {
        qkv_prompt prompt = QKV_PROMPT_INIT;
        prompt.text = text;
        status = qkv_study_add_prompt(study, &prompt, err);
    }
    if (status == QKV_OK && kind->check) {
        status = kind->check(study, *options, err);
        free(*options); /* what it has added to the options is to be among them */
        *options = NULL;
        if (status == QKV_OK)
            status = qkv_study_read_options(options, kind, study->set[QKV_FIELD_WORK], err);
    }
    return status == QKV_OK ? check_number(kind, qkv_edit_inputs_count_plain(study), err) : status;
}

int qkv_study_check(qkv_study *study, qkv_error *err) {
    void *options = NULL;
    QKV_NEED(err, study);
    const int status = check(study, &options, err);
    free(options);
    return status;
}

int qkv_study_take_prompts(qkv_own_prompts *to, const qkv_study *study, int named,
                           const qkv_model *model, qkv_error *err) {
    size_t n = 0;
    qkv_prompt *chosen = qkv_calloc(study->n_given, sizeof *chosen);
    if (!chosen) return qkv_fail_memory(err);
    for (size_t i = 0; i < study->n_given; i++) {
        if (named == (study->given[i].name != NULL)) chosen[n++] = study->given[i];
    }
    const int status = n ? qkv_prompts_take(to, chosen, n, model, err) : QKV_OK;
    free(chosen);
    return status;
}

/* Tokenizes the prompts, once for a model. They stay the study's. */
static int take_prompts(study_inputs *in, qkv_study *study, qkv_error *err) {
    study_ready *ready = &study->ready;
    int status = QKV_OK;
    if (ready->model != in->model) {
        qkv_study_forget_ready(study);
        status = qkv_study_take_prompts(&ready->prompts, study, 0, in->model, err);
        if (status == QKV_OK) ready->model = qkv_model_retain(in->model);
    }
    in->prompts = ready->prompts;
    return status;
}

int qkv_study_get_sweep(qkv_study *study, const study_inputs *in, const void *options,
                        qkv_sweep **out, qkv_error *err) {
    qkv_sweep **made = &study->ready.sweep;
    const int status = *made ? QKV_OK : study->kind->cells(made, in, options, err);
    *out = status == QKV_OK ? qkv_sweep_retain(*made) : NULL;
    return status;
}

static int take_inputs(study_inputs *in, qkv_study *study, const study_asked *asked,
                       qkv_session *session, qkv_session *other, qkv_error *err) {
    const study_kind *kind = study->kind;
    in->session = session;
    in->model = qkv_session_model(session);
    in->other = other;
    in->other_model = other ? qkv_session_model(other) : NULL;
    in->results = asked->results;
    if (kind->needs_other && !in->other)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s wants two models", kind->name);
    if (!kind->needs_other && in->other)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s takes one model", kind->name);
    if (kind->figure) return QKV_OK; /* a figure takes its prompts itself */
    int status = take_prompts(in, study, err);
    for (size_t i = 0; i < in->prompts.n && status == QKV_OK; i++)
        status = qkv_prompt_make_labels(&in->prompts.items[i], in->model, err);
    return status == QKV_OK ? qkv_edit_inputs_make(&in->edits, study, in->model, err) : status;
}

/* ---- how far it is ---- */

/* The sessions at work: how many. */
static int list_sessions(const study_inputs *in, qkv_session *sessions[2]) {
    sessions[0] = in->session;
    sessions[1] = in->other;
    return in->other && in->other != in->session ? 2 : 1;
}

int qkv_study_begin(const study_inputs *in, const char *what, size_t total, qkv_error *err) {
    qkv_session *sessions[2];
    int status = QKV_OK;
    const int n = list_sessions(in, sessions);
    for (int i = 0; i < n && status == QKV_OK; i++)
        status = qkv_session_begin_work(sessions[i], what, (double)total, err);
    return status;
}

int qkv_study_reach(const study_inputs *in, double done, double next, qkv_error *err) {
    qkv_session *sessions[2];
    int status = QKV_OK;
    const int n = list_sessions(in, sessions);
    for (int i = 0; i < n && status == QKV_OK; i++)
        status = qkv_session_reach(sessions[i], done, next, err);
    return status;
}

int qkv_study_end(const study_inputs *in, int status) {
    qkv_session *sessions[2];
    const int n = list_sessions(in, sessions);
    for (int i = 0; i < n; i++) (void)qkv_session_end_work(sessions[i], status);
    return status;
}

/* ---- the run ---- */

static int make(qkv_study *study, const study_inputs *in, const study_asked *asked,
                const void *options, qkv_error *err) {
    if (study->kind->figure) return study->kind->make(study, in, options, err);
    /* Where there is one part, its own work is told of. */
    int status = asked->page ? qkv_study_begin(in, "parts", 2, err) : QKV_OK;
    if (status != QKV_OK) return status;
    if (asked->page) status = qkv_study_reach(in, 0, 1, err);
    if (status == QKV_OK) status = study->kind->make(study, in, options, err);
    if (status == QKV_OK && study->failed) status = qkv_fail_memory(err);
    if (status == QKV_OK && asked->page) {
        status = qkv_study_reach(in, 1, 1, err);
        if (status == QKV_OK) status = qkv_study_take_maps(study, in, err);
    }
    if (asked->page) status = qkv_study_end(in, status);
    if (status == QKV_OK) status = qkv_study_make_recipe(study, in, options, err);
    return status;
}

static int read_asked(const qkv_study *study, study_asked *asked, qkv_error *err) {
    field_table tables[3];
    qkv_study_tables(study->kind, tables);
    *asked = (study_asked){0};
    return qkv_fields_read(&tables[QKV_FIELD_INPUT], study->set[QKV_FIELD_INPUT], asked, err);
}

int qkv_study_run(qkv_study *study, qkv_session *session, qkv_session *other, qkv_error *err) {
    study_inputs in = {0};
    study_asked asked;
    void *options = NULL;
    QKV_NEED(err, study);
    QKV_NEED(err, session);
    int status = check(study, &options, err);
    if (status == QKV_OK) status = read_asked(study, &asked, err);
    if (status == QKV_OK) status = take_inputs(&in, study, &asked, session, other, err);
    if (status == QKV_OK) {
        study->has_run = 1;
        status = make(study, &in, &asked, options, err);
    }
    qkv_study_forget_ready(study);
    qkv_edit_inputs_release(&in.edits);
    free(options);
    return status;
}

int qkv_study_make_sweep(qkv_study *study, const qkv_model *model, qkv_sweep **out,
                         qkv_error *err) {
    study_inputs in = {.model = model};
    void *options = NULL;
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, study);
    QKV_NEED(err, model);
    if (!study->kind->cells)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s is not computed from cells", study->kind->name);
    int status = check(study, &options, err);
    if (status == QKV_OK) status = take_prompts(&in, study, err);
    if (status == QKV_OK) status = qkv_study_get_sweep(study, &in, options, out, err);
    free(options);
    return status;
}
