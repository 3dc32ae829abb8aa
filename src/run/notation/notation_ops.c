/*
 * OP[:ARGS] of an edit: which operation. Operations read their arguments themselves (operation.h).
 */
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "run/notation/notation_cursor.h"
#include "run/site.h"

static int fail_op(qkv_cursor *c, int length) {
    qkv_text known = {0};
    qkv_nearest near = qkv_nearest_of(c->at, (size_t)length);
    for (int i = 0; i < QKV_OP_COUNT; i++) {
        const int calls = (qkv_op_flags((qkv_op)i) & QKV_EDIT_CALLS) != 0;
        if (calls && c->notation->n_customs == 0) continue; /* nothing it could name */
        qkv_text_printf(&known, "%s%s", i ? ", " : "", qkv_op_name((size_t)i));
        qkv_nearest_try(&near, qkv_op_name((size_t)i));
    }
    int status =
        qkv_cursor_fail(c, QKV_ERR_SYNTAX, "there is no operation '%.*s'%s; operations are %s",
                        length, c->at, qkv_nearest_hint(&near), known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

int qkv_notation_op(qkv_cursor *c, qkv_edit *edit) {
    size_t length = strcspn(c->at, ":=");
    qkv_cursor_begin(c, ":=");
    for (int i = 0; i < QKV_OP_COUNT; i++) {
        const char *name = qkv_op_name((size_t)i);
        const qkv_operation *code = qkv_op_get((qkv_op)i);
        if (strlen(name) != length || strncmp(name, c->at, length) != 0) continue;
        qkv_edit_set_op(edit, (qkv_op)i);
        c->at += length;
        if ((edit->flags & QKV_EDIT_HIDES) && !qkv_site_is_masked(edit->where.site))
            return qkv_cursor_fail(c, QKV_ERR_PLAN,
                                   "%s is for scores, before the softmax, not for %s", name,
                                   qkv_site_name(edit->where.site));
        if ((edit->flags & QKV_EDIT_NEEDS_CHANNELS) &&
            qkv_site_get_axes(edit->where.site) == QKV_AXES_MAP)
            return qkv_cursor_fail(c, QKV_ERR_PLAN, "%s is for what has channels, not for %s", name,
                                   qkv_site_name(edit->where.site));
        if (!code->read || ((edit->flags & QKV_EDIT_MAY_BE_BARE) && !*c->at))
            return QKV_OK; /* anything after it is caught as trailing text */
        if (!qkv_cursor_take(c, ':') || !*c->at)
            return qkv_cursor_fail(c, QKV_ERR_SYNTAX, "%s needs %s after a colon%s", name,
                                   qkv_op_arguments((size_t)i),
                                   *c->at == '=' ? ", not after '='" : "");
        qkv_cursor_begin(c, "");
        return code->read(c, edit);
    }
    return fail_op(c, (int)length);
}
