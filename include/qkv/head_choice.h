/*
 * Which head to look at: the one whose queries give the first token most of their attention.
 *
 *     const int32_t tokens[] = {1, 20, 30, 40};
 *     qkv_model *model = NULL;
 *     qkv_session *session = NULL;
 *     qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
 *     if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *         qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *         qkv_choose_head(session, tokens, 4, QKV_AUTO, QKV_AUTO, &choice, &err) == QKV_OK) {
 *         printf("layer %d, head %d: %.3f\n", (int)choice.layer, (int)choice.head, choice.sink);
 *     }
 *     qkv_session_free(session);
 *     qkv_model_free(model);
 *
 * Uses the session, and so belongs to its thread.
 */
#ifndef QKV_HEAD_CHOICE_H
#define QKV_HEAD_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/session.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QKV_AUTO = -1 };
/* In place of a layer or head: the last is QKV_FROM_END(1). */
#define QKV_FROM_END(n) (QKV_AUTO - (n))

typedef struct qkv_head_choice {
    size_t size;
    int32_t layer;
    int32_t head; /* query head */
    double sink;  /* its mean weight on the first token; -1 when nothing was left to choose */
} qkv_head_choice;

#define QKV_HEAD_CHOICE_INIT                                                                       \
    { .size = sizeof(qkv_head_choice) }

/* The largest first-column mass (qkv_measure_first_column) of the unedited prompt among the heads
 * that layer and head leave open, either or both of them QKV_AUTO. Of several, the first. Where
 * both are given nothing is computed. A plan that captures maps of the same tokens, and edits up to
 * the layer chosen, starts from what this leaves in the session (see qkv_plan_prepare). */
QKV_API int qkv_choose_head(qkv_session *session, const int32_t *tokens, size_t n_tokens,
                            int32_t layer, int32_t head, qkv_head_choice *choice, qkv_error *err);

#ifdef __cplusplus
}
#endif

#endif
