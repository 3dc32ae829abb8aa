/*
 * Fuzzer: the bytes are the specification of a sweep on a fixed model. One that is accepted has
 * cells whose edits the plan takes, blocks that hold every cell once, and a canonical text that
 * means the same; its first block can be computed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "mutators.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/values.h"
#include "sweep/sweep.h"

enum { N_TOKENS = 2, LOOKED_AT = 200 };

/* Never freed: libFuzzer's process ends without asking. */
static qkv_model *model;
static qkv_session *session;

static void open_model(void) {
    const tiny_options options = {"llama",     .n_layer = 2,   .n_embd = 16,
                                  .n_head = 4, .n_kv_head = 2, .n_ff = 16};
    const qkv_session_options session_options = {.size = sizeof(qkv_session_options),
                                                 .n_threads = 1};
    FUZZ_REQUIRE(qkv_model_open(&model, tiny_model(&options, "model.gguf"), NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_session_new(&session, model, &session_options, NULL) == QKV_OK);
    scratch_remove(); /* it stays mapped */
}

static void check_cells(const qkv_sweep *sweep) {
    static const int32_t tokens[N_TOKENS] = {5, 70};
    const int64_t n = qkv_sweep_n_cells(sweep);
    qkv_plan *plan = NULL;
    FUZZ_REQUIRE(qkv_plan_new(&plan, model, tokens, N_TOKENS, NULL) == QKV_OK);
    for (int64_t i = 0; i < n && i < LOOKED_AT; i++) {
        const qkv_cell first = sweep_cell(sweep, i);
        const qkv_cell last = sweep_cell(sweep, n - 1 - i);
        FUZZ_REQUIRE(first.id == i && last.prompt < qkv_sweep_n_prompts(sweep));
        if (first.edit[0])
            FUZZ_REQUIRE(qkv_plan_add_variant(plan, first.edit, NULL, NULL) == QKV_OK);
    }
    qkv_plan_free(plan);
}

static void check_blocks(const qkv_sweep *sweep) {
    int64_t next = 0, count, b;
    for (b = 0; b < qkv_sweep_n_blocks(sweep) && b < LOOKED_AT; b++) {
        FUZZ_REQUIRE(qkv_sweep_block(sweep, b, &count) == next && count > 0);
        next += count;
    }
    if (b == qkv_sweep_n_blocks(sweep)) FUZZ_REQUIRE(next == qkv_sweep_n_cells(sweep));
}

static void check_canonical(const qkv_sweep *sweep) {
    qkv_sweep *again = NULL;
    qkv_error err = {0};
    const int status = qkv_sweep_new(&again, model, qkv_sweep_spec(sweep), &err);
    fuzz_check_status(status, again, &err);
    FUZZ_REQUIRE(again && strcmp(qkv_sweep_hash(sweep), qkv_sweep_hash(again)) == 0);
    FUZZ_REQUIRE(qkv_sweep_n_cells(sweep) == qkv_sweep_n_cells(again));
    qkv_sweep_free(again);
}

static void compute(const qkv_sweep *sweep) {
    int64_t n;
    qkv_error err = {0};
    qkv_sweep_block(sweep, 0, &n);
    if (n > LOOKED_AT) return;
    double *values = qkv_calloc((size_t)n * qkv_sweep_n_metrics(sweep), sizeof *values);
    FUZZ_REQUIRE(values);
    const int status = qkv_sweep_compute(sweep, session, 0, values, &err);
    fuzz_check_status(status, status == QKV_OK ? values : NULL, &err);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!model) open_model();
    qkv_sweep *sweep = NULL;
    qkv_error err = {0};
    char *text = qkv_strndup((const char *)data, size);
    FUZZ_REQUIRE(text);
    const int status = qkv_sweep_new(&sweep, model, text, &err);
    fuzz_check_status(status, sweep, &err);
    free(text);
    if (!sweep) return 0;
    check_cells(sweep);
    check_blocks(sweep);
    check_canonical(sweep);
    compute(sweep);
    qkv_sweep_free(sweep);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const size_t n = seed % 3 ? fuzz_mutate_json(data, size, max_size, 0, size, seed) : 0;
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
