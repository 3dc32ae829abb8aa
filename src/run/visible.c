#include "run/visible.h"

#include "qkv/observe.h"
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

int qkv_edit_keeps_zero(const qkv_edit *edit) {
    switch (edit->op) {
    case QKV_OP_SCALE:
    case QKV_OP_ZERO:
    case QKV_OP_PATCH: /* the other prompt has the same mask */
    case QKV_OP_FREEZE:
        return 1;
    case QKV_OP_SET:
    case QKV_OP_ADD:
        return edit->a == 0;
    case QKV_OP_CLAMP:
        return edit->a <= 0 && edit->b >= 0;
    case QKV_OP_MEAN: /* over heads of one cell; the others take in cells that are visible */
        return edit->axis == QKV_MEAN_HEAD;
    default:
        return 0;
    }
}

int qkv_visible_check(const qkv_model *model, const qkv_edit *edit, int64_t n_tokens,
                      qkv_error *err) {
    const qkv_selector *where = &edit->where;
    if (qkv_site_get_axes(where->site) != QKV_AXES_MAP) return QKV_OK;
    if (where->site == QKV_SITE_PATTERN && !qkv_edit_keeps_zero(edit)) return QKV_OK;
    for (int32_t il = 0; il < model->hp.n_layer; il++) {
        if (where->layers[il] && sees_any(model, where, il, n_tokens)) return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_PLAN,
                    "edit '%s' can have no effect: no query that it selects sees a key that it "
                    "selects",
                    edit->text);
}
