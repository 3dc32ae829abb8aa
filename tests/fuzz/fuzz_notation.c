/*
 * Fuzzer: the bytes are lines, each a variant of a plan on a fixed model or, after '?', a capture.
 * What can be run is run: a selector must not lead an edit beyond its tensor.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "qkv/edit_data.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { N_TOKENS = 6, MAX_LINES = 8 };

static const int32_t tokens[N_TOKENS] = {1, 5, 70, 90, 110, 12};

/* Never freed: libFuzzer's process ends without asking. */
static qkv_model *model;
static qkv_session *session;
static qkv_edit_data *data_of_edits;

static void add_vectors(void) {
    enum { D = 16, G = 2, d = 4 };
    static const int64_t flat[] = {D}, head[] = {d}, heads[] = {G, d};
    float values[D];
    for (int i = 0; i < D; i++) values[i] = (float)(i % 5) - 1.5f;
    FUZZ_REQUIRE(qkv_edit_data_new(&data_of_edits, NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_edit_data_add_vector(data_of_edits, "flat", values, flat, 1, NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_edit_data_add_vector(data_of_edits, "head", values, head, 1, NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_edit_data_add_vector(data_of_edits, "heads", values, heads, 2, NULL) ==
                 QKV_OK);
}

static void open_model(void) {
    const tiny_options options = {"llama", .n_layer = 2, .n_embd = 16, .n_kv_head = 2, .n_ff = 16};
    const qkv_session_options session_options = {.size = sizeof(qkv_session_options),
                                                 .n_threads = 1};
    FUZZ_REQUIRE(qkv_model_open(&model, tiny_model(&options, "model.gguf"), NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_session_new(&session, model, &session_options, NULL) == QKV_OK);
    scratch_remove(); /* it stays mapped */
    add_vectors();
}

static void add_line(qkv_plan *plan, const char *line) {
    qkv_error err = {0};
    const size_t before = qkv_plan_n_variants(plan);
    size_t index = 0;
    int capture = line[0] == '?';
    int status = capture ? qkv_plan_add_capture(plan, line + 1, &err)
                         : qkv_plan_add_variant(plan, line, &index, &err);
    fuzz_check_status(status, status == QKV_OK ? plan : NULL, &err);
    size_t added = !capture && status == QKV_OK;
    FUZZ_REQUIRE(qkv_plan_n_variants(plan) == before + added);
    /* Folders of vectors' files are left out. */
    if (added && !strchr(line, '/'))
        FUZZ_REQUIRE(strcmp(qkv_plan_variant_text(plan, index), line) == 0);
}

static void run(const qkv_plan *plan) {
    char *text = NULL;
    qkv_result *result = NULL;
    qkv_error err = {0};
    int planned = qkv_session_explain(session, &text, plan, &err);
    fuzz_check_status(planned, text, &err);
    qkv_text_free(text);
    int status = qkv_session_run(session, &result, plan, &err);
    fuzz_check_status(status, result, &err);
    FUZZ_REQUIRE(status == planned || (planned == QKV_OK && status == QKV_ERR_NUMERIC));
    qkv_result_free(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!model) open_model();
    qkv_plan *plan = NULL;
    fuzz_watch_memory(size, FUZZ_TABLES);
    FUZZ_REQUIRE(qkv_plan_new(&plan, model, tokens, N_TOKENS, NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_plan_add_source(plan, "src", tokens, N_TOKENS, NULL) == QKV_OK);
    FUZZ_REQUIRE(qkv_plan_set_edit_data(plan, data_of_edits, NULL) == QKV_OK);
    const char *at = (const char *)data, *end = at + size;
    for (int i = 0; i < MAX_LINES && at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        char *line = qkv_strndup(at, (size_t)(stop - at));
        FUZZ_REQUIRE(line);
        add_line(plan, line);
        free(line);
        at = stop + 1;
    }
    fuzz_check_memory();
    run(plan);
    qkv_plan_free(plan);
    return 0;
}
