/*
 * A model of many experts that are all in use: the size of the graph follows from the model, and ggml
 * never aborts for want of room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml.h"
#include "gguf.h"
#include "support/judge.h"
#include "support/scratch.h"

#define MODEL QKV_TEST_SOURCE_DIR "/vectors/qwen3_moe/model.gguf"

enum { EXPERTS = 200 };

/* The experts over and over along the last axis, a little weaker each time: no two are equal. */
static struct ggml_tensor *multiplied(struct ggml_context *ctx, const struct ggml_tensor *t) {
    const int is_router = strstr(t->name, "ffn_gate_inp") != NULL;
    const int axis = is_router ? 1 : 2;
    int64_t ne[4] = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]};
    ne[axis] = EXPERTS;
    struct ggml_tensor *out = ggml_new_tensor(ctx, GGML_TYPE_F32, 4, ne);
    const int64_t size = t->ne[0] * (is_router ? 1 : t->ne[1]);
    if (t->type != GGML_TYPE_F32) abort();
    for (int64_t e = 0; e < EXPERTS; e++) {
        for (int64_t i = 0; i < size; i++)
            ((float *)out->data)[e * size + i] =
                ((const float *)t->data)[e % t->ne[axis] * size + i] * (1 - 0.002f * (float)e);
    }
    ggml_set_name(out, t->name);
    return out;
}

static const char *model_of_many(int used) {
    struct ggml_context *tensors = NULL;
    struct ggml_context *more = ggml_init((struct ggml_init_params){.mem_size = (size_t)64 << 20});
    struct gguf_context *to = gguf_init_empty();
    struct gguf_context *from =
        gguf_init_from_file(MODEL, (struct gguf_init_params){.ctx = &tensors});
    if (!more || !to || !from) abort();
    gguf_set_kv(to, from);
    gguf_set_val_u32(to, "qwen3moe.expert_count", EXPERTS);
    gguf_set_val_u32(to, "qwen3moe.expert_used_count", (uint32_t)used);
    for (int64_t i = 0; i < gguf_get_n_tensors(from); i++) {
        struct ggml_tensor *t = ggml_get_tensor(tensors, gguf_get_tensor_name(from, i));
        const int is_expert = strstr(t->name, "_exps") || strstr(t->name, "ffn_gate_inp");
        gguf_add_tensor(to, is_expert ? multiplied(more, t) : t);
    }
    const char *path = scratch_path("many.gguf");
    if (!gguf_write_to_file(to, path, false)) abort();
    gguf_free(from);
    gguf_free(to);
    ggml_free(tensors);
    ggml_free(more);
    return path;
}

static void all_in_use(void **state) {
    (void)state;
    static const int used[] = {1, 124, 125, EXPERTS};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        judge j;
        judge_open(&j, model_of_many(used[i]), 1);
        qkv_result *result = judge_run(&j, (const char *const[]){NULL}, judge_everything(&j));
        assert_true(judge_tensors(&j, result, 0, j.baseline, "unedited") > 0);
        qkv_result_free(result);
        judge_close(&j);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_in_use)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
