#include "kernel/convert.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/random.h"
#include "ggml-cpu.h"
#include "kernel/convert_types.h"
#include "kernel/grids.h"

static void copy_f32(const void *from, float *to, int64_t n) {
    memcpy(to, from, (size_t)n * sizeof *to);
}

/* ggml has vector code for this type, though not in its table of types. (It has some for F16 too, but
 * takes the last few numbers from a table that is empty until a backend was made.) */
static void convert_bf16(const void *from, float *to, int64_t n) {
    ggml_cpu_bf16_to_fp32(from, to, n);
}

static const struct {
    enum ggml_type type;
    qkv_convert_fn convert;
} own[] = {{GGML_TYPE_BF16, convert_bf16},
#define OWN(type, name) {type, qkv_convert_##name},
           QKV_CONVERT_LIST(OWN)
#undef OWN
};

static qkv_convert_fn chosen[GGML_TYPE_COUNT];

static int same(float a, float b) {
    return a == b ? !signbit(a) == !signbit(b) : isnan(a) && isnan(b);
}

/* A row of arbitrary bytes: blocks with all kinds of scales, mostly finite ones. */
static int agrees(qkv_convert_fn convert, enum ggml_type type) {
    enum { WEIGHTS = 4 * 256, BYTES = WEIGHTS * 2 };
    const struct ggml_type_traits *ggml = ggml_get_type_traits(type);
    uint64_t bytes[BYTES / 8];
    float ours[WEIGHTS], theirs[WEIGHTS];
    if (ggml_row_size(type, WEIGHTS) > sizeof bytes) return 0;
    for (size_t i = 0; i < BYTES / 8; i++) bytes[i] = qkv_random_mix(1, i);
    ggml->to_float(bytes, theirs, WEIGHTS);
    convert(bytes, ours, WEIGHTS);
    for (size_t i = 0; i < WEIGHTS; i++) {
        if (!same(ours[i], theirs[i])) return 0;
    }
    return 1;
}

static void choose(void) {
    qkv_grids_learn();
    for (int type = 0; type < GGML_TYPE_COUNT; type++)
        chosen[type] = ggml_get_type_traits((enum ggml_type)type)->to_float;
    chosen[GGML_TYPE_F32] = copy_f32;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const enum ggml_type type = own[i].type;
        if (chosen[type] && agrees(own[i].convert, type)) chosen[type] = own[i].convert;
    }
}

qkv_convert_fn qkv_converter(enum ggml_type type) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return (unsigned)type < GGML_TYPE_COUNT ? chosen[type] : NULL;
}
