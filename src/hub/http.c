#define _POSIX_C_SOURCE 200809L
#include "hub/http.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/number.h"
#include "qkv/version.h"

enum {
    MOST_REDIRECTS = 10,
    MOST_HEADER_BYTES = 256 << 10, /* of one request, through all its redirects */
    MOST_ERROR_BYTES = 64 << 10,   /* bodies of answers that report a failure are not looked at */
    POLL_MILLISECONDS = 50,
    CONNECT_SECONDS = 30,
    BUFFER_BYTES = 256 << 10,
    SLOW_BYTES = 64, /* a second, for SLOW_SECONDS: the other side is gone */
    SLOW_SECONDS = 60,
};

struct qkv_http {
    CURL *easy;
    CURLM *multi;
    char *origin; /* of the endpoint */
    char *authorization;
    int (*stop)(void *user);
    void *user;
};

/* ---- the process ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode started;

static void start(void) {
    started = curl_global_init(CURL_GLOBAL_DEFAULT);
}

typedef struct held_signal {
    sigset_t before;
    int was_pending;
} held_signal;

static void only_sigpipe(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

static void hold_sigpipe(held_signal *held) {
    sigset_t pipe_only, pending;
    only_sigpipe(&pipe_only);
    sigpending(&pending);
    held->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &held->before);
}

/* One that came meanwhile was ours, and is forgotten. */
static void release_sigpipe(const held_signal *held) {
    sigset_t pipe_only;
    only_sigpipe(&pipe_only);
    const struct timespec at_once = {0, 0};
    if (!held->was_pending) sigtimedwait(&pipe_only, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

/* ---- addresses ---- */

static void append_part(qkv_text *out, CURLU *url, CURLUPart part, unsigned flags) {
    char *text = NULL;
    if (curl_url_get(url, part, &text, flags) != CURLUE_OK) {
        out->failed = 1;
        return;
    }
    for (const char *c = text; *c; c++) qkv_text_append(out, &(char){qkv_lower(*c)}, 1);
    curl_free(text);
}

/* "https://host:443": who is talked to. NULL when the address is none, or of another protocol. */
static char *origin_of(const char *address) {
    CURLU *url = curl_url();
    qkv_text out = {0};
    out.failed = !url || curl_url_set(url, CURLUPART_URL, address, 0) != CURLUE_OK;
    if (!out.failed) append_part(&out, url, CURLUPART_SCHEME, 0);
    qkv_text_puts(&out, "://");
    if (!out.failed) append_part(&out, url, CURLUPART_HOST, 0);
    qkv_text_puts(&out, ":");
    if (!out.failed) append_part(&out, url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    curl_url_cleanup(url);
    if (!out.failed &&
        (strncmp(out.data, "http://", 7) == 0 || strncmp(out.data, "https://", 8) == 0))
        return out.data;
    qkv_text_release(&out);
    return NULL;
}

/* The host of an origin, for messages. */
static void copy_host(char out[QKV_HTTP_FIELD], const char *origin) {
    qkv_format(out, QKV_HTTP_FIELD, "%.200s", strstr(origin, "://") + 3);
}

/* Where a header leads to, seen from an address. */
static char *resolve(const char *address, const char *location) {
    CURLU *url = curl_url();
    char *joined = NULL, *copy = NULL;
    if (url && curl_url_set(url, CURLUPART_URL, address, 0) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_URL, location, CURLU_URLENCODE) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_URL, &joined, 0) == CURLUE_OK)
        copy = qkv_strdup(joined);
    curl_free(joined);
    curl_url_cleanup(url);
    return copy;
}

void qkv_http_append_escaped(qkv_text *url, const char *text, int keep_slashes) {
    for (const char *c = text; *c; c++) {
        const int plain = qkv_is_letter(*c) || (*c >= '0' && *c <= '9') || strchr("-_.~", *c) ||
                          (*c == '/' && keep_slashes);
        if (plain)
            qkv_text_append(url, c, 1);
        else
            qkv_text_printf(url, "%%%02X", (unsigned)(unsigned char)*c);
    }
}

/* ---- one hop ---- */

typedef struct hop {
    qkv_http *http;
    const qkv_http_request *request;
    qkv_http_answer *answer;
    const char *url;
    char *origin;
    size_t header_bytes, ignored_bytes;
    int has_answer; /* the fields of `answer` are those of this hop */
    int status;     /* what `take` returned */
    int cancelled, too_long;
    char reason[CURL_ERROR_SIZE]; /* what libcurl has to say about a failure */
    qkv_error *err;
} hop;

static void copy_field(CURL *easy, const char *name, char out[QKV_HTTP_FIELD]) {
    struct curl_header *header;
    out[0] = '\0';
    if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        qkv_format(out, QKV_HTTP_FIELD, "%s", header->value);
}

static int64_t field_number(CURL *easy, const char *name) {
    char text[QKV_HTTP_FIELD];
    int64_t value;
    copy_field(easy, name, text);
    return text[0] && qkv_parse_int(text, strlen(text), &value) && value >= 0 ? value : -1;
}

/* "bytes 100-199/200" */
static void read_range(CURL *easy, qkv_http_answer *answer) {
    char text[QKV_HTTP_FIELD];
    copy_field(easy, "Content-Range", text);
    answer->range_from = answer->range_total = -1;
    if (strncmp(text, "bytes ", 6) != 0) return;
    const char *from = text + 6, *dash = strchr(from, '-'), *slash = strchr(from, '/');
    int64_t value;
    if (dash && qkv_parse_int(from, (size_t)(dash - from), &value)) answer->range_from = value;
    if (slash && qkv_parse_int(slash + 1, strlen(slash + 1), &value)) answer->range_total = value;
}

/* Link: <URL>; rel="next" */
static void read_link(const hop *h) {
    struct curl_header *header;
    h->answer->next.length = 0;
    if (curl_easy_header(h->http->easy, "Link", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return;
    const char *open = strchr(header->value, '<'), *close = open ? strchr(open, '>') : NULL;
    if (!close || !strstr(close, "rel=\"next\"")) return;
    char *link = qkv_strndup(open + 1, (size_t)(close - open - 1));
    char *url = link ? resolve(h->url, link) : NULL;
    if (url) qkv_text_puts(&h->answer->next, url);
    free(link);
    free(url);
}

/* What the headers say; once they are complete. */
static void read_headers(hop *h) {
    qkv_http_answer *answer = h->answer;
    CURL *easy = h->http->easy;
    if (h->has_answer) return;
    h->has_answer = answer->reached = 1;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer->status);
    curl_off_t wait = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &wait);
    answer->retry_after = (int64_t)wait;
    copy_field(easy, "ETag", answer->etag);
    copy_field(easy, "X-Error-Code", answer->error_code);
    copy_field(easy, "X-Error-Message", answer->error_message);
    answer->length = field_number(easy, "Content-Length");
    read_range(easy, answer);
    answer->elsewhere = strcmp(h->origin, h->http->origin) != 0;
    if (answer->elsewhere) return;
    read_link(h);
    if (field_number(easy, "X-Linked-Size") >= 0)
        answer->linked_size = field_number(easy, "X-Linked-Size");
    char linked[QKV_HTTP_FIELD];
    copy_field(easy, "X-Linked-Etag", linked);
    if (linked[0]) memcpy(answer->linked_etag, linked, sizeof linked);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *user) {
    hop *h = user;
    (void)bytes;
    h->header_bytes += size * n;
    if (h->header_bytes <= MOST_HEADER_BYTES) return size * n;
    h->too_long = 1;
    return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user) {
    hop *h = user;
    read_headers(h);
    if (h->answer->status != 200 && h->answer->status != 206) {
        h->ignored_bytes += n * size;
        h->too_long = h->ignored_bytes > MOST_ERROR_BYTES;
        return h->too_long ? 0 : n * size;
    }
    h->status = h->request->take
                    ? h->request->take(h->request->user, h->answer, bytes, n * size, h->err)
                    : QKV_OK;
    return h->status == QKV_OK ? n * size : 0;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *text, int *failed) {
    struct curl_slist *longer = *failed ? NULL : curl_slist_append(list, text);
    if (longer) return longer;
    *failed = 1;
    return list;
}

static int make_headers(struct curl_slist **list, const hop *h, qkv_error *err) {
    const qkv_http_request *request = h->request;
    char text[QKV_HTTP_FIELD + 64];
    int failed = 0;
    *list = NULL;
    if (h->http->authorization && strcmp(h->origin, h->http->origin) == 0)
        *list = add_header(*list, h->http->authorization, &failed);
    if (!request->compressed) *list = add_header(*list, "Accept-Encoding: identity", &failed);
    /* What is weak may stand for other bytes. */
    if (request->from && request->if_range && request->if_range[0] == '"') {
        qkv_format(text, sizeof text, "If-Range: %s", request->if_range);
        *list = add_header(*list, text, &failed);
    }
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

/* A file with certificates, as other programs are told about it; NULL: the system's. */
static const char *certificates(void) {
    static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0]) return value;
    }
    return NULL;
}

static void set_options(hop *h, const struct curl_slist *headers) {
    CURL *easy = h->http->easy;
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, h->url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, h->reason);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "qkv/" QKV_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    /* The token is for the endpoint and not for a proxy on the way. */
    curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SLOW_SECONDS);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, h);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, h);
    if (certificates()) curl_easy_setopt(easy, CURLOPT_CAINFO, certificates());
    if (h->request->head) curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (h->request->compressed) curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
    /* Not as a transfer to resume: libcurl would take a whole file for an error. */
    char range[32];
    qkv_format(range, sizeof range, "%" PRIu64 "-", h->request->from);
    if (h->request->from) curl_easy_setopt(easy, CURLOPT_RANGE, range);
}

/* Until it is done, or is to end. */
static CURLcode perform(hop *h) {
    qkv_http *http = h->http;
    CURLMcode code = curl_multi_add_handle(http->multi, http->easy);
    int running = 1;
    while (code == CURLM_OK) {
        code = curl_multi_perform(http->multi, &running);
        if (code != CURLM_OK || !running) break;
        if (http->stop && http->stop(http->user)) {
            h->cancelled = 1;
            break;
        }
        code = curl_multi_poll(http->multi, NULL, 0, POLL_MILLISECONDS, NULL);
    }
    int left;
    const CURLMsg *message = curl_multi_info_read(http->multi, &left);
    const CURLcode result = code != CURLM_OK ? CURLE_OUT_OF_MEMORY
                            : message        ? message->data.result
                                             : CURLE_ABORTED_BY_CALLBACK;
    if (result == CURLE_OK) read_headers(h);
    curl_multi_remove_handle(http->multi, http->easy);
    curl_easy_setopt(http->easy, CURLOPT_ERRORBUFFER, NULL); /* it ends with the hop */
    return result;
}

/* Whether another attempt may help. */
static int may_pass(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
        return 1;
    default:
        return 0;
    }
}

static int fail_hop(const hop *h, CURLcode code) {
    if (h->cancelled) return qkv_fail(h->err, QKV_ERR_CANCELLED, "stopped");
    if (h->status != QKV_OK) return h->status;
    const char *host = h->answer->host;
    if (h->header_bytes > MOST_HEADER_BYTES)
        return qkv_fail(h->err, QKV_ERR_IO, "%s sends headers without end", host);
    /* Older versions of libcurl say the same of a line that is too long for them. */
    if (code == CURLE_OUT_OF_MEMORY)
        return qkv_fail(h->err, QKV_ERR_MEMORY,
                        "out of memory, or %s sends a header that is too long", host);
    h->answer->broken = may_pass(code);
    const char *why = h->reason[0] ? h->reason : curl_easy_strerror(code);
    if (h->has_answer || code == CURLE_PARTIAL_FILE)
        return qkv_fail(h->err, QKV_ERR_IO, "the connection to %s broke: %s", host, why);
    return qkv_fail(h->err, QKV_ERR_IO, "cannot reach %s: %s", host, why);
}

static int ask_once(hop *h) {
    struct curl_slist *headers = NULL;
    int status = make_headers(&headers, h, h->err);
    if (status == QKV_OK) {
        set_options(h, headers);
        const CURLcode code = perform(h);
        /* An error page that is too long was an answer all the same. */
        const int is_enough = h->has_answer && h->too_long && h->ignored_bytes;
        if (code != CURLE_OK && !is_enough) status = fail_hop(h, code);
    }
    curl_slist_free_all(headers);
    return status;
}

/* ---- all of them ---- */

/* 1 and the next address, 0 when this is where it ends. */
static int next_hop(const hop *h, char **url, qkv_error *err, int *status) {
    static const long codes[] = {301, 302, 303, 307, 308};
    struct curl_header *header;
    int redirects = 0;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        redirects |= h->answer->status == codes[i];
    if (!redirects ||
        curl_easy_header(h->http->easy, "Location", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return 0;
    *url = resolve(h->url, header->value);
    char *origin = *url ? origin_of(*url) : NULL;
    const int is_other = !origin || strcmp(origin, h->http->origin) != 0;
    if (!origin || (strncmp(h->url, "https:", 6) == 0 && strncmp(origin, "https:", 6) != 0))
        *status = qkv_fail(err, QKV_ERR_IO,
                           "%s redirects to an address that is not followed: only http and https "
                           "are, and https never to http",
                           h->answer->host);
    free(origin);
    return *status == QKV_OK && !(h->request->head && is_other);
}

static void clear_answer(qkv_http_answer *answer) {
    *answer =
        (qkv_http_answer){.linked_size = -1, .length = -1, .range_from = -1, .range_total = -1};
}

static int follow(qkv_http *http, const qkv_http_request *request, qkv_http_answer *answer,
                  qkv_error *err) {
    char *url = qkv_strdup(request->url);
    size_t header_bytes = 0;
    int status = url ? QKV_OK : qkv_fail_memory(err), going = status == QKV_OK;
    for (int i = 0; going && status == QKV_OK; i++) {
        hop h = {.http = http,
                 .request = request,
                 .answer = answer,
                 .url = url,
                 .err = err,
                 .header_bytes = header_bytes,
                 .origin = origin_of(url)};
        char *next = NULL;
        going = 0;
        if (i > MOST_REDIRECTS) {
            status = qkv_fail(err, QKV_ERR_IO, "%s redirects without end", answer->host);
        } else if (!h.origin) {
            status = qkv_fail(err, QKV_ERR_IO, "'%.200s' is not an address", url);
        } else {
            copy_host(answer->host, h.origin);
            status = ask_once(&h);
            if (status == QKV_OK) going = next_hop(&h, &next, err, &status);
        }
        header_bytes = h.header_bytes;
        free(h.origin);
        free(url);
        url = next;
    }
    free(url);
    return status;
}

int qkv_http_ask(qkv_http *http, const qkv_http_request *request, qkv_http_answer *answer,
                 qkv_error *err) {
    held_signal held;
    clear_answer(answer);
    hold_sigpipe(&held);
    const int status = follow(http, request, answer, err);
    release_sigpipe(&held);
    return status;
}

void qkv_http_answer_release(qkv_http_answer *answer) {
    qkv_text_release(&answer->next);
    clear_answer(answer);
}

int qkv_http_new(qkv_http **out, const char *endpoint, const char *token, int (*stop)(void *user),
                 void *user, qkv_error *err) {
    *out = NULL;
    pthread_once(&once, start);
    if (started != CURLE_OK)
        return qkv_fail(err, QKV_ERR_BACKEND, "libcurl does not start: %s",
                        curl_easy_strerror(started));
    qkv_http *http = qkv_calloc(1, sizeof *http);
    if (!http) return qkv_fail_memory(err);
    qkv_text authorization = {0};
    if (token) qkv_text_printf(&authorization, "Authorization: Bearer %s", token);
    *http = (qkv_http){.easy = curl_easy_init(),
                       .multi = curl_multi_init(),
                       .origin = origin_of(endpoint),
                       .authorization = authorization.data,
                       .stop = stop,
                       .user = user};
    int status = QKV_OK;
    if (!http->easy || !http->multi || authorization.failed)
        status = qkv_fail_memory(err);
    else if (!http->origin)
        status = qkv_fail(err, QKV_ERR_ARGUMENT,
                          "HF_ENDPOINT is not an address: it begins with https:// or http://");
    *out = http;
    if (status == QKV_OK) return QKV_OK;
    qkv_http_free(http);
    *out = NULL;
    return status;
}

void qkv_http_free(qkv_http *http) {
    if (!http) return;
    held_signal held;
    hold_sigpipe(&held); /* TLS says goodbye */
    curl_easy_cleanup(http->easy);
    curl_multi_cleanup(http->multi);
    release_sigpipe(&held);
    free(http->origin);
    free(http->authorization);
    free(http);
}
