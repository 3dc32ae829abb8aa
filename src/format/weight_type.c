#define _POSIX_C_SOURCE 200809L
#include "format/gguf_write.h"

#include "base/text.h"

/* ggml can quantise to what it can read as numbers; F32 needs neither. */
static int can_write(enum ggml_type type) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    if (!traits->type_name || (type != GGML_TYPE_F32 && !traits->to_float)) return 0;
    return !ggml_quantize_requires_imatrix(type);
}

static int fail_type(const char *text, qkv_error *err) {
    qkv_text names = {0};
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        if (!can_write((enum ggml_type)i)) continue;
        qkv_text_printf(&names, "%s%s", i ? ", " : "", ggml_type_name((enum ggml_type)i));
    }
    int status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "'%s' is not a type that weights can be written in; there are %s", text,
                          names.data ? names.data : "none");
    qkv_text_release(&names);
    return status;
}

int qkv_weight_type_parse(enum ggml_type *type, const char *text, qkv_error *err) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const enum ggml_type candidate = (enum ggml_type)i;
        const char *name = ggml_type_name(candidate);
        if (!name || !qkv_equal_ignoring_case(name, text)) continue;
        *type = candidate;
        if (can_write(candidate)) return QKV_OK;
        if (ggml_quantize_requires_imatrix(candidate))
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "type %s needs an importance matrix, which is not supported", name);
    }
    return fail_type(text, err);
}
