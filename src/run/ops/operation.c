#include "run/ops/operation.h"

#include "run/edit.h"

#define F(flag) QKV_EDIT_##flag
#define OP_ENTRY(id, name, arguments, what, flags)                                                 \
    [QKV_OP_##id] = {#name, arguments, what, flags, &qkv_operation_##name},
static const struct {
    const char *name, *arguments, *what;
    unsigned flags;
    const qkv_operation *code;
} ops[] = {QKV_OP_LIST(OP_ENTRY)};
#undef OP_ENTRY
#undef F
_Static_assert(sizeof ops / sizeof *ops == QKV_OP_COUNT, "every operation has its line");

const char *qkv_op_name(size_t index) {
    return index < QKV_OP_COUNT ? ops[index].name : NULL;
}

const char *qkv_op_arguments(size_t index) {
    return index < QKV_OP_COUNT ? ops[index].arguments : NULL;
}

const char *qkv_op_description(size_t index) {
    return index < QKV_OP_COUNT ? ops[index].what : NULL;
}

const qkv_operation *qkv_op_get(qkv_op op) {
    return ops[op].code;
}

unsigned qkv_op_flags(qkv_op op) {
    return ops[op].flags;
}

void qkv_edit_set_op(qkv_edit *edit, qkv_op op) {
    edit->op = op;
    edit->flags = ops[op].flags;
}
