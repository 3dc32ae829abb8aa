/* What edits name: fields to prompts with names, and vectors. See edit_inputs.h. */
#include "study/edit_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/edit_words.h"
#include "base/memory.h"
#include "run/run.h"
#include "study/study.h"

static int is_of_set(const char *name) {
    return name && strcmp(name, QKV_SET_PROMPT) == 0;
}

size_t qkv_edit_inputs_count_plain(const qkv_study *study) {
    size_t n = 0;
    for (size_t i = 0; i < study->n_given; i++) n += !study->given[i].name;
    return n;
}

char **qkv_field_texts(const char *list, size_t *n) {
    const size_t length = list ? strlen(list) : 0;
    size_t n_texts = list ? 1 : 0;
    for (size_t i = 0; i < length; i++) n_texts += list[i] == '\n';
    /* The texts follow the array. */
    char **texts = qkv_calloc(n_texts * sizeof *texts + length + 1, 1);
    char *at = texts ? (char *)(texts + n_texts) : NULL;
    *n = 0;
    if (!texts || !list) return texts;
    memcpy(at, list, length);
    for (; *n < n_texts; at += strlen(at) + 1) {
        texts[(*n)++] = at;
        at[strcspn(at, "\n")] = '\0';
    }
    return texts;
}

/* ---- fields to prompts ---- */

static int add_named(qkv_study *study, const char *name, const char *text, qkv_error *err) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.name = name;
    prompt.text = text;
    return qkv_study_add_prompt(study, &prompt, err);
}

static int add_source(qkv_study *study, char *text, qkv_error *err) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "a `source` is written NAME=TEXT, not '%s'", text);
    *equals = '\0';
    return add_named(study, text, equals + 1, err);
}

static int add_of_set(qkv_study *study, char *text, qkv_error *err) {
    const size_t length = strlen(text);
    if (length && text[length - 1] == '\r') text[length - 1] = '\0';
    return *text ? add_named(study, QKV_SET_PROMPT, text, err) : QKV_OK;
}

static int take_field(qkv_study *study, const char *name,
                      int (*add)(qkv_study *, char *, qkv_error *), qkv_error *err) {
    json_t *set = study->set[QKV_FIELD_INPUT];
    const char *list = json_string_value(json_object_get(set, name));
    size_t n = 0;
    if (!list) return QKV_OK;
    char **texts = qkv_field_texts(list, &n);
    int status = texts ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) status = add(study, texts[i], err);
    free(texts);
    if (status == QKV_OK) json_object_del(set, name);
    return status;
}

/* ---- edits ---- */

/* Calls `use` with the text of each field that holds edits; it may replace it. */
typedef int use_edits(qkv_study *study, const char *name, const char *text, void *user,
                      qkv_error *err);

static int for_edits(qkv_study *study, use_edits *use, void *user, qkv_error *err) {
    int status = QKV_OK;
    for (const char *at = study->kind->edits; at && *at && status == QKV_OK;) {
        char name[32];
        const size_t n = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const json_t *value = json_object_get(study->set[QKV_FIELD_WORK], name);
        if (json_is_string(value)) status = use(study, name, json_string_value(value), user, err);
        at += n + (at[n] == '|');
    }
    return status;
}

typedef struct word_search {
    const char *operation, *argument;
    int found;
} word_search;

static int look_for(qkv_study *study, const char *name, const char *text, void *user,
                    qkv_error *err) {
    word_search *s = user;
    (void)study, (void)name, (void)err;
    s->found |= qkv_edits_say(text, s->operation, s->argument);
    return QKV_OK;
}

static int is_said(qkv_study *study, const char *operation, const char *argument) {
    word_search s = {operation, argument, 0};
    (void)for_edits(study, look_for, &s, NULL);
    return s.found;
}

static int check_used(qkv_study *study, qkv_error *err) {
    if (study->kind->figure) return QKV_OK; /* figures look for their sources themselves */
    for (size_t i = 0; i < study->n_given; i++) {
        const char *name = study->given[i].name;
        if (!name) continue;
        if (!study->kind->edits)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "the study '%s' has no edits that name prompts",
                            study->kind->name);
        if (is_of_set(name) && !is_said(study, "mean:", "set") &&
            !is_said(study, "patch:", "resample"))
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "no edit uses `set_prompts`; write SITE@LAYERS=mean:set or "
                            "SITE@LAYERS=patch:resample");
        if (!is_of_set(name) && !is_said(study, "patch:", name))
            return qkv_fail(err, QKV_ERR_ARGUMENT,
                            "no edit uses the source '%s'; write SITE@LAYERS=patch:%s", name, name);
    }
    return QKV_OK;
}

/* Reads the vectors of files, and leaves folders out of the edits: recipes must not tell where files lie. */
static int read_vectors(qkv_study *study, const char *name, const char *text, void *user,
                        qkv_error *err) {
    (void)user;
    int status = qkv_edit_data_read_vectors(study->edit_data, text, err);
    if (status != QKV_OK) return status;
    char *without = qkv_strdup(text);
    if (!without) return qkv_fail_memory(err);
    qkv_vector_names_shorten(without);
    json_t *value = qkv_json_text(without);
    free(without);
    return qkv_json_put(study->set[QKV_FIELD_WORK], name, value) == 0 ? QKV_OK
                                                                      : qkv_fail_memory(err);
}

int qkv_edit_inputs_take(qkv_study *study, qkv_error *err) {
    json_t *set = study->set[QKV_FIELD_INPUT];
    int status = take_field(study, "source", add_source, err);
    if (status == QKV_OK) status = take_field(study, "set_prompts", add_of_set, err);
    if (status == QKV_OK) status = check_used(study, err);
    if (status != QKV_OK || !json_is_true(json_object_get(set, "read_vectors"))) return status;
    if (!study->edit_data) status = qkv_edit_data_new(&study->edit_data, err);
    if (status == QKV_OK) status = for_edits(study, read_vectors, NULL, err);
    if (status == QKV_OK) json_object_del(set, "read_vectors");
    return status;
}

/* ---- what makers get ---- */

static int give_set(qkv_study *study, const qkv_own_prompts *named, qkv_error *err) {
    size_t n = 0;
    const int32_t **tokens = qkv_calloc(named->n, sizeof *tokens);
    size_t *lengths = qkv_calloc(named->n, sizeof *lengths);
    int status = tokens && lengths ? QKV_OK : qkv_fail_memory(err);
    for (size_t i = 0; i < named->n && status == QKV_OK; i++) {
        if (!is_of_set(named->items[i].name)) continue;
        tokens[n] = named->items[i].tokens;
        lengths[n++] = named->items[i].n_tokens;
    }
    if (status == QKV_OK && n && !study->edit_data)
        status = qkv_edit_data_new(&study->edit_data, err);
    if (status == QKV_OK && n)
        status = qkv_edit_data_set_prompts(study->edit_data, tokens, lengths, n, err);
    free((void *)tokens);
    free(lengths);
    return status;
}

static int list_sources(edit_inputs *to, qkv_error *err) {
    const qkv_own_prompts *named = &to->named;
    to->names = qkv_calloc(named->n, sizeof *to->names);
    to->tokens = qkv_calloc(named->n, sizeof *to->tokens);
    to->lengths = qkv_calloc(named->n, sizeof *to->lengths);
    if (!to->names || !to->tokens || !to->lengths) return qkv_fail_memory(err);
    for (size_t i = 0; i < named->n; i++) {
        if (is_of_set(named->items[i].name)) continue;
        to->names[to->n] = named->items[i].name;
        to->tokens[to->n] = named->items[i].tokens;
        to->lengths[to->n++] = named->items[i].n_tokens;
    }
    return QKV_OK;
}

int qkv_edit_inputs_make(edit_inputs *to, qkv_study *study, const qkv_model *model,
                         qkv_error *err) {
    qkv_vector_info vector = QKV_VECTOR_INFO_INIT;
    int status = qkv_study_take_prompts(&to->named, study, 1, model, err);
    if (status == QKV_OK) status = list_sources(to, err);
    if (status == QKV_OK) status = give_set(study, &to->named, err);
    to->data = study->edit_data;
    for (size_t i = 0; to->data && qkv_edit_data_vector(to->data, i, &vector); i++)
        qkv_study_note(study, "the vector %s has the fingerprint %s", vector.name, vector.hash);
    return status;
}

void qkv_edit_inputs_release(edit_inputs *edits) {
    qkv_own_prompts_release(&edits->named);
    free((void *)edits->names);
    free((void *)edits->tokens);
    free(edits->lengths);
    *edits = (edit_inputs){0};
}

int qkv_edit_inputs_add(const edit_inputs *edits, qkv_plan *plan, qkv_error *err) {
    int status = qkv_plan_set_edit_data(plan, edits->data, err);
    for (size_t i = 0; i < edits->n && status == QKV_OK; i++)
        status =
            qkv_plan_add_source(plan, edits->names[i], edits->tokens[i], edits->lengths[i], err);
    return status;
}
