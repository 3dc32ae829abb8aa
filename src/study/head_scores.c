/*
 * A head's scores as they are before the soft-cap, and the part that edits play for them.
 *
 * The site `scores` is after the cap, and undoing the cap would lose what it has flattened. But q
 * times 2^-40 makes every score so small that the cap is the identity to the last bits (tanh x = x -
 * x³/3 ...), and a power of two changes no digit of q, nor of any product and sum on the way: the
 * captured scores times 2^40 are those that were capped.
 *
 * A bias by distance (ALiBi) is not a product and is taken away: a page adds it again. No family has both.
 */
#include "study/head_scores.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "model/model.h"
#include "run/run.h"
#include "study/figure_scores.h"

#define TINY_FACTOR "9.094947017729282379150390625e-13" /* 2^-40 */
static const double TINY_INVERSE = 1099511627776;

/* ---- scores ---- */

int qkv_scores_capture(qkv_plan *plan, int32_t layer, int32_t head, double softcap,
                       qkv_error *err) {
    char place[48], text[96];
    snprintf(place, sizeof place, head < 0 ? "@%d" : "@%d.h%d", (int)layer, (int)head);
    snprintf(text, sizeof text, "scores%s", place);
    const int status = qkv_plan_add_capture(plan, text, err);
    if (status != QKV_OK || softcap == 0) return status;
    snprintf(text, sizeof text, "q%s=scale:" TINY_FACTOR, place);
    return qkv_plan_add_variant(plan, text, NULL, err);
}

double qkv_head_slope(const qkv_model *model, int32_t layer, int32_t head) {
    return layer < 0 || head < 0 ? 0 : (double)qkv_score_slope(&model->hp, layer, head);
}

void qkv_scores_plain(float *to, const float *from, size_t n_tokens, double softcap, double slope) {
    for (size_t i = 0; i < n_tokens * n_tokens; i++) {
        const size_t query = i / n_tokens, key = i % n_tokens;
        const double distance = (double)key - (double)query;
        const double product = (double)from[i] - slope * distance;
        to[i] = (float)(softcap != 0 ? product * TINY_INVERSE : product);
    }
}

int qkv_head_scores(qkv_session *session, const int32_t *tokens, size_t n_tokens, int32_t layer,
                    int32_t head, float *out, qkv_error *err) {
    QKV_NEED(err, session);
    QKV_NEED(err, tokens);
    QKV_NEED(err, out);
    const qkv_model *model = qkv_session_model(session);
    const qkv_model_info *info = qkv_model_get_info(model);
    if (layer < 0 || layer >= info->n_layer || head < 0 || head >= info->n_head)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "there is no head %d in layer %d: the model has %d layers of %d heads",
                        (int)head, (int)layer, (int)info->n_layer, (int)info->n_head);
    qkv_plan *plan = NULL;
    qkv_result *result = NULL;
    qkv_tensor found = QKV_TENSOR_INIT;
    int status = qkv_plan_new(&plan, model, tokens, n_tokens, err);
    if (status == QKV_OK) status = qkv_scores_capture(plan, layer, head, info->attn_softcap, err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    if (status == QKV_OK &&
        !qkv_result_get(result, info->attn_softcap != 0, QKV_SITE_SCORES, layer, &found))
        status =
            qkv_fail(err, QKV_ERR_BACKEND, "the run did not return scores of layer %d", (int)layer);
    if (status == QKV_OK)
        qkv_scores_plain(out, found.data, n_tokens, info->attn_softcap,
                         qkv_head_slope(model, layer, head));
    qkv_result_free(result);
    qkv_plan_free(plan);
    return status;
}

/* ---- edits ---- */

/* Does the edit change anything below the layer? Then its scores are others. */
static int is_below(const qkv_edit_info *edit, int32_t layer) {
    for (int32_t l = 0; l < layer; l++) {
        if (!edit->layers || edit->layers[l]) return 1;
    }
    return 0;
}

static qkv_score_role role_of(qkv_site site) {
    switch (site) {
    case QKV_SITE_Q:
    case QKV_SITE_Q_ROT:
        return QKV_SCORE_QUERY;
    case QKV_SITE_K:
    case QKV_SITE_K_ROT:
        return QKV_SCORE_KEY;
    case QKV_SITE_V:
        return QKV_SCORE_VALUE;
    default:
        return QKV_SCORE_OTHER;
    }
}

qkv_score_role qkv_edit_score_role(const qkv_plan *plan, const qkv_result *result, size_t variant,
                                   size_t edit, int32_t layer, int32_t head) {
    qkv_edit_info info = QKV_EDIT_INFO_INIT;
    if (!plan || !result || layer < 0 || !qkv_plan_get_edit(plan, variant, edit, &info))
        return QKV_SCORE_OTHER;
    const qkv_score_role hidden =
        qkv_result_edit_ran(result, variant, edit) ? QKV_SCORE_OTHER : QKV_SCORE_NOTHING;
    const int scales = strcmp(info.op, "scale") == 0 || strcmp(info.op, "zero") == 0;
    if (is_below(&info, layer)) return hidden;
    if (scales && !info.channels && qkv_plan_edit_covers(plan, variant, edit, layer, head) &&
        role_of(info.site) != QKV_SCORE_OTHER)
        return role_of(info.site);
    return hidden;
}
