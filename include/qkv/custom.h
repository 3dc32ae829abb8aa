/*
 * Unstable: may change in every version.
 *
 * Edits of the caller's own: a function that gets what an edit selects and changes it.
 *
 *     static int halve(void *user, const qkv_custom_call *call, qkv_error *err) {
 *         (void)user;
 *         (void)err;
 *         for (int64_t i = 0; i < call->n_values; i++) call->values[i] *= 0.5f;
 *         return QKV_OK;
 *     }
 *
 *     int main(void) {
 *         const int32_t tokens[] = {1, 20, 30, 40};
 *         qkv_error err = {0};
 *         qkv_model *model = NULL;
 *         qkv_session *session = NULL;
 *         qkv_plan *plan = NULL;
 *         qkv_result *result = NULL;
 *         qkv_custom_edit custom = QKV_CUSTOM_EDIT_INIT;
 *         custom.name = "halve";
 *         custom.apply = halve;
 *         if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *             qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *             qkv_plan_new(&plan, model, tokens, 4, &err) == QKV_OK &&
 *             qkv_plan_add_custom(plan, &custom, &err) == QKV_OK &&
 *             qkv_plan_add_variant(plan, "resid_post@0[1:]=custom:halve", NULL, &err) == QKV_OK &&
 *             qkv_plan_add_capture(plan, "logits", &err) == QKV_OK &&
 *             qkv_session_run(session, &result, plan, &err) == QKV_OK) {
 *             printf("%d values changed\n", (int)qkv_result_edit_changed(result, 1, 0));
 *         }
 *         qkv_result_free(result);
 *         qkv_plan_free(plan);
 *         qkv_session_free(session);
 *         qkv_model_free(model);
 *         return err.status ? 1 : 0;
 *     }
 *
 * A function is registered in a plan under a name, and edits say custom:NAME. Such an edit is like any
 * other: it is checked, counted and named in files, reads the unedited tensor, and changes nothing but
 * what it selects. A pass calls the function once for every variant and layer that has the edit, if
 * something that is captured depends on it. It need not give the same values every time: nothing that
 * it has changed is kept for other variants or later runs.
 *
 * The function is called in the thread that runs the plan, or one that this waits for, never by two
 * at once in one session. It must not use what is at work, run a session, or leave by longjmp or an
 * exception. Figures and sweeps, which can be made again from what their files say, take no such edits.
 */
#ifndef QKV_CUSTOM_H
#define QKV_CUSTOM_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an edit selects of a site in one layer. Valid during the call. */
typedef struct qkv_custom_call {
    size_t size;      /* of the library's struct: fields beyond it are not there */
    const char *name; /* of the function */
    const char *edit; /* "resid_post@0[1:]=custom:halve" */
    qkv_site site;
    int32_t layer; /* -1: the site has none */
    /* To be changed in place: row-major, channels in the order of captures. */
    float *values;
    int64_t n_values;
    int32_t n_dims;
    int64_t shape[3];      /* as in the table of sites, of what is selected */
    const int32_t *heads;  /* their numbers; NULL: the site has none */
    const int64_t *tokens; /* of the rows: queries, where the site is a map */
    const int64_t *keys;   /* of the columns of a map; NULL: it is none */
    int32_t n_heads;
    int64_t n_tokens, n_keys;
    char head_kind;          /* 'h': query heads, 'g': key/value heads, 0: none */
    const int64_t *channels; /* of the innermost axis; NULL: it has keys */
    int64_t n_channels;
} qkv_custom_call;

typedef struct qkv_custom_edit {
    size_t size;
    const char *name; /* copied; no spaces, '+', '=' or ':' */
    /* Changes call->values. A status other than QKV_OK ends the run; *err is then its error. Values
     * that are not finite where they were are an error, too. */
    int (*apply)(void *user, const qkv_custom_call *call, qkv_error *err);
    void *user;
    /* Called when no plan needs the function any more, in any thread. May be NULL. */
    void (*release)(void *user);
    /* 1: what becomes of a token depends on no other token, so that a text can grow token by token
     * (qkv/generate.h): the function then gets the new tokens only. Not for scores and patterns. */
    int32_t by_token;
} qkv_custom_edit;

#define QKV_CUSTOM_EDIT_INIT                                                                       \
    { .size = sizeof(qkv_custom_edit) }

/* Edits that are added to the plan from now on may say custom:NAME. Where it fails, `release` is not
 * called. */
QKV_API int qkv_plan_add_custom(qkv_plan *plan, const qkv_custom_edit *custom, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
