/* A study from its inputs and options. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/sized.h"
#include "qkv/head_choice.h"
#include "study/study_maps.h"

/* ---- options ---- */

/* Into a struct of the kind's, to be freed. */
int qkv_study_read_options(void **out, const study_kind *kind, const json_t *from, qkv_error *err) {
    char *options = *out = qkv_calloc(1, kind->options_size);
    if (!options) return qkv_fail_memory(err);
    for (size_t i = 0; i < kind->n_fields; i++) {
        const int32_t automatic = QKV_AUTO;
        if (kind->fields[i].kind == FIELD_INDEX)
            memcpy(options + kind->fields[i].offset, &automatic, sizeof automatic);
    }
    return from ? qkv_fields_read(kind->fields, kind->n_fields, from, options, err) : QKV_OK;
}

/* ---- prompts ---- */

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

static int take_prompts(study_inputs *in, const study_kind *kind, const qkv_study_inputs *given,
                        qkv_error *err) {
    int status = qkv_prompts_check(given->prompts, given->n_prompts, "prompts", err);
    if (status == QKV_OK) status = check_number(kind, given->n_prompts, err);
    if (status != QKV_OK || given->n_prompts == 0) return status;
    status = qkv_prompts_take(&in->prompts, given->prompts, given->n_prompts, in->model, err);
    for (size_t i = 0; i < in->prompts.n && status == QKV_OK; i++)
        status = qkv_prompt_make_labels(&in->prompts.items[i], in->model, err);
    return status;
}

static int take_inputs(study_inputs *in, const study_kind *kind, const qkv_study_inputs *given,
                       qkv_error *err) {
    in->session = given->session;
    in->model = qkv_session_model(given->session);
    in->other = given->other;
    in->other_model = given->other ? qkv_session_model(given->other) : NULL;
    in->results = given->results;
    in->progress = given->progress;
    in->user = given->user;
    if (in->results && !kind->keeps_results)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s keeps no results to go on from", kind->name);
    if (kind->needs_other && !in->other)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s wants two models", kind->name);
    if (!kind->needs_other && in->other)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%s takes one model", kind->name);
    return take_prompts(in, kind, given, err);
}

int qkv_study_progress(const study_inputs *in, int64_t done, int64_t wanted, qkv_error *err) {
    if (!in->progress || in->progress(in->user, done, wanted) == 0) return QKV_OK;
    return qkv_fail(err, QKV_ERR_CANCELLED, "ended at %lld of %lld", (long long)done,
                    (long long)wanted);
}

/* ---- the study ---- */

static int make(qkv_study *study, const study_inputs *in, const qkv_study_inputs *given,
                const void *options, qkv_error *err) {
    int status = study->kind->make(study, in, options, err);
    if (status == QKV_OK && study->failed) status = qkv_fail_memory(err);
    if (status == QKV_OK && given->living) status = qkv_study_take_maps(study, in, err);
    if (status == QKV_OK) status = qkv_study_make_recipe(study, in, given, options, err);
    return status;
}

int qkv_study_make_json(qkv_study **out, const study_kind *kind, const qkv_study_inputs *inputs,
                        const json_t *options, qkv_error *err) {
    qkv_study_inputs given = QKV_STUDY_INPUTS_INIT;
    study_inputs in = {0};
    void *own = NULL;
    qkv_study *study = qkv_calloc(1, sizeof *study);
    if (!study) return qkv_fail_memory(err);
    study->kind = kind;
    int status = qkv_sized_read(&given, sizeof given, inputs, "qkv_study_inputs", err);
    if (status == QKV_OK && !given.session)
        status = qkv_fail(err, QKV_ERR_ARGUMENT, "a study needs a session");
    if (status == QKV_OK) status = qkv_study_read_options(&own, kind, options, err);
    if (status == QKV_OK) status = take_inputs(&in, kind, &given, err);
    if (status == QKV_OK) status = make(study, &in, &given, own, err);
    qkv_prompts_release(&in.prompts);
    free(own);
    if (status == QKV_OK)
        *out = study;
    else
        qkv_study_free(study);
    return status;
}

static int fail_kind(const char *kind, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(kind, strlen(kind));
    for (size_t i = 0; i < qkv_study_n_kinds; i++) qkv_nearest_try(&near, qkv_study_kinds[i]->name);
    return qkv_fail(err, QKV_ERR_ARGUMENT, "there is no study \"%.40s\"%s", kind,
                    qkv_nearest_hint(&near));
}

int qkv_study_make(qkv_study **out, const char *kind, const qkv_study_inputs *inputs,
                   const char *options, qkv_error *err) {
    QKV_NEED(err, out);
    *out = NULL;
    QKV_NEED(err, kind);
    QKV_NEED(err, inputs);
    const study_kind *found = qkv_study_find_kind(kind);
    if (!found) return fail_kind(kind, err);
    json_error_t where;
    json_t *tree = options ? qkv_json_parse(options, strlen(options),
                                            JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where)
                           : NULL;
    if (options && !tree)
        return qkv_fail(err, QKV_ERR_SYNTAX, "the options are no JSON: %s", where.text);
    const int status = qkv_study_make_json(out, found, inputs, tree, err);
    json_decref(tree);
    return status;
}
