/*
 * Makers: how tensors of a Hugging Face directory are made into those of a GGUF file, on numbers
 * small enough to be written down; and weights that are made when they are first needed.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "model/hf/hf.h"
#include "model/lazy_weights.h"

static qkv_st_tensor matrix(const void *data, size_t size, int n_dims, const int64_t *shape) {
    qkv_st_tensor t = {.name = (char *)"source", .dtype = "F32", .type = GGML_TYPE_F32};
    t.data = data;
    t.size = size;
    t.n_dims = n_dims;
    memcpy(t.shape, shape, (size_t)n_dims * sizeof *shape);
    return t;
}

/* Makes a tensor of at most 64 floats from the sources. */
static qkv_gguf_tensor made(const qkv_maker_kind *kind, const qkv_st_tensor **sources, size_t n,
                            void *out) {
    const qkv_tensor_maker maker = {
        .kind = kind, .sources = sources, .n_sources = n, .n_head = 4, .n_kv_head = 2};
    qkv_gguf_tensor t = {0};
    qkv_error err = {0};
    const int status = kind->plan(&maker, &t, &err);
    if (status < 0) fail_msg("%s", err.message);
    assert_true(t.size <= 64 * sizeof(float));
    kind->make(&maker, &t, out);
    return t;
}

static void transposes(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4, 5, 6}, wanted[] = {1, 4, 2, 5, 3, 6};
    const qkv_st_tensor source = matrix(in, sizeof in, 2, (const int64_t[]){2, 3});
    const qkv_st_tensor *sources[] = {&source};
    float out[64];
    const qkv_gguf_tensor t = made(&qkv_maker_transpose, sources, 1, out);
    assert_int_equal(t.ne[0], 2);
    assert_int_equal(t.ne[1], 3);
    assert_memory_equal(out, wanted, sizeof wanted);
}

/* Groups of two queries, a key and a value, each one row here. */
static void ungroups(void **state) {
    (void)state;
    static const float in[] = {1, 2, 11, 21, 3, 4, 12, 22}, wanted[] = {1, 2, 3, 4, 11, 12, 21, 22};
    const qkv_st_tensor source = matrix(in, sizeof in, 1, (const int64_t[]){8});
    const qkv_st_tensor *sources[] = {&source};
    float out[64];
    made(&qkv_maker_ungroup, sources, 1, out);
    assert_memory_equal(out, wanted, sizeof wanted);
}

static void takes_columns(void **state) {
    (void)state;
    static const float in[] = {1, 2, 3, 4, 5, 6, 7, 8}; /* one expert, [2, 4] */
    static const float even[] = {1, 5, 3, 7}, odd[] = {2, 6, 4, 8};
    const qkv_st_tensor source = matrix(in, sizeof in, 3, (const int64_t[]){1, 2, 4});
    const qkv_st_tensor *sources[] = {&source};
    float out[64];
    const qkv_gguf_tensor t = made(&qkv_maker_even_columns, sources, 1, out);
    assert_int_equal(t.ne[0], 2);
    assert_int_equal(t.ne[1], 2);
    assert_memory_equal(out, even, sizeof even);
    made(&qkv_maker_odd_columns, sources, 1, out);
    assert_memory_equal(out, odd, sizeof odd);
}

static void stacks(void **state) {
    (void)state;
    static const float a[] = {1, 2}, b[] = {3, 4}, wanted[] = {1, 2, 3, 4};
    const qkv_st_tensor first = matrix(a, sizeof a, 1, (const int64_t[]){2});
    qkv_st_tensor second = matrix(b, sizeof b, 1, (const int64_t[]){2});
    const qkv_st_tensor *sources[] = {&first, &second};
    float out[64];
    const qkv_gguf_tensor t = made(&qkv_maker_stack, sources, 2, out);
    assert_int_equal(t.ne[1], 2);
    assert_memory_equal(out, wanted, sizeof wanted);

    second.shape[0] = 1;
    const qkv_tensor_maker uneven = {.kind = &qkv_maker_stack, .sources = sources, .n_sources = 2};
    qkv_gguf_tensor unused = {0};
    qkv_error err = {0};
    assert_true(qkv_maker_stack.plan(&uneven, &unused, &err) < 0);
    assert_non_null(strstr(err.message, "one type and shape"));
}

/* The values that a code of four bits stands for, times the power of two of its run. */
static float mxfp4_value(const unsigned char *codes, int i, unsigned char scale) {
    static const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    const unsigned code = i % 2 ? codes[i / 2] >> 4 : codes[i / 2] & 15u;
    return ldexpf(code & 8 ? -values[code & 7] : values[code & 7], scale - 127);
}

static void repacks_mxfp4(void **state) {
    (void)state;
    unsigned char codes[2][16], scales[2] = {125, 130};
    for (int i = 0; i < 32; i++) codes[i / 16][i % 16] = (unsigned char)(i * 37 + 11);
    qkv_st_tensor blocks = matrix(codes, sizeof codes, 4, (const int64_t[]){1, 2, 1, 16});
    qkv_st_tensor exponents = matrix(scales, sizeof scales, 3, (const int64_t[]){1, 2, 1});
    blocks.dtype = exponents.dtype = "U8";
    blocks.type = exponents.type = GGML_TYPE_COUNT;
    const qkv_st_tensor *sources[] = {&blocks, &exponents};
    const qkv_maker_kind *kinds[] = {&qkv_maker_mxfp4_even, &qkv_maker_mxfp4_odd};
    for (int row = 0; row < 2; row++) {
        unsigned char packed[64 * sizeof(float)];
        float out[32];
        const qkv_gguf_tensor t = made(kinds[row], sources, 2, packed);
        assert_int_equal(t.type, GGML_TYPE_MXFP4);
        assert_int_equal(t.ne[0], 32);
        assert_int_equal(t.ne[1], 1);
        assert_int_equal(t.size, ggml_row_size(GGML_TYPE_MXFP4, 32));
        ggml_get_type_traits(GGML_TYPE_MXFP4)->to_float(packed, out, 32);
        for (int i = 0; i < 32; i++)
            assert_float_equal(out[i], mxfp4_value(codes[row], i, scales[row]), 0);
    }
    const qkv_tensor_maker alone = {.kind = kinds[0], .sources = sources, .n_sources = 1};
    qkv_gguf_tensor unused = {0};
    assert_true(kinds[0]->plan(&alone, &unused, NULL) < 0);
}

/* ---- made when needed ---- */

static _Atomic int times_made;

static void count_making(const qkv_tensor_maker *maker, const qkv_gguf_tensor *t, void *out) {
    (void)maker;
    memset(out, 1, t->size);
    times_made++;
}

static const qkv_maker_kind counted = {NULL, count_making};

static void *make_layer(void *lazy) {
    qkv_error err;
    assert_int_equal(qkv_lazy_weights_make(lazy, 1, &err), QKV_OK);
    return NULL;
}

/* Several threads need the same layer: each weight of it is made once, and no other. */
static void makes_once(void **state) {
    (void)state;
    enum { THREADS = 4 };
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 16, .no_alloc = true});
    struct ggml_tensor *mine = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4096);
    struct ggml_tensor *other = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4096);
    const qkv_tensor_maker maker = {.base = {qkv_tensor_make}, .kind = &counted};
    const qkv_gguf_tensor t = {.size = ggml_nbytes(mine), .maker = &maker.base};
    qkv_lazy_weights *lazy = NULL;
    qkv_error err;
    assert_int_equal(qkv_lazy_weights_add(&lazy, mine, &t, 1, &err), QKV_OK);
    assert_int_equal(qkv_lazy_weights_add(&lazy, other, &t, 2, &err), QKV_OK);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_layer, lazy), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(times_made, 1);
    assert_int_equal(((unsigned char *)mine->data)[4096 * 4 - 1], 1);
    assert_null(other->data);
    qkv_lazy_weights_free(lazy);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes),    cmocka_unit_test(ungroups),
        cmocka_unit_test(takes_columns), cmocka_unit_test(stacks),
        cmocka_unit_test(repacks_mxfp4), cmocka_unit_test(makes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
