/* What a qkv_next holds, for those who ask; and its end. */
#include <math.h>
#include <stdlib.h>

#include "base/sized.h"
#include "study/next.h"

void qkv_next_free(qkv_next *next) {
    if (!next) return;
    for (size_t v = 0; v < next->n_variants; v++) {
        next_variant *variant = &next->variants[v];
        for (size_t i = 0; i < variant->n_edits; i++) free(variant->edits[i].text);
        free(variant->edits);
        free(variant->top);
        free(variant->of);
        free(variant->diffs);
        free(variant->losses);
        free(variant->answers);
    }
    free(next->variants);
    free(next);
}

static const next_variant *variant_of(const qkv_next *next, size_t variant) {
    return next && variant < next->n_variants ? &next->variants[variant] : NULL;
}

size_t qkv_next_n_variants(const qkv_next *next) {
    return next ? next->n_variants : 0;
}

int64_t qkv_next_position(const qkv_next *next) {
    return next ? next->position : -1;
}

static int give_token(qkv_next_token *to, const qkv_next_token *from) {
    return to && qkv_sized_write(to, from, sizeof *from, "qkv_next_token", NULL) == QKV_OK;
}

int qkv_next_get(const qkv_next *next, size_t variant, size_t index, qkv_next_token *token) {
    const next_variant *from = variant_of(next, variant);
    return from && index < next->n_top && give_token(token, &from->top[index]);
}

int qkv_next_get_of(const qkv_next *next, size_t variant, size_t index, qkv_next_token *token) {
    const next_variant *from = variant_of(next, variant);
    return from && index < next->n_of && give_token(token, &from->of[index]);
}

int qkv_next_get_diff(const qkv_next *next, size_t variant, size_t index, double *diff,
                      double *change) {
    const next_variant *from = variant_of(next, variant);
    if (!from || !diff || index >= next->n_diffs) return 0;
    *diff = from->diffs[index].value;
    if (change) *change = from->diffs[index].change;
    return 1;
}

int qkv_next_get_answer(const qkv_next *next, size_t variant, size_t index,
                        qkv_next_answer *answer) {
    const next_variant *from = variant_of(next, variant);
    if (!from || !answer || index >= next->n_answers) return 0;
    return qkv_sized_write(answer, &from->answers[index], sizeof *answer, "qkv_next_answer",
                           NULL) == QKV_OK;
}

double qkv_next_kl(const qkv_next *next, size_t variant) {
    const next_variant *from = variant_of(next, variant);
    return from ? from->kl : (double)NAN;
}

int qkv_next_get_loss(const qkv_next *next, size_t variant, size_t index, qkv_next_loss *loss) {
    const next_variant *from = variant_of(next, variant);
    if (!from || !loss || index >= next->n_losses) return 0;
    return qkv_sized_write(loss, &from->losses[index], sizeof *loss, "qkv_next_loss", NULL) ==
           QKV_OK;
}

double qkv_next_mean_loss(const qkv_next *next, size_t variant) {
    const next_variant *from = variant_of(next, variant);
    double sum = 0;
    if (!from || next->n_losses == 0) return NAN;
    for (size_t i = 0; i < next->n_losses; i++) sum += from->losses[i].loss;
    return sum / (double)next->n_losses;
}

static const next_edit *edit_of(const qkv_next *next, size_t variant, size_t edit) {
    const next_variant *from = variant_of(next, variant);
    return from && edit < from->n_edits ? &from->edits[edit] : NULL;
}

const char *qkv_next_edit_text(const qkv_next *next, size_t variant, size_t edit) {
    const next_edit *from = edit_of(next, variant, edit);
    return from ? from->text : NULL;
}

int qkv_next_edit_ran(const qkv_next *next, size_t variant, size_t edit) {
    const next_edit *from = edit_of(next, variant, edit);
    return from ? from->ran : 0;
}

uint64_t qkv_next_edit_changed(const qkv_next *next, size_t variant, size_t edit) {
    const next_edit *from = edit_of(next, variant, edit);
    return from ? from->changed : 0;
}
