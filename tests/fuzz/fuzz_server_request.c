/*
 * Fuzzer: the first line is the path of an endpoint of the explorer, the rest the body of a request to
 * it, on a small model. Every request is answered: with bytes, or with an error of one clear line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "harness.h"
#include "mutators.h"
#include "server/endpoint.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

/* Never freed: libFuzzer's process ends without asking. */
static qkv_model_pool *pool;

static void open_shop(void) {
    const tiny_options options = {"llama",     .n_layer = 2,   .n_embd = 16,
                                  .n_head = 4, .n_kv_head = 2, .n_ff = 16};
    qkv_server_model model = QKV_SERVER_MODEL_INIT;
    qkv_server_options how = QKV_SERVER_OPTIONS_INIT;
    qkv_error err = {0};
    model.name = "tiny";
    model.path = tiny_model(&options, "model.gguf");
    how.models = &model;
    how.n_models = 1;
    how.n_threads = 1;
    how.max_tokens = 12;
    how.prompt = "a b c";
    FUZZ_REQUIRE(qkv_model_pool_new(&pool, &how, &err) == QKV_OK);
}

/* Long work is stopped as it is when a newer request comes. */
static int count_down(void *user) {
    return --*(int *)user < 0;
}

static void check_error(const qkv_reply *reply) {
    json_t *json = qkv_json_parse(reply->bytes, reply->n_bytes, 0, NULL);
    const json_t *error = json_object_get(json, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    FUZZ_REQUIRE(json_is_string(json_object_get(error, "code")));
    FUZZ_REQUIRE(message && message[0] && !strchr(message, '\n'));
    json_decref(json);
}

/* Drawing is left out: it reads nothing of the request, and fontconfig keeps memory. Pages of studies hold drawings;
 * their answers are JSON unless another format is named. */
static void leave_out_drawing(const qkv_call *call, int is_study) {
    const char *format = json_string_value(json_object_get(call->request, "format"));
    const char *const plain = is_study ? "json sqlite csv" : "csv html";
    const int drawn = format ? !strstr(plain, format) : !is_study;
    if (call->request && json_object_get(call->request, "kind") && drawn)
        json_object_set_new(call->request, "dry", json_true());
}

static void run(const qkv_endpoint *endpoint, const uint8_t *data, size_t size) {
    int steps = 200;
    qkv_call call;
    qkv_reply reply = QKV_REPLY_INIT;
    qkv_error err = {0};
    char *body = qkv_strndup((const char *)data, size);
    FUZZ_REQUIRE(body);
    memcpy(body, data, size);
    qkv_model_pool_watch(pool, count_down, &steps);
    if (qkv_call_read(&call, endpoint, pool, body, size, &err) == QKV_OK) {
        leave_out_drawing(&call, strcmp(endpoint->path, "/api/study") == 0);
        qkv_call_run(&call, endpoint, pool, &reply);
    } else {
        qkv_reply_failure(&reply, &err);
    }
    FUZZ_REQUIRE(reply.status && reply.bytes && reply.type);
    if (reply.status != 200) check_error(&reply);
    FUZZ_REQUIRE(reply.status != 500);
    qkv_reply_release(&reply);
    qkv_call_release(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[32] = "";
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    const size_t n = end ? (size_t)(end - data) : 0;
    if (!pool) open_shop();
    if (!end || n >= sizeof path) return 0;
    memcpy(path, data, n);
    path[n] = '\0';
    const qkv_endpoint *endpoint = qkv_endpoint_find(path);
    if (endpoint) run(endpoint, data + n + 1, size - n - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    const size_t before = end ? (size_t)(end - data) + 1 : 0;
    if (seed % 4 == 0 || !before) return LLVMFuzzerMutate(data, size, max_size);
    const size_t n = fuzz_mutate_json(data, size, max_size, before, size - before, seed);
    return n ? before + n : LLVMFuzzerMutate(data, size, max_size);
}
