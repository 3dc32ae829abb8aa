#include "study/head_ablation.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

static const double usual_epsilon = 1e-5;

int qkv_head_ablation_of(head_ablation *out, const ablation_options *options,
                         const qkv_model *model, qkv_error *err) {
    static const char *const targets[] = {[ABLATE_Q] = "q", [ABLATE_K] = "k", [ABLATE_V] = "v"};
    const qkv_model_info *info = qkv_model_get_info(model);
    *out = (head_ablation){.target = targets[options->target]};
    if (options->parity && options->target == ABLATE_V) out->target = "z";
    if (options->parity && options->target == ABLATE_K && info->n_kv_head != info->n_head)
        return qkv_fail(err, QKV_ERR_PLAN,
                        "`parity`: the paper's code takes the number of a query head for that of a "
                        "key head, and this model has %d and %d; leave out `parity`",
                        (int)info->n_head, (int)info->n_kv_head);
    if (options->epsilon > 0 && options->op != ABLATE_SCALE)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the option epsilon belongs to op scale");
    if (options->op == ABLATE_SCALE)
        qkv_format(out->op, sizeof out->op, "scale:%.9g",
                   options->epsilon > 0 ? options->epsilon : usual_epsilon);
    else
        snprintf(out->op, sizeof out->op, "%s",
                 options->op == ABLATE_ZERO ? "zero"
                 : options->parity          ? "mean:head"
                                            : "mean:others");
    return QKV_OK;
}

void qkv_head_ablation_note(qkv_study *study, const head_ablation *how) {
    qkv_study_note(study, "a head is silenced by %s@layer.head=%s", how->target, how->op);
}

void qkv_head_ablation_add(qkv_text *edits, const head_ablation *how, int32_t layer, int32_t head) {
    qkv_text_printf(edits, "%s%s@%d.h%d=%s", edits->length ? " + " : "", how->target, (int)layer,
                    (int)head, how->op);
}
