/* Vectors by name, and a set of prompts: checked and hashed when they are added. */
#include "run/plan/edit_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "run/plan/other_prompt.h"
#include "run/run.h"

int qkv_edit_data_new(qkv_edit_data **out, qkv_error *err) {
    QKV_NEED(err, out);
    *out = qkv_calloc(1, sizeof **out);
    if (!*out) return qkv_fail_memory(err);
    (*out)->n_owners = 1;
    return QKV_OK;
}

static void free_vector(qkv_vector *vector) {
    if (!vector) return;
    free(vector->name);
    free(vector->values);
    free(vector);
}

static void free_set(qkv_prompt_set *set) {
    for (size_t i = 0; set && set->tokens && i < set->n; i++) free(set->tokens[i]);
    if (set) free((void *)set->tokens);
    if (set) free(set->lengths);
    free(set);
}

void qkv_edit_data_free(qkv_edit_data *data) {
    if (!data || atomic_fetch_sub(&data->n_owners, 1) != 1) return;
    for (size_t i = 0; i < data->n_vectors; i++) free_vector(data->vectors[i]);
    free((void *)data->vectors);
    free_set(data->set);
    free(data);
}

qkv_edit_data *qkv_edit_data_retain(const qkv_edit_data *data) {
    qkv_edit_data *own = (qkv_edit_data *)data;
    if (own) atomic_fetch_add(&own->n_owners, 1);
    return own;
}

/* ---- vectors ---- */

const qkv_vector *qkv_edit_data_find_vector(const qkv_edit_data *data, const char *name,
                                            size_t length) {
    for (size_t i = 0; data && i < data->n_vectors; i++) {
        const char *known = data->vectors[i]->name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) return data->vectors[i];
    }
    return NULL;
}

static int check_name(const qkv_edit_data *data, const char *name, qkv_error *err) {
    const char *folder = strchr(name, '/'), *tensor = strchr(name, '#');
    if (!*name || strpbrk(name, "+,: \t\r\n") || (folder && (!tensor || folder < tensor)))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%s' cannot name a vector: no spaces, '+', ',' or ':', and no '/' before "
                        "a '#'",
                        name);
    if (qkv_edit_data_find_vector(data, name, strlen(name)))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "there are two vectors named '%s'", name);
    return QKV_OK;
}

static int count_values(const char *name, const int64_t *shape, int32_t n_dims, size_t *n,
                        qkv_error *err) {
    *n = 1;
    if (n_dims < 1 || n_dims > QKV_VECTOR_MAX_DIMS)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "vector '%s' has %d dimensions; it may have 1 to %d",
                        name, (int)n_dims, QKV_VECTOR_MAX_DIMS);
    for (int32_t i = 0; i < n_dims; i++) {
        if (shape[i] < 1 || (uint64_t)shape[i] > (uint64_t)(SIZE_MAX / sizeof(float)) / *n)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "vector '%s' is empty, or too large", name);
        *n *= (size_t)shape[i];
    }
    return QKV_OK;
}

static int check_values(const char *name, const float *values, size_t n, qkv_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i]))
            return qkv_fail(err, QKV_ERR_NUMERIC, "vector '%s': value %zu is %s", name, i,
                            isnan(values[i]) ? "NaN" : "Inf");
    }
    return QKV_OK;
}

static int hash_vector(qkv_vector *vector, size_t n, qkv_error *err) {
    qkv_fingerprint print;
    const int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    for (int32_t i = 0; i < vector->n_dims; i++)
        qkv_fingerprint_add_number(&print, (uint64_t)vector->shape[i]);
    qkv_fingerprint_add(&print, vector->values, n * sizeof *vector->values);
    qkv_fingerprint_end(&print, vector->hash);
    return QKV_OK;
}

int qkv_edit_data_add_vector(qkv_edit_data *data, const char *name, const float *values,
                             const int64_t *shape, int32_t n_dims, qkv_error *err) {
    QKV_NEED(err, data);
    QKV_NEED(err, name);
    QKV_NEED(err, values);
    QKV_NEED(err, shape);
    size_t n = 0;
    int status = check_name(data, name, err);
    if (status == QKV_OK) status = count_values(name, shape, n_dims, &n, err);
    if (status == QKV_OK) status = check_values(name, values, n, err);
    if (status != QKV_OK) return status;
    qkv_vector *vector = qkv_calloc(1, sizeof *vector);
    if (!vector) return qkv_fail_memory(err);
    vector->name = qkv_strdup(name);
    vector->values = qkv_calloc(n, sizeof *values);
    vector->n_dims = n_dims;
    memcpy(vector->shape, shape, (size_t)n_dims * sizeof *shape);
    if (vector->values) memcpy(vector->values, values, n * sizeof *values);
    status = vector->name && vector->values ? hash_vector(vector, n, err) : qkv_fail_memory(err);
    if (status == QKV_OK &&
        !QKV_PUSH(data->vectors, data->vectors_capacity, data->n_vectors, vector))
        status = qkv_fail_memory(err);
    if (status != QKV_OK) free_vector(vector);
    return status;
}

int qkv_edit_data_vector(const qkv_edit_data *data, size_t index, qkv_vector_info *info) {
    if (!data || !info || index >= data->n_vectors) return 0;
    const qkv_vector *vector = data->vectors[index];
    qkv_vector_info own = {.size = sizeof own,
                           .name = vector->name,
                           .values = vector->values,
                           .n_dims = vector->n_dims,
                           .hash = vector->hash};
    memcpy(own.shape, vector->shape, sizeof own.shape);
    return qkv_sized_write(info, &own, sizeof own, "qkv_vector_info", NULL) == QKV_OK;
}

/* ---- the set of prompts ---- */

static int check_prompts(const int32_t *const *tokens, const size_t *lengths, size_t n,
                         qkv_error *err) {
    if (n == 0) return qkv_fail(err, QKV_ERR_ARGUMENT, "the set has no prompts");
    for (size_t i = 0; i < n; i++) {
        if (!tokens[i] || lengths[i] == 0)
            return qkv_fail(err, QKV_ERR_ARGUMENT, "prompt %zu of the set is empty", i);
    }
    return QKV_OK;
}

static int fill_set(qkv_prompt_set *set, const int32_t *const *tokens, const size_t *lengths,
                    qkv_error *err) {
    qkv_fingerprint print;
    set->tokens = qkv_calloc(set->n, sizeof *set->tokens);
    set->lengths = qkv_calloc(set->n, sizeof *set->lengths);
    if (!set->tokens || !set->lengths) return qkv_fail_memory(err);
    set->shortest = lengths[0];
    int status = qkv_fingerprint_start(&print, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < set->n && status == QKV_OK; i++) {
        set->tokens[i] = qkv_tokens_copy(tokens[i], lengths[i]);
        if (!set->tokens[i]) status = qkv_fail_memory(err);
        set->lengths[i] = lengths[i];
        set->n_tokens += lengths[i];
        if (lengths[i] < set->shortest) set->shortest = lengths[i];
        if (lengths[i] > set->longest) set->longest = lengths[i];
        qkv_fingerprint_add_number(&print, lengths[i]);
        for (size_t t = 0; t < lengths[i]; t++)
            qkv_fingerprint_add_number(&print, (uint64_t)tokens[i][t]);
    }
    qkv_fingerprint_end(&print, set->hash);
    return status;
}

int qkv_edit_data_set_prompts(qkv_edit_data *data, const int32_t *const *tokens,
                              const size_t *lengths, size_t n_prompts, qkv_error *err) {
    QKV_NEED(err, data);
    QKV_NEED(err, tokens);
    QKV_NEED(err, lengths);
    int status = check_prompts(tokens, lengths, n_prompts, err);
    if (status != QKV_OK) return status;
    if (data->set) return qkv_fail(err, QKV_ERR_ARGUMENT, "there is a set of prompts already");
    qkv_prompt_set *set = qkv_calloc(1, sizeof *set);
    if (!set) return qkv_fail_memory(err);
    set->n = n_prompts;
    status = fill_set(set, tokens, lengths, err);
    if (status == QKV_OK)
        data->set = set;
    else
        free_set(set);
    return status;
}

const int32_t *qkv_edit_data_prompt(const qkv_edit_data *data, size_t index, size_t *n_tokens) {
    const int is_there = data && data->set && index < data->set->n;
    if (n_tokens) *n_tokens = is_there ? data->set->lengths[index] : 0;
    return is_there ? data->set->tokens[index] : NULL;
}

const char *qkv_edit_data_prompts_hash(const qkv_edit_data *data) {
    return data && data->set ? data->set->hash : NULL;
}

/* ---- plans ---- */

int qkv_plan_set_edit_data(qkv_plan *plan, const qkv_edit_data *data, qkv_error *err) {
    QKV_NEED(err, plan);
    if (data == plan->data) return QKV_OK;
    if (plan->data) return qkv_fail(err, QKV_ERR_ARGUMENT, "the plan has its edit data already");
    plan->data = qkv_edit_data_retain(data);
    return QKV_OK;
}
