/*
 * Vectors of edits: read from files, fitted to sites, and what is wrong with them told in one line. That
 * the arithmetic is right at every site is shown by test_conformance.c and test_families.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QKV_UNSTABLE
#include "qkv/qkv.h"
#include "run/run.h"
#include "store/store_formats.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/refused.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = 6, D = 32, H = 4, G = 2, d = 8 };

static const int32_t tokens[T] = {1, 20, 30, 40, 50, 60};
static qkv_error err;

typedef struct bench {
    engine eng;
    qkv_edit_data *data;
    qkv_plan *plan;
} bench;

static void bench_open(bench *b) {
    static const tiny_options options = {"llama", .n_embd = D, .n_head = H, .n_kv_head = G};
    engine_open(&b->eng, tiny_model(&options, "vectors.gguf"), 1);
    assert_int_equal(b->eng.info->head_dim, d);
    b->data = NULL;
    b->plan = NULL;
    OK(qkv_edit_data_new(&b->data, &err));
    OK(qkv_plan_new(&b->plan, b->eng.model, tokens, T, &err));
    OK(qkv_plan_set_edit_data(b->plan, b->data, &err));
}

static void bench_close(bench *b) {
    qkv_plan_free(b->plan);
    qkv_edit_data_free(b->data);
    engine_close(&b->eng);
}

static void add_vector(bench *b, const char *name, int32_t n_dims, int64_t n0, int64_t n1,
                       int64_t n2) {
    const int64_t shape[] = {n0, n1, n2};
    const size_t n = (size_t)(n0 * n1 * n2);
    float *values = calloc(n, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) values[i] = (float)(i % 7) - 2.5f;
    OK(qkv_edit_data_add_vector(b->data, name, values, shape, n_dims, &err));
    free(values);
}

static void expect_refused(bench *b, const char *edit, const char *message) {
    err = (qkv_error){0};
    assert_int_not_equal(qkv_plan_add_variant(b->plan, edit, NULL, &err), QKV_OK);
    if (!strstr(err.message, message)) fail_msg("'%s': %s", edit, err.message);
    assert_null(strchr(err.message, '\n'));
}

/* What heads read is as wide as the model, and rows may be those of a captured residual stream. */
static void shapes_of_inputs(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_vector(&b, "D", 1, D, 1, 1);
    add_vector(&b, "TD", 2, T, D, 1);
    add_vector(&b, "HD", 2, H, D, 1);
    add_vector(&b, "GD", 2, G, D, 1);
    add_vector(&b, "1D", 2, 1, D, 1);
    add_vector(&b, "T1D", 3, T, 1, D);
    add_vector(&b, "THD", 3, T, H, D);
    add_vector(&b, "d", 1, d, 1, 1);
    static const char *const good[] = {
        "q_in@0=add:@D",        "q_in@0.h1=set:@TD", "q_in@0.h1=set:@HD",  "q_in@0.h1=set:@1D",
        "q_in@0.h1=set:@T1D",   "q_in@0=set:@THD",   "k_in@0=set:@GD",     "k_in@0.h2=set:@GD",
        "v_in@0.g1=remove:@TD", "k_in@0.h2=set:@HD", "v_in@0.h0=set:@THD",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        OK(qkv_plan_add_variant(b.plan, good[i], NULL, &err));
    expect_refused(&b, "q_in@0=add:@d",
                   "the vector has shape 8; q_in takes 32, or 6,32 by token, or 4,32 by head, or "
                   "6,4,32 by token");
    expect_refused(&b, "k_in@0=add:@HD", "the vector has shape 4,32; k_in takes 32");
    bench_close(&b);
}

/* As many tokens as heads: what are the rows? */
static void unclear_rows(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_vector(&b, "HD", 2, H, D, 1);
    add_vector(&b, "H1D", 3, H, 1, D);
    qkv_plan_free(b.plan);
    OK(qkv_plan_new(&b.plan, b.eng.model, tokens, H, &err));
    OK(qkv_plan_set_edit_data(b.plan, b.data, &err));
    expect_refused(&b, "q_in@0=set:@HD",
                   "the vector has shape 4,32, whose rows may be tokens or heads; give it as "
                   "4,1,32 by token, as a capture of q_in.h0 has it, or as 4,4,32");
    OK(qkv_plan_add_variant(b.plan, "q_in@0=set:@H1D", NULL, &err));
    OK(qkv_plan_add_variant(b.plan, "k_in@0=set:@HD", NULL, &err));
    bench_close(&b);
}

static void shapes(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_vector(&b, "D", 1, D, 1, 1);
    add_vector(&b, "TD", 2, T, D, 1);
    add_vector(&b, "d", 1, d, 1, 1);
    add_vector(&b, "Hd", 2, H, d, 1);
    add_vector(&b, "Gd", 2, G, d, 1);
    add_vector(&b, "THd", 3, T, H, d);
    add_vector(&b, "Td", 2, T, d, 1);
    static const char *const good[] = {
        "resid_post@0=add:@D", "resid_post@0=add:@TD,by=-2",
        "q@*.h1=remove:@d",    "q@0=set:@Hd",
        "z@1[2]=add:@THd",     "k@0.g1=add:@Gd",
        "v@0=set:@Gd",         "k@0.h3=add:@Hd",
        "k@0.h3=add:@Gd",      "v@1.h1[:2]=remove:@THd",
        "q@0{1:3}=add:@d",     "q@0.h1{0}=set:@Hd",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        OK(qkv_plan_add_variant(b.plan, good[i], NULL, &err));
    expect_refused(&b, "resid_post@0=add:@d",
                   "the vector has shape 8; resid_post takes 32, or 6,32 by token");
    expect_refused(&b, "q@0=add:@D",
                   "the vector has shape 32; q takes 8, or 4,8 by head, or 6,4,8");
    expect_refused(&b, "q@0=add:@Gd", "the vector has shape 2,8; q takes");
    expect_refused(&b, "v@0.g0=add:@Hd", "the vector has shape 4,8; v takes 8, or 2,8 by head");
    expect_refused(&b, "q@0=add:@Td", "the vector has shape 6,8; q takes");
    expect_refused(&b, "resid_post@0=add:@THd", "the vector has shape 6,4,8");
    expect_refused(&b, "pattern@0=add:@d", "pattern has no channels");
    expect_refused(&b, "scores@0[:,0]=set:@d", "scores has no channels");
    expect_refused(&b, "q@0{1:3}=remove:@d", "a direction is taken out of whole rows");
    bench_close(&b);
}

static void words(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    add_vector(&b, "direction", 1, D, 1, 1);
    expect_refused(&b, "resid_post@0=add:@directio", "did you mean 'direction'?");
    expect_refused(&b, "resid_post@0=add:@dir.safetensors#a",
                   "vectors from files are not available");
    expect_refused(&b, "resid_post@0=add:@/etc/dir.safetensors#a", "are not available here");
    expect_refused(&b, "resid_post@0=remove:3", "expected a vector");
    expect_refused(&b, "resid_post@0=remove", "remove needs a vector");
    expect_refused(&b, "resid_post@0=add:@direction,times=3", "unexpected text ',times=3'");
    expect_refused(&b, "resid_post@0=set:@direction,by=3", "unexpected text ',by=3'");
    expect_refused(&b, "resid_post@0=add:@direction,by=x", "expected a factor, not 'x'");
    expect_refused(&b, "resid_post@0=add:@direction,by=1e99", "not a finite number");
    expect_refused(&b, "resid_post@0=scale:@direction", "expected a factor");
    bench_close(&b);
}

static void zero_has_no_direction(void **state) {
    (void)state;
    bench b;
    float values[G * d] = {0};
    const int64_t all[] = {d}, by_head[] = {G, d};
    bench_open(&b);
    OK(qkv_edit_data_add_vector(b.data, "zero", values, all, 1, &err));
    values[d] = 1; /* the second head has one */
    OK(qkv_edit_data_add_vector(b.data, "half", values, by_head, 2, &err));
    expect_refused(&b, "v@0=remove:@zero", "the vector is zero");
    expect_refused(&b, "v@0=remove:@half", "the vector is zero");
    expect_refused(&b, "v@0.g0=remove:@half", "the vector is zero");
    expect_refused(&b, "v@0.h1=remove:@half", "the vector is zero");
    OK(qkv_plan_add_variant(b.plan, "v@0.g1=remove:@half", NULL, &err));
    OK(qkv_plan_add_variant(b.plan, "v@0.h2=remove:@half", NULL, &err));
    OK(qkv_plan_add_variant(b.plan, "v@0=add:@zero", NULL, &err));
    bench_close(&b);
}

/* ---- files ---- */

static const char *write_file(const char *name, const float *values, int64_t n) {
    const char *path = scratch_path(name);
    const qkv_store_tensor list[] = {{sizeof *list, "smooth", values, 1, {n, 0, 0}},
                                     {sizeof *list, "rough", values, 2, {1, n, 0}}};
    OK(qkv_store_write_tensors(list, 2, NULL, 0, path, &err));
    return path;
}

static void reads(void **state) {
    (void)state;
    bench b;
    float values[D];
    char edit[600];
    qkv_vector_info info = QKV_VECTOR_INFO_INIT;
    bench_open(&b);
    for (int i = 0; i < D; i++) values[i] = (float)i - 3;
    const char *path = write_file("dir.safetensors", values, D);
    snprintf(edit, sizeof edit, "resid_post@0=add:@%s#smooth,by=2 + logits=scale:2", path);
    OK(qkv_edit_data_read_vectors(b.data, edit, &err));
    OK(qkv_edit_data_read_vectors(b.data, edit, &err)); /* once is enough */
    assert_int_equal(qkv_edit_data_vector(b.data, 0, &info), 1);
    assert_string_equal(info.name, "dir.safetensors#smooth");
    assert_int_equal(info.n_dims, 1);
    assert_int_equal(info.shape[0], D);
    assert_memory_equal(info.values, values, sizeof values);
    assert_int_equal(strlen(info.hash), 32);
    assert_int_equal(qkv_edit_data_vector(b.data, 1, &info), 0);
    OK(qkv_plan_add_variant(b.plan, edit, NULL, &err));
    assert_string_equal(qkv_plan_variant_text(b.plan, 1),
                        "resid_post@0=add:@dir.safetensors#smooth,by=2 + logits=scale:2");
    qkv_result *result = NULL;
    OK(qkv_plan_add_capture(b.plan, "resid_post@0", &err));
    OK(qkv_session_run(b.eng.session, &result, b.plan, &err));
    const qkv_tensor base = engine_tensor(result, 0, QKV_SITE_RESID_POST, 0);
    const qkv_tensor moved = engine_tensor(result, 1, QKV_SITE_RESID_POST, 0);
    for (int i = 0; i < T * D; i++) assert_true(moved.data[i] == base.data[i] + 2 * values[i % D]);
    assert_non_null(strstr(qkv_result_edit_note(result, 1, 0), info.hash));
    assert_null(qkv_result_edit_note(result, 1, 1));
    assert_null(qkv_result_edit_note(result, 1, 2));
    qkv_result_free(result);
    bench_close(&b);
}

static void expect_unread(qkv_edit_data *data, const char *path, const char *tensor,
                          const char *message) {
    char edit[700];
    snprintf(edit, sizeof edit, "resid_post@0=add:@%s%s", path, tensor);
    err = (qkv_error){0};
    assert_int_not_equal(qkv_edit_data_read_vectors(data, edit, &err), QKV_OK);
    if (!strstr(err.message, message)) fail_msg("'%s': %s", edit, err.message);
    assert_null(strchr(err.message, '\n'));
}

static void cut_off(const char *path, const char *to, size_t n) {
    char bytes[4096];
    FILE *from = fopen(path, "rb"), *out = fopen(to, "wb");
    assert_true(from && out && fread(bytes, 1, n, from) == n && fwrite(bytes, 1, n, out) == n);
    fclose(from);
    fclose(out);
}

static void bad_files(void **state) {
    (void)state;
    qkv_edit_data *data = NULL;
    float values[D] = {1};
    OK(qkv_edit_data_new(&data, &err));
    const char *path = write_file("good.safetensors", values, D);
    char other[512], cut[512];
    snprintf(cut, sizeof cut, "%s", scratch_path("cut.safetensors"));
    expect_unread(data, path, "#smoot",
                  "has no tensor 'smoot' (did you mean 'smooth'?); it has rough, smooth");
    expect_unread(data, path, "#", "a vector of a file is @FILE#NAME");
    expect_unread(data, "", "#a", "a vector of a file is @FILE#NAME");
    expect_unread(data, scratch_path("nowhere.safetensors"), "#a", "nowhere.safetensors");
    cut_off(path, cut, 40);
    expect_unread(data, cut, "#smooth", "is cut off inside its header");
    cut_off(path, cut, 250);
    expect_unread(data, cut, "#smooth", "cut.safetensors");
    values[3] = NAN;
    snprintf(other, sizeof other, "%s", write_file("nan.safetensors", values, D));
    expect_unread(data, other, "#smooth", "value 3 is NaN");
    assert_int_equal(qkv_edit_data_vector(data, 0, &(qkv_vector_info)QKV_VECTOR_INFO_INIT), 0);
    qkv_edit_data_free(data);
}

static void one_name_one_vector(void **state) {
    (void)state;
    qkv_edit_data *data = NULL;
    float values[D] = {1};
    char edit[600];
    OK(qkv_edit_data_new(&data, &err));
    snprintf(edit, sizeof edit, "resid_post@0=add:@%s#smooth",
             write_file("same.safetensors", values, D));
    OK(qkv_edit_data_read_vectors(data, edit, &err));
    values[1] = 5;
    write_file("same.safetensors", values, D);
    assert_int_equal(qkv_edit_data_read_vectors(data, edit, &err), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "two different vectors"));
    qkv_edit_data_free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(shapes_of_inputs),
        cmocka_unit_test(unclear_rows),
        cmocka_unit_test(words),
        cmocka_unit_test(zero_has_no_direction),
        cmocka_unit_test(reads),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(one_name_one_vector),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
