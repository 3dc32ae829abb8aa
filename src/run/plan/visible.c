/* What the mask leaves of a map: edits of scores that it hides would be lost. */
#include "run/plan/plan.h"

#include "run/run.h"
#include "run/site.h"

/* Does any selected query of the layer see a selected key? */
static int sees_any(const qkv_model *model, const qkv_selector *where, int32_t layer,
                    int64_t n_tokens) {
    for (int64_t i = 0; i < n_tokens; i++) {
        int64_t first, end;
        if (where->rows && !where->rows[i]) continue;
        qkv_visible_keys(model, layer, n_tokens, i, &first, &end);
        for (int64_t j = first; j < end; j++) {
            if (!where->cols || where->cols[j]) return 1;
        }
    }
    return 0;
}

int qkv_edit_gives_weight(const qkv_edit *edit) {
    return qkv_site_is_weights(edit->where.site) && !(edit->flags & QKV_EDIT_KEEPS_ZERO);
}

int qkv_visible_check(const qkv_model *model, const qkv_edit *edit, int64_t n_tokens,
                      qkv_error *err) {
    const qkv_selector *where = &edit->where;
    if (qkv_site_get_axes(where->site) != QKV_AXES_MAP) return QKV_OK;
    if (qkv_edit_gives_weight(edit)) return QKV_OK;
    for (int32_t il = 0; il < model->hp.n_layer; il++) {
        if (where->layers[il] && sees_any(model, where, il, n_tokens)) return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s' can have no effect: no query that it selects sees a key that it "
                    "selects",
                    edit->text);
}
