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
#include "server/connections.h"
#include "server/guard.h"
#include "server/job.h"
#include "server/command_words.h"

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
        "{\"chat\": {\"system\": \"s\", \"date\": \"2026-01-31\", \"turns\": [{\"role\": \"user\", \"content\": \"a\"}, "
        "{\"role\": \"assistant\", \"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}]}}"};
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
                       *rest = qkv_endpoint_find("/api/next"),
                       *light = qkv_endpoint_find("/api/tokens");
    qkv_queue queue;
    int done = 0;
    qkv_job a = make_job(rest, "next", 1, &done), b = make_job(rest, "next", 2, &done),
            c = make_job(head, "head", 3, &done), d = make_job(light, "tokens", 4, &done),
            e = make_job(head, "head", 5, &done), late = make_job(head, "head", 4, &done);
    qkv_queue_init(&queue);
    qkv_queue_add(&queue, &a);
    assert_ptr_equal(qkv_queue_take(&queue), &a);
    qkv_queue_add(&queue, &b);
    assert_int_equal(a.cancelled, 1); /* it runs: told to stop */
    assert_int_equal(done, 0);
    qkv_queue_add(&queue, &c);
    qkv_queue_add(&queue, &d);
    qkv_queue_add(&queue, &e);
    assert_int_equal(done, 1); /* c waited: answered */
    assert_int_equal(c.reply.status, 409);
    qkv_queue_add(&queue, &late);
    assert_int_equal(late.reply.status, 409); /* overtaken on the way */
    a.reply.status = 200;
    qkv_queue_finish(&queue);
    assert_ptr_equal(qkv_queue_take(&queue), &d); /* the lightest first */
    qkv_queue_finish(&queue);
    assert_ptr_equal(qkv_queue_take(&queue), &e);
    qkv_queue_finish(&queue);
    qkv_queue_close(&queue);
    assert_int_equal(b.reply.status, 503);
    assert_null(qkv_queue_take(&queue));
    qkv_job after = make_job(head, "head", 9, &done);
    qkv_queue_add(&queue, &after);
    assert_int_equal(after.reply.status, 503);
    assert_int_equal(done, 7);
    qkv_job *const all[] = {&a, &b, &c, &d, &e, &late, &after};
    for (size_t i = 0; i < 7; i++) qkv_reply_release(&all[i]->reply);
    qkv_queue_destroy(&queue);
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
    qkv_queue_close(&queue);
    assert_int_equal(done, QKV_QUEUE_LIMIT + 2);
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
    assert_true(is_cut(fds[2][1])); /* the oldest stranger */
    assert_true(is_cut(fds[3][1]));
    assert_false(is_cut(fds[4][1]));
    qkv_connection_allow(&all, list[4], 1e-9);
    qkv_connections_sweep(&all);
    assert_true(is_cut(fds[4][1])); /* too late */
    assert_false(is_cut(fds[1][1]) || is_cut(fds[5][1]));
    assert_true(qkv_connections_reserve(&all, 60, 100));
    assert_false(qkv_connections_reserve(&all, 41, 100));
    assert_false(qkv_connections_reserve(&all, SIZE_MAX, 100));
    qkv_connections_release_bytes(&all, 60);
    assert_true(qkv_connections_reserve(&all, 100, 100));
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
        cmocka_unit_test(hosts),      cmocka_unit_test(origins), cmocka_unit_test(cookies),
        cmocka_unit_test(requests),   cmocka_unit_test(prompts), cmocka_unit_test(newest_wins),
        cmocka_unit_test(full_queue), cmocka_unit_test(crowded), cmocka_unit_test(quoted_words),
        cmocka_unit_test(page_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
