/* Parts of the explorer's server without a socket: headers, requests, the queue, connections. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "page/page_files.h"
#include "server/command_words.h"
#include "server/connections.h"
#include "server/guard.h"
#include "server/job.h"
#include "server/reply_cache.h"

static qkv_error err;

/* ---- headers ---- */

static void hosts(void **state) {
    (void)state;
    static const char *const here[] = {"localhost", "LocalHost:1", "127.0.0.1:8471", "[::1]",
                                       "[::1]:65535"};
    static const char *const addresses[] = {"192.168.1.5", "10.0.0.1:80", "[fe80::1]:80",
                                            "0.0.0.0"};
    static const char *const others[] = {"",
                                         "evil.example",
                                         "localhost.example",
                                         "localhost:",
                                         "localhost:x",
                                         "localhost:1234567",
                                         "[::1",
                                         "[::1]:",
                                         "[::1]x:1",
                                         "::1",
                                         "127.0.0.1.example",
                                         "1.2.3",
                                         ":80",
                                         "[]",
                                         "[x]:1"};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
        assert_true(qkv_guard_host(here[i], 0));
        assert_true(qkv_guard_host(here[i], 1));
    }
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        assert_false(qkv_guard_host(addresses[i], 0));
        assert_true(qkv_guard_host(addresses[i], 1));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (qkv_guard_host(others[i], 1)) fail_msg("'%s' was let in", others[i]);
    }
    assert_false(qkv_guard_host(NULL, 1));
}

static void origins(void **state) {
    (void)state;
    assert_true(qkv_guard_origin(NULL, "localhost:1"));
    assert_true(qkv_guard_origin("http://localhost:1", "localhost:1"));
    assert_false(qkv_guard_origin("http://localhost:2", "localhost:1"));
    assert_false(qkv_guard_origin("https://localhost:1", "localhost:1"));
    assert_false(qkv_guard_origin("null", "localhost:1"));
    assert_false(qkv_guard_origin("http://localhost:1", NULL));
    assert_true(qkv_guard_site(NULL) && qkv_guard_site("none") && qkv_guard_site("same-origin"));
    assert_false(qkv_guard_site("same-site") || qkv_guard_site("cross-site") || qkv_guard_site(""));
}

static void cookies(void **state) {
    (void)state;
    char value[8];
    assert_true(qkv_guard_cookie("a=1; qkv-1=abc; b=2", "qkv-1", value, sizeof value));
    assert_string_equal(value, "abc");
    const char *second =
        qkv_guard_cookie("qkv-1=1; qkv-1=too-long; qkv-1=2", "qkv-1", value, sizeof value);
    assert_string_equal(value, "1");
    assert_non_null(qkv_guard_cookie(second, "qkv-1", value, sizeof value));
    assert_string_equal(value, "2");
    assert_true(qkv_guard_cookie("qkv-1=", "qkv-1", value, sizeof value));
    assert_string_equal(value, "");
    assert_false(qkv_guard_cookie("qkv-12=abc", "qkv-1", value, sizeof value));
    assert_false(qkv_guard_cookie("x=qkv-1=abc", "qkv-1", value, sizeof value));
    assert_false(qkv_guard_cookie("qkv-1=12345678", "qkv-1", value, sizeof value));
    assert_false(qkv_guard_cookie("qkv-1", "qkv-1", value, sizeof value));
    assert_false(qkv_guard_cookie(NULL, "qkv-1", value, sizeof value));
    assert_string_equal(qkv_guard_bearer("Bearer x"), "x");
    assert_null(qkv_guard_bearer("bearer x"));
    assert_true(qkv_guard_same("abc", "abc"));
    assert_false(qkv_guard_same("abc", "abd") || qkv_guard_same("abc", "ab") ||
                 qkv_guard_same("ab", "abc") || qkv_guard_same("", "a") ||
                 qkv_guard_same("a", "") || qkv_guard_same(NULL, "a") ||
                 qkv_guard_same("abab", "ab"));
    assert_true(qkv_guard_same("", ""));
    assert_true(qkv_guard_is_token("0123456789abcdef"));
    assert_false(qkv_guard_is_token("0123456789abcde") || qkv_guard_is_token("0123456789abcde;"));
}

/* ---- requests ---- */

static int read_json(const char *text, const char *fields, qkv_request_common *common) {
    json_t *request = NULL;
    err = (qkv_error){0};
    int status = qkv_request_parse(&request, text, strlen(text), &err);
    if (status == QKV_OK) status = qkv_request_read(request, fields, common, &err);
    json_decref(request);
    return status;
}

static void requests(void **state) {
    (void)state;
    qkv_request_common common;
    assert_int_equal(read_json("", "a", &common), QKV_OK);
    assert_int_equal(
        read_json("{\"client\": \"c-1\", \"slot\": \"head\", \"seq\": 7}", "a", &common), QKV_OK);
    assert_string_equal(common.client, "c-1");
    assert_string_equal(common.slot, "head");
    assert_int_equal(common.seq, 7);
    static const char *const wrong[] = {
        "[]",
        "1",
        "{",
        "{\"a\": 1, \"a\": 2}",
        "{\"ab\": 1}",
        "{\"b\": 1}",
        "{\"a abc\": 1}",
        "{\"slot seq\": 1}",
        "{\"\": 1}",
        "{\"client\": 1}",
        "{\"client\": \"a b\"}",
        "{\"slot\": \"<\"}",
        "{\"seq\": -1}",
        "{\"seq\": 1.5}",
        "{\"seq\": \"1\"}",
        "{\"model\": []}",
        "{\"seq\": 99999999999999999999}",
        "{\"client\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (read_json(wrong[i], "a abc", &common) == QKV_OK) fail_msg("%s was accepted", wrong[i]);
        assert_true(err.message[0]);
    }
}

static int read_prompt(const char *text) {
    qkv_request_prompt prompt;
    json_t *json = NULL;
    err = (qkv_error){0};
    assert_int_equal(qkv_request_parse(&json, text, strlen(text), &err), QKV_OK);
    const int status = qkv_request_prompt_read(&prompt, json, &err);
    assert_true(status != QKV_OK || prompt.key);
    qkv_request_prompt_release(&prompt);
    json_decref(json);
    return status;
}

static void prompts(void **state) {
    (void)state;
    static const char *const good[] = {
        "{\"text\": \"a\"}", "{\"text\": \"a\", \"parse_special\": true}", "{\"tokens\": [1, 2]}",
        "{\"chat\": {\"turns\": [{\"role\": \"user\", \"content\": \"a\"}]}}",
        ("{\"chat\": {\"system\": \"s\", \"date\": \"2026-01-31\", \"turns\": [{\"role\": \"user\", \"content\": \"a\"}, "
         "{\"role\": \"assistant\", \"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}]}}")};
    static const char *const wrong[] = {
        "{}",
        "{\"text\": \"\"}",
        "{\"tokens\": []}",
        "{\"tokens\": [-1]}",
        "{\"tokens\": [1.5]}",
        "{\"text\": 1}",
        "{\"text\": \"a\", \"tokens\": [1]}",
        "{\"text\": \"a\", \"x\": 1}",
        "{\"chat\": []}",
        "{\"chat\": {}}",
        "{\"chat\": {\"turns\": []}}",
        "{\"chat\": {\"turns\": [1]}}",
        "{\"chat\": {\"turns\": [{\"role\": \"assistant\", \"content\": \"a\"}]}}",
        "{\"chat\": {\"turns\": [{\"role\": \"system\", \"content\": \"a\"}]}}",
        "{\"chat\": {\"turns\": [{\"role\": \"user\", \"content\": \"a\", \"x\": 1}]}}",
        "{\"chat\": {\"turns\": [{\"role\": \"user\", \"content\": \"a\"}], \"template\": \"/etc/passwd\"}}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (read_prompt(good[i]) != QKV_OK) fail_msg("%s: %s", good[i], err.message);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (read_prompt(wrong[i]) == QKV_OK) fail_msg("%s was accepted", wrong[i]);
    }
}

/* ---- the queue ---- */

static void note_done(qkv_job *job) {
    ++*(int *)job->user;
}

static qkv_job make_job(const qkv_endpoint *endpoint, const char *slot, int64_t seq, int *n_done) {
    qkv_job job = {.endpoint = endpoint, .done = note_done, .user = n_done};
    job.reply = (qkv_reply)QKV_REPLY_INIT;
    strcpy(job.call.common.client, "tab");
    strcpy(job.call.common.slot, slot);
    job.call.common.seq = seq;
    return job;
}

static void newest_wins(void **state) {
    (void)state;
    const qkv_endpoint *head = qkv_endpoint_find("/api/head"),
                       *rest = qkv_endpoint_find("/api/next");
    const qkv_runner passes = QKV_RUNNER_PASSES;
    qkv_queue queue;
    int done = 0;
    qkv_job a = make_job(rest, "next", 1, &done), b = make_job(rest, "next", 2, &done),
            c = make_job(head, "head", 3, &done), e = make_job(head, "head", 5, &done),
            late = make_job(head, "head", 4, &done);
    qkv_queue_init(&queue);
    qkv_queue_add(&queue, &a);
    assert_ptr_equal(qkv_queue_take(&queue, passes), &a);
    qkv_queue_add(&queue, &b);
    assert_int_equal(a.cancelled, 1); /* it runs: told to stop */
    assert_int_equal(done, 0);
    qkv_queue_add(&queue, &c);
    qkv_queue_add(&queue, &e);
    assert_int_equal(done, 1); /* c waited: answered */
    assert_int_equal(c.reply.status, 409);
    qkv_queue_add(&queue, &late);
    assert_int_equal(late.reply.status, 409); /* overtaken on the way */
    a.reply.status = 200;
    qkv_queue_finish(&queue, passes);
    assert_ptr_equal(qkv_queue_take(&queue, passes), &e); /* the most urgent first */
    qkv_queue_finish(&queue, passes);
    qkv_queue_close(&queue);
    assert_int_equal(b.reply.status, 503);
    assert_null(qkv_queue_take(&queue, passes));
    qkv_job after = make_job(head, "head", 9, &done);
    qkv_queue_add(&queue, &after);
    assert_int_equal(after.reply.status, 503);
    assert_int_equal(done, 6);
    qkv_job *const all[] = {&a, &b, &c, &e, &late, &after};
    for (size_t i = 0; i < 6; i++) qkv_reply_release(&all[i]->reply);
    qkv_queue_destroy(&queue);
}

/* What needs no pass does not wait behind one, and a newer request stops both kinds. */
static void two_runners(void **state) {
    (void)state;
    const qkv_endpoint *rest = qkv_endpoint_find("/api/next"),
                       *light = qkv_endpoint_find("/api/tokens");
    qkv_queue queue;
    int done = 0;
    qkv_job pass = make_job(rest, "any", 1, &done), tokens = make_job(light, "any", 2, &done),
            more = make_job(rest, "any", 3, &done);
    qkv_queue_init(&queue);
    qkv_queue_add(&queue, &pass);
    assert_ptr_equal(qkv_queue_take(&queue, QKV_RUNNER_PASSES), &pass);
    qkv_queue_add(&queue, &tokens);
    assert_int_equal(pass.cancelled, 1); /* of the same slot, in either thread */
    assert_ptr_equal(qkv_queue_take(&queue, QKV_RUNNER_LIGHT), &tokens);
    qkv_queue_add(&queue, &more);
    assert_int_equal(tokens.cancelled, 1);
    qkv_queue_finish(&queue, QKV_RUNNER_LIGHT);
    assert_int_equal(done, 1);
    qkv_queue_finish(&queue, QKV_RUNNER_PASSES);
    assert_ptr_equal(qkv_queue_take(&queue, QKV_RUNNER_PASSES), &more);
    qkv_queue_close(&queue);
    assert_int_equal(more.cancelled, 1);
    qkv_queue_finish(&queue, QKV_RUNNER_PASSES);
    assert_int_equal(done, 3);
    qkv_queue_destroy(&queue);
}

static qkv_job make_request(const qkv_model_pool *pool, const char *path, const char *text,
                            int *n_done) {
    qkv_job job = {.endpoint = qkv_endpoint_find(path), .done = note_done, .user = n_done};
    char *body = qkv_strdup(text);
    assert_non_null(body);
    assert_int_equal(qkv_call_read(&job.call, job.endpoint, pool, body, strlen(body), &err),
                     QKV_OK);
    return job;
}

/* What is computed before anybody asks gives way to everything but itself. */
static void gives_way(void **state) {
    (void)state;
    qkv_model_pool *pool = NULL;
    qkv_server_model model = QKV_SERVER_MODEL_INIT;
    qkv_server_options options = QKV_SERVER_OPTIONS_INIT;
    model.name = "tiny";
    model.path = QKV_TEST_SOURCE_DIR "/vectors/llama_gqa/model.gguf";
    options.models = &model;
    options.n_models = 1;
    options.prompt = "a";
    assert_int_equal(qkv_model_pool_new(&pool, &options, &err), QKV_OK);
    qkv_queue queue;
    int done = 0;
    qkv_job expected = make_request(pool, "/api/overview", "{\"metric\": \"sink\"}", &done),
            same =
                make_request(pool, "/api/overview",
                             "{\"seq\": 5, \"metric\": \"sink\", \"model\": \"tiny\", "
                             "\"prompt\": {\"text\": \"a\"}, \"client\": \"a\", \"slot\": \"b\"}",
                             &done),
            tokens = make_request(pool, "/api/tokens", "{}", &done),
            other = make_request(pool, "/api/overview", "{\"metric\": \"entropy\"}", &done);
    expected.gives_way = 1;
    qkv_queue_init(&queue);
    qkv_queue_add(&queue, &expected);
    assert_ptr_equal(qkv_queue_take(&queue, QKV_RUNNER_PASSES), &expected);
    qkv_queue_add(&queue, &same);
    qkv_queue_add(&queue, &tokens); /* the other runner's */
    assert_false(expected.cancelled);
    qkv_queue_add(&queue, &other);
    assert_true(expected.cancelled);
    assert_false(same.cancelled);
    qkv_queue_finish(&queue, QKV_RUNNER_PASSES);
    qkv_queue_close(&queue);
    qkv_job *const all[] = {&expected, &same, &tokens, &other};
    for (size_t i = 0; i < 4; i++) {
        qkv_call_release(&all[i]->call);
        qkv_reply_release(&all[i]->reply);
    }
    qkv_queue_destroy(&queue);
    qkv_model_pool_free(pool);
}

/* ---- kept answers ---- */

static void put_text(qkv_reply_cache *cache, const char *key, const char *text) {
    qkv_reply reply = QKV_REPLY_INIT;
    qkv_reply_bytes(&reply, qkv_strdup(text), strlen(text), "text/plain");
    qkv_reply_cache_put(cache, key, &reply);
    qkv_reply_release(&reply);
}

/* Is there an answer, and is it this one? */
static int has_text(qkv_reply_cache *cache, const char *key, const char *text) {
    qkv_reply reply = QKV_REPLY_INIT;
    const int found = qkv_reply_cache_get(cache, key, &reply);
    if (found) {
        assert_int_equal(reply.status, 200);
        assert_int_equal(reply.n_bytes, strlen(text));
        assert_memory_equal(reply.bytes, text, reply.n_bytes);
        assert_string_equal(reply.type, "text/plain");
    }
    qkv_reply_release(&reply);
    return found;
}

static void kept_answers(void **state) {
    (void)state;
    qkv_reply_cache *cache = qkv_reply_cache_new(30); /* of keys and bytes: three of ten */
    assert_non_null(cache);
    assert_false(has_text(cache, "a", ""));
    put_text(cache, "a", "123456789");
    put_text(cache, "b", "223456789");
    put_text(cache, "c", "323456789");
    assert_true(has_text(cache, "a", "123456789")); /* used last now */
    put_text(cache, "d", "423456789");
    assert_false(has_text(cache, "b", ""));
    assert_true(has_text(cache, "a", "123456789") && has_text(cache, "c", "323456789") &&
                has_text(cache, "d", "423456789"));
    put_text(cache, "a", "1"); /* in its own place */
    put_text(cache, "e", "52345");
    assert_true(has_text(cache, "a", "1") && has_text(cache, "c", "323456789") &&
                has_text(cache, "e", "52345"));
    put_text(cache, "c", "this one is larger than all there is room for");
    assert_false(has_text(cache, "c", ""));
    assert_true(has_text(cache, "a", "1"));
    put_text(cache, "n", "");
    assert_true(has_text(cache, "n", ""));
    qkv_reply_cache_clear(cache);
    assert_false(has_text(cache, "a", ""));
    qkv_reply_cache_free(cache);
    qkv_reply_cache_free(NULL);
}

static int is_gone(const qkv_job *job) {
    (void)job;
    return 1;
}

static void full_queue(void **state) {
    (void)state;
    const qkv_endpoint *head = qkv_endpoint_find("/api/head");
    static qkv_job jobs[QKV_QUEUE_LIMIT + 2];
    qkv_queue queue;
    int done = 0;
    qkv_queue_init(&queue);
    for (size_t i = 0; i < QKV_QUEUE_LIMIT + 2; i++) {
        jobs[i] = make_job(head, "", 0, &done); /* without a slot nothing is replaced */
        qkv_queue_add(&queue, &jobs[i]);
    }
    assert_int_equal(done, 2);
    assert_int_equal(jobs[QKV_QUEUE_LIMIT].reply.status, 503);
    qkv_reply_release(&jobs[QKV_QUEUE_LIMIT].reply);
    for (size_t i = 0; i < 3; i++) jobs[i].is_gone = is_gone; /* they leave, and make room */
    jobs[QKV_QUEUE_LIMIT] = make_job(head, "", 0, &done);
    qkv_reply_release(&jobs[QKV_QUEUE_LIMIT + 1].reply);
    jobs[QKV_QUEUE_LIMIT + 1] = make_job(head, "", 0, &done);
    qkv_queue_add(&queue, &jobs[QKV_QUEUE_LIMIT]);
    assert_int_equal(done, 5);
    assert_int_equal(jobs[1].reply.status, 409);
    qkv_queue_add(&queue, &jobs[QKV_QUEUE_LIMIT + 1]);
    assert_int_equal(done, 5);
    qkv_queue_close(&queue);
    assert_int_equal(done, QKV_QUEUE_LIMIT + 4);
    for (size_t i = 0; i < QKV_QUEUE_LIMIT + 2; i++) qkv_reply_release(&jobs[i].reply);
    qkv_queue_destroy(&queue);
}

/* ---- connections ---- */

/* Has the other end of a pair been cut off? */
static int is_cut(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void crowded(void **state) {
    (void)state;
    enum { N = 8 };
    qkv_connections all;
    qkv_connection *list[N];
    int fds[N][2];
    qkv_connections_init(&all, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]), 0);
        list[i] = qkv_connection_add(&all, fds[i][0]);
        assert_non_null(list[i]);
        if (i == 0) qkv_connection_trust(&all, list[0]);
        if (i == 1) qkv_connection_allow(&all, list[1], 0); /* its request is being computed */
    }
    assert_false(is_cut(fds[0][1])); /* has shown the token */
    assert_false(is_cut(fds[1][1]));
    int n_cut = 0;
    for (int i = 2; i < N; i++) n_cut += is_cut(fds[i][1]);
    assert_int_equal(n_cut, 2); /* strangers, whichever */
    assert_false(is_cut(fds[N - 1][1]));
    qkv_connection_allow(&all, list[N - 1], 1e-9);
    qkv_connections_sweep(&all);
    assert_true(is_cut(fds[N - 1][1])); /* too late */
    assert_false(is_cut(fds[1][1]));
    assert_true(qkv_connections_reserve(&all, QKV_BYTES_IN, 60, 100));
    assert_false(qkv_connections_reserve(&all, QKV_BYTES_IN, 41, 100));
    assert_false(qkv_connections_reserve(&all, QKV_BYTES_IN, SIZE_MAX, 100));
    assert_true(qkv_connections_reserve(&all, QKV_BYTES_OUT, 100, 100)); /* counted apart */
    qkv_connections_release_bytes(&all, QKV_BYTES_OUT, 100);
    qkv_connections_release_bytes(&all, QKV_BYTES_IN, 60);
    assert_true(qkv_connections_reserve(&all, QKV_BYTES_IN, 100, 100));
    for (int i = 0; i < N; i++) {
        qkv_connection_remove(&all, list[i]);
        close(fds[i][0]);
        close(fds[i][1]);
    }
    assert_int_equal(all.n, 0);
    qkv_connections_destroy(&all);
}

/* ---- words, files ---- */

static void quoted_words(void **state) {
    (void)state;
    qkv_words words = {0};
    qkv_text line = {0};
    qkv_words_pair(&words, "-p", "it's $HOME `x` \"y\"\n");
    qkv_words_pair(&words, "--eps", "5e-1,1e-3");
    qkv_words_add(&words, "");
    qkv_words_quote(&words, &line);
    assert_string_equal(line.data, "-p 'it'\\''s $HOME `x` \"y\"\n' --eps 5e-1,1e-3 ''");
    assert_false(words.failed);
    qkv_text_release(&line);
    qkv_words_release(&words);
}

static void page_files(void **state) {
    (void)state;
    const char *bytes = NULL, *name;
    size_t n = 0, count = 0;
    assert_true(qkv_page_file("index.html", &bytes, &n));
    assert_int_equal(strlen(bytes), n);
    static const char *const others[] = {
        "", "index.htm", "index.html/", "../index.html", "/index.html", "INDEX.HTML"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(qkv_page_file(others[i], &bytes, &n));
    assert_false(qkv_page_file(NULL, &bytes, &n));
    for (; (name = qkv_page_file_name(count)); count++)
        assert_true(qkv_page_file(name, &bytes, &n));
    assert_true(count >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts),       cmocka_unit_test(origins),   cmocka_unit_test(cookies),
        cmocka_unit_test(requests),    cmocka_unit_test(prompts),   cmocka_unit_test(newest_wins),
        cmocka_unit_test(two_runners), cmocka_unit_test(gives_way), cmocka_unit_test(kept_answers),
        cmocka_unit_test(full_queue),  cmocka_unit_test(crowded),   cmocka_unit_test(quoted_words),
        cmocka_unit_test(page_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
