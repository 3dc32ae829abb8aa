#include "hub/hub.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "hub/places.h"

#define USUAL_ENDPOINT "https://huggingface.co"

enum { MOST_TRIES = 5, LONGEST_PAUSE = 300, LONGEST_TOKEN = 4096 };

/* ---- where it is, and who asks ---- */

static int is_set(const char *name) {
    static const char *const yes[] = {"1", "on", "yes", "true"};
    const char *value = getenv(name);
    for (size_t i = 0; value && i < sizeof yes / sizeof *yes; i++) {
        if (qkv_equal_ignoring_case(value, yes[i])) return 1;
    }
    return 0;
}

static int check_online(qkv_error *err) {
    static const char *const names[] = {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_set(names[i]))
            return qkv_fail(err, QKV_ERR_IO, "%s is set: nothing is fetched", names[i]);
    }
    return QKV_OK;
}

/* The address without the user and the password that may stand in front of the host. */
static char *without_user(const char *address) {
    const char *slashes = strstr(address, "://"), *host = slashes ? slashes + 3 : address;
    const char *end = host + strcspn(host, "/?#"), *at = end;
    while (at > host && at[-1] != '@') at--;
    qkv_text text = {0};
    qkv_text_append(&text, address, (size_t)(host - address));
    qkv_text_puts(&text, at > host ? at : host);
    return text.failed ? NULL : text.data;
}

static int find_endpoint(qkv_hub *hub, qkv_error *err) {
    const char *value = getenv("HF_ENDPOINT");
    if (!value || !value[0]) value = USUAL_ENDPOINT;
    size_t length = strlen(value);
    while (length && value[length - 1] == '/') length--;
    hub->endpoint = qkv_strndup(value, length);
    hub->shown = hub->endpoint ? without_user(hub->endpoint) : NULL;
    return hub->shown ? QKV_OK : qkv_fail_memory(err);
}

/* Without spaces and line ends around it; one that would break a header is refused. */
static int keep_token(qkv_hub *hub, const char *text, qkv_error *err) {
    while (qkv_is_space(*text)) text++;
    size_t length = strlen(text);
    while (length && qkv_is_space(text[length - 1])) length--;
    if (length == 0) return QKV_OK;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f ||
            length > LONGEST_TOKEN)
            return qkv_fail(
                err, QKV_ERR_ARGUMENT,
                "the token for the hub (HF_TOKEN, or the file that holds it) is malformed");
    }
    hub->token = qkv_strndup(text, length);
    return hub->token ? QKV_OK : qkv_fail_memory(err);
}

static int find_token(qkv_hub *hub, qkv_error *err) {
    if (is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return QKV_OK;
    const char *value = getenv("HF_TOKEN");
    if (!value || !value[0]) value = getenv("HUGGING_FACE_HUB_TOKEN");
    if (value && value[0]) return keep_token(hub, value, err);
    qkv_text path = {0};
    char *text = NULL;
    size_t size;
    int status = QKV_OK;
    /* A file that is not there, or not for us, is not a token. */
    if (qkv_hub_token_path(&path, NULL) == QKV_OK &&
        qkv_read_file(&text, &size, path.data, LONGEST_TOKEN, NULL) == QKV_OK)
        status = keep_token(hub, text, err);
    free(text);
    qkv_text_release(&path);
    return status;
}

int qkv_hub_open(qkv_hub *hub, const char *name, qkv_pull_watch *watch, qkv_error *err) {
    *hub = (qkv_hub){.watch = watch};
    int status = qkv_hub_name_parse(&hub->name, name, err);
    if (status == QKV_OK) status = check_online(err);
    if (status == QKV_OK) status = find_endpoint(hub, err);
    if (status == QKV_OK) status = find_token(hub, err);
    if (status == QKV_OK)
        status =
            qkv_http_new(&hub->http, hub->endpoint, hub->token, qkv_pull_watch_tick, watch, err);
    return status;
}

void qkv_hub_close(qkv_hub *hub) {
    qkv_http_free(hub->http);
    qkv_hub_name_release(&hub->name);
    free(hub->endpoint);
    free(hub->shown);
    free(hub->token);
    *hub = (qkv_hub){0};
}

/* ---- its refusals ---- */

static int fail_access(const qkv_hub *hub, const qkv_http_answer *answer, qkv_error *err) {
    const char *repository = hub->name.repository;
    if (strcmp(answer->error_code, "GatedRepo") == 0) {
        return qkv_fail(err, QKV_ERR_IO,
                        hub->token ? "%s is gated and the hub refused the token (%ld): accept its "
                                     "licence at %s/%s with the account that HF_TOKEN belongs to"
                                   : "%s is gated (%ld): accept its licence at %s/%s, then set "
                                     "HF_TOKEN to a token of that account",
                        repository, answer->status, hub->shown, repository);
    }
    return qkv_fail(err, QKV_ERR_IO,
                    hub->token
                        ? "the hub refused the token (%ld) for %s: check HF_TOKEN, the name, "
                          "and at %s/%s whether its licence must be accepted"
                        : "the hub wants a token (%ld) for %s: it is private, gated (accept "
                          "its licence at %s/%s) or does not exist; set HF_TOKEN",
                    answer->status, repository, hub->shown, repository);
}

static int fail_missing(const qkv_hub *hub, const qkv_http_answer *answer, const char *file,
                        qkv_error *err) {
    const char *code = answer->error_code, *repository = hub->name.repository;
    const char *revision = hub->name.revision;
    if (strcmp(code, "RevisionNotFound") == 0)
        return qkv_fail(err, QKV_ERR_IO, "%s has no revision '%s' (404)", repository, revision);
    if (strcmp(code, "RepoNotFound") == 0)
        return qkv_fail(err, QKV_ERR_IO, "there is no model %s at %s (404)%s", repository,
                        hub->shown, hub->token ? "" : "; a private one needs HF_TOKEN");
    if (file || strcmp(code, "EntryNotFound") == 0)
        return qkv_fail(err, QKV_ERR_IO, "%s has no file '%.300s' at revision '%s' (404)",
                        repository, file ? file : "", revision);
    return qkv_fail(err, QKV_ERR_IO, "there is no model %s at %s, or no revision '%s' of it (404)",
                    repository, hub->shown, revision);
}

static int fail_status(const qkv_hub *hub, const qkv_http_answer *answer, const char *file,
                       qkv_error *err) {
    const char *says = answer->error_message;
    const int refuses = answer->status == 401 || answer->status == 403;
    /* Who only stores files knows of no tokens and of no repositories. */
    if (refuses && !answer->elsewhere) return fail_access(hub, answer, err);
    if (answer->status == 404 && !answer->elsewhere) return fail_missing(hub, answer, file, err);
    return qkv_fail(err, QKV_ERR_IO, "%s answered %ld for %s%s%.300s%s%s", answer->host,
                    answer->status, hub->name.repository, file ? ", " : "", file ? file : "",
                    says[0] ? ": " : "", says);
}

/* ---- attempts ---- */

static int is_busy(long status) {
    return status == 408 || status == 429 || (status >= 500 && status <= 599 && status != 501);
}

static int fail_busy(const qkv_hub *hub, const qkv_http_answer *answer, qkv_error *err) {
    char pause[64] = "";
    if (answer->retry_after > 0)
        qkv_format(pause, sizeof pause, " and asks for a pause of %" PRId64 " s",
                   answer->retry_after);
    return qkv_fail(err, QKV_ERR_IO, "%s answered %ld for %s, time and again%s; try later",
                    answer->host, answer->status, hub->name.repository, pause);
}

/* 1, 2, 4 ... seconds, or what the hub asks for. */
static int wait_for_next(qkv_hub *hub, int tries, const qkv_http_answer *answer, const char *why,
                         qkv_error *err) {
    const double own = (double)(1 << (tries - 1));
    const double asked = (double)answer->retry_after;
    const double seconds = asked > own ? asked : own;
    qkv_pull_watch_note(hub->watch, "%s; trying again in %.0f s", why, seconds);
    return qkv_pull_watch_sleep(hub->watch, seconds) ? qkv_fail(err, QKV_ERR_CANCELLED, "stopped")
                                                     : QKV_OK;
}

int qkv_hub_judge(qkv_hub *hub, int *tries, int status, const qkv_http_answer *answer,
                  const char *file, int *again, qkv_error *err) {
    char why[512];
    *again = 0;
    const int before = hub->reached;
    hub->reached |= answer->reached;
    hub->status = answer->status;
    if (status == QKV_OK && (answer->status == 200 || answer->status == 206)) return QKV_OK;
    if (status != QKV_OK) {
        /* Who was never there is not waited for. */
        if (!answer->broken || !(before || answer->reached) || ++*tries >= MOST_TRIES)
            return status;
        qkv_format(why, sizeof why, "%.400s", err->message);
    } else {
        if (!is_busy(answer->status)) return fail_status(hub, answer, file, err);
        if (answer->retry_after > LONGEST_PAUSE || ++*tries >= MOST_TRIES)
            return fail_busy(hub, answer, err);
        qkv_format(why, sizeof why, "%s answered %ld%s", answer->host, answer->status,
                   answer->retry_after > 0 ? " and asks for a pause" : "");
    }
    status = wait_for_next(hub, *tries, answer, why, err);
    *again = status == QKV_OK;
    return status;
}

/* ---- small answers ---- */

typedef struct small_body {
    qkv_text *text;
    size_t limit;
    const char *what;
} small_body;

static int take_small(void *user, const qkv_http_answer *answer, const void *bytes, size_t n,
                      qkv_error *err) {
    small_body *body = user;
    (void)answer;
    if (n > body->limit - body->text->length)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the hub's answer is larger than %zu MiB",
                        body->what, body->limit >> 20);
    qkv_text_append(body->text, bytes, n);
    return body->text->failed ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_hub_read(qkv_hub *hub, const char *url, const char *file, size_t limit, qkv_text *body,
                 qkv_text *next, qkv_error *err) {
    small_body sink = {body, limit, file ? file : hub->name.repository};
    const qkv_http_request request = {
        .url = url, .compressed = 1, .take = take_small, .user = &sink};
    int tries = 0, again = 1, status = QKV_OK;
    while (again && status == QKV_OK) {
        qkv_http_answer answer;
        body->length = 0;
        status = qkv_http_ask(hub->http, &request, &answer, err);
        status = qkv_hub_judge(hub, &tries, status, &answer, file, &again, err);
        if (next && answer.next.length && !again) qkv_text_puts(next, answer.next.data);
        qkv_http_answer_release(&answer);
    }
    if (status == QKV_OK) qkv_text_append(body, "", 0);
    return status == QKV_OK && body->failed ? qkv_fail_memory(err) : status;
}

int qkv_hub_file_url(const qkv_hub *hub, qkv_text *url, const char *commit, const char *file,
                     qkv_error *err) {
    qkv_text_printf(url, "%s/%s/resolve/%s/", hub->endpoint, hub->name.repository, commit);
    qkv_http_append_escaped(url, file, 1);
    return url->failed ? qkv_fail_memory(err) : QKV_OK;
}
