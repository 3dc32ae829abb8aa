/*
 * Requests of HTTP: who asks, for what, and the answer.
 *
 *     first call       Host, Origin, token, path, method, type and size are looked at
 *     calls with data  the body is collected, up to its limit
 *     last call        the body becomes a job; the connection sleeps until it is done
 *     once more        the job's reply is sent
 *
 * Everything here runs in the threads that wait for requests, and none of it computes.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "page/page_files.h"
#include "server/serve.h"

/* A request that is being received, computed or answered. */
typedef struct exchange {
    qkv_server *server;
    struct MHD_Connection *connection;
    const qkv_endpoint *endpoint; /* NULL: a file of the page is asked for */
    qkv_text body;
    size_t reserved[QKV_BYTES_COUNT]; /* bytes that are counted */
    int has_job;                      /* the job was handed to the queue */
    qkv_job job;
} exchange;

/* ---- answers ---- */

static void add_header(struct MHD_Response *response, const char *name, const char *value) {
    (void)MHD_add_response_header(response, name, value);
}

/* What every answer says: nothing is cached, no other site may use it, only our own scripts run. */
static void add_headers(const qkv_server *server, struct MHD_Response *response, const char *type) {
    add_header(response, "Content-Type", type);
    add_header(response, "Content-Security-Policy", server->policy);
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Cache-Control", "no-store");
    add_header(response, "Referrer-Policy", "no-referrer");
    add_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    if (server->framed) return;
    add_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    add_header(response, "X-Frame-Options", "DENY");
}

static enum MHD_Result send_response(const qkv_server *server, struct MHD_Connection *connection,
                                     unsigned status, struct MHD_Response *response,
                                     const char *type) {
    if (!response) return MHD_NO;
    add_headers(server, response, type);
    const enum MHD_Result sent = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return sent;
}

/* How long it took here, in milliseconds, or that it was computed before: browsers show it, and the
 * bench reads it. */
static void add_timing(struct MHD_Response *response, const qkv_reply *reply) {
    char text[48];
    if (reply->status != 200) return;
    snprintf(text, sizeof text, "compute;dur=%ld", lround(reply->seconds * 1e3));
    add_header(response, "Server-Timing", reply->kept ? "kept" : text);
}

/* Takes the reply's bytes over. */
static enum MHD_Result send_reply(const qkv_server *server, struct MHD_Connection *connection,
                                  qkv_reply *reply) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->n_bytes, reply->bytes, MHD_RESPMEM_MUST_FREE);
    if (response) {
        reply->bytes = NULL;
        add_timing(response, reply);
    }
    return send_response(server, connection, reply->status, response, reply->type);
}

static const char *header(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Is the answer shown to a person, as that to an address bar is? Scripts do not ask for HTML. */
static int is_read(struct MHD_Connection *connection) {
    const char *accepted = header(connection, "Accept");
    return accepted && strstr(accepted, "text/html");
}

/* `message` is one of this file's: it has no letter that HTML would take for markup. */
static void put_error_page(qkv_reply *reply, unsigned status, const char *message) {
    qkv_text page = {0};
    qkv_text_printf(&page,
                    "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                    "<meta name=\"color-scheme\" content=\"light dark\"><title>qkv explorer</title>"
                    "<h1>qkv explorer</h1><p>This was not answered: %s.</p>",
                    message);
    if (status == 401)
        qkv_text_puts(&page,
                      "<p>The address looks like http://127.0.0.1:8471/?token=... and stands "
                      "in the terminal where qkv serve was started. It is a new one after "
                      "every start.</p>");
    qkv_text_puts(&page, "</html>\n");
    if (page.failed) { /* the JSON stays */
        qkv_text_release(&page);
        return;
    }
    reply->n_bytes = page.length;
    free(reply->bytes);
    reply->bytes = page.data;
    reply->type = "text/html; charset=utf-8";
}

static enum MHD_Result send_error(const qkv_server *server, struct MHD_Connection *connection,
                                  unsigned status, const char *code, const char *message) {
    qkv_reply reply = QKV_REPLY_INIT;
    qkv_reply_error(&reply, status, code, message);
    if (is_read(connection)) put_error_page(&reply, status, message);
    const enum MHD_Result sent = send_reply(server, connection, &reply);
    qkv_reply_release(&reply);
    return sent;
}

/* ---- files of the page ---- */

static const char *type_of(const char *name) {
    static const struct {
        const char *suffix, *type;
    } types[] = {{"html", "text/html; charset=utf-8"},
                 {"css", "text/css; charset=utf-8"},
                 {"js", "text/javascript; charset=utf-8"},
                 {"svg", "image/svg+xml"},
                 {"png", "image/png"},
                 {"ico", "image/x-icon"}};
    const char *suffix = qkv_path_suffix(name);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].suffix, suffix) == 0) return types[i].type;
    }
    return "application/octet-stream";
}

static int find_script(const qkv_server *server, const char *name, const char **bytes,
                       size_t *n_bytes) {
    static const char *const names[] = {QKV_SCRIPT_FIRST, QKV_SCRIPT_REST};
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *bytes = server->scripts[i].data;
        *n_bytes = server->scripts[i].length;
        return 1;
    }
    return 0;
}

static enum MHD_Result send_file(const qkv_server *server, struct MHD_Connection *connection,
                                 const char *name) {
    const char *bytes = NULL;
    size_t n_bytes = 0;
    if (!find_script(server, name, &bytes, &n_bytes) && !qkv_page_file(name, &bytes, &n_bytes))
        return send_error(server, connection, 404, "not_found", "there is nothing of that name");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(n_bytes, (void *)bytes, MHD_RESPMEM_PERSISTENT);
    return send_response(server, connection, 200, response, type_of(name));
}

/* The way in: the token of the URL becomes a cookie, and leaves the address bar. Where another site's
 * link led here, a browser would keep the new cookie from a redirection; a page of ours that redirects
 * by itself it trusts. */
static enum MHD_Result send_entrance(const qkv_server *server, struct MHD_Connection *connection,
                                     int from_elsewhere) {
    static const char page[] = "<!DOCTYPE html><meta charset=\"utf-8\"><title>qkv</title>"
                               "<meta http-equiv=\"refresh\" content=\"0;url=/\">"
                               "<p><a href=\"/\">qkv</a></p>\n";
    qkv_text cookie = {0};
    struct MHD_Response *response = MHD_create_response_from_buffer(
        from_elsewhere ? sizeof page - 1 : 0, (void *)page, MHD_RESPMEM_PERSISTENT);
    qkv_text_printf(&cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", server->cookie,
                    server->token);
    if (!response || cookie.failed) {
        if (response) MHD_destroy_response(response);
        qkv_text_release(&cookie);
        return MHD_NO;
    }
    add_header(response, "Set-Cookie", cookie.data);
    if (!from_elsewhere) add_header(response, "Location", "/");
    qkv_text_release(&cookie);
    return send_response(server, connection, from_elsewhere ? 200 : 303, response,
                         "text/html; charset=utf-8");
}

/* ---- who asks ---- */

typedef struct header_count {
    const char *name;
    int n;
} header_count;

static enum MHD_Result count_header(void *user, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
    header_count *count = user;
    (void)kind;
    (void)value;
    if (qkv_equal_ignoring_case(key, count->name)) count->n++;
    return MHD_YES;
}

/* Of a header that comes twice, somebody on the way might have looked at the other one. */
static int has_one(struct MHD_Connection *connection, const char *name) {
    header_count count = {name, 0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &count);
    return count.n <= 1;
}

static int knows_token(const qkv_server *server, struct MHD_Connection *connection) {
    char cookie[QKV_GUARD_TOKEN_SIZE];
    const char *bearer = qkv_guard_bearer(header(connection, "Authorization"));
    if (bearer) return qkv_guard_same(bearer, server->token);
    for (const char *at = header(connection, "Cookie");
         (at = qkv_guard_cookie(at, server->cookie, cookie, sizeof cookie));) {
        if (qkv_guard_same(cookie, server->token)) return 1;
    }
    return 0;
}

static int is_entrance(const qkv_server *server, struct MHD_Connection *connection, const char *url,
                       const char *method) {
    if (strcmp(url, "/") != 0 || strcmp(method, "GET") != 0) return 0;
    return qkv_guard_same(MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
                          server->token);
}

/* Pages of this server may ask for anything; a browser's address bar and frames for the page. */
static int is_ours(struct MHD_Connection *connection, const char *url) {
    const char *site = header(connection, "Sec-Fetch-Site"),
               *dest = header(connection, "Sec-Fetch-Dest");
    if (!has_one(connection, "Origin")) return 0;
    if (!qkv_guard_origin(header(connection, "Origin"), header(connection, "Host"))) return 0;
    if (qkv_guard_site(site)) return 1;
    const int shown = dest && (strcmp(dest, "document") == 0 || strcmp(dest, "iframe") == 0);
    return shown && strcmp(url, "/") == 0;
}

/* ---- receiving ---- */

static qkv_connection *connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static size_t body_limit(const qkv_endpoint *endpoint) {
    return endpoint->fields ? QKV_SERVE_BODY : QKV_SERVE_FILE;
}

/* A body of another type could come from a form of another site. */
static int has_type(struct MHD_Connection *connection, const qkv_endpoint *endpoint) {
    const char *type = header(connection, "Content-Type");
    const char *wanted = endpoint->fields ? "application/json" : "application/octet-stream";
    const size_t n = strlen(wanted);
    if (strcmp(endpoint->method, "GET") == 0) return 1;
    return type && strncmp(type, wanted, n) == 0 && (!type[n] || type[n] == ';' || type[n] == ' ');
}

static int is_too_large(struct MHD_Connection *connection, const qkv_endpoint *endpoint) {
    const char *length = header(connection, "Content-Length");
    if (!length) return 0;
    errno = 0;
    return strtoull(length, NULL, 10) > body_limit(endpoint) || errno;
}

static exchange *exchange_new(qkv_server *server, struct MHD_Connection *connection,
                              const qkv_endpoint *endpoint) {
    exchange *e = qkv_calloc(1, sizeof *e);
    if (!e) return NULL;
    e->server = server;
    e->connection = connection;
    e->endpoint = endpoint;
    e->job.reply = (qkv_reply)QKV_REPLY_INIT;
    return e;
}

static enum MHD_Result begin_call(qkv_server *server, struct MHD_Connection *connection,
                                  const char *url, const char *method, void **context) {
    const qkv_endpoint *endpoint = qkv_endpoint_find(url);
    if (!endpoint)
        return send_error(server, connection, 404, "not_found", "there is nothing of that name");
    if (strcmp(method, endpoint->method) != 0)
        return send_error(server, connection, 405, "method", "that is asked for by another method");
    if (!has_type(connection, endpoint))
        return send_error(server, connection, 415, "type",
                          endpoint->fields ? "the Content-Type must be application/json"
                                           : "the Content-Type must be application/octet-stream");
    if (is_too_large(connection, endpoint))
        return send_error(server, connection, 413, "too_large", "the request is too large");
    *context = exchange_new(server, connection, endpoint);
    return *context ? MHD_YES : MHD_NO;
}

static enum MHD_Result begin(qkv_server *server, struct MHD_Connection *connection, const char *url,
                             const char *method, void **context) {
    static const char api[] = "/api/";
    if (!has_one(connection, "Host") ||
        !qkv_guard_host(header(connection, "Host"), server->any_address))
        return send_error(server, connection, 403, "host",
                          "this server is asked for by its address or as localhost");
    if (is_entrance(server, connection, url, method)) {
        qkv_connection_trust(&server->connections, connection_of(connection));
        return send_entrance(server, connection,
                             !qkv_guard_site(header(connection, "Sec-Fetch-Site")));
    }
    if (!is_ours(connection, url))
        return send_error(server, connection, 403, "origin",
                          "pages of other sites are not answered");
    if (!knows_token(server, connection))
        return send_error(server, connection, 401, "token",
                          "open the address that qkv serve printed, with its token");
    qkv_connection_trust(&server->connections, connection_of(connection));
    if (url[0] != '/') /* "*", or the address of another server */
        return send_error(server, connection, 404, "not_found", "there is nothing of that name");
    if (strncmp(url, api, sizeof api - 1) == 0)
        return begin_call(server, connection, url, method, context);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_error(server, connection, 405, "method",
                          "files of the page are asked for by GET");
    /* Sent in the next call: an answer in the first one ends the connection. */
    *context = exchange_new(server, connection, NULL);
    return *context ? MHD_YES : MHD_NO;
}

static int reserve(exchange *e, qkv_bytes what, size_t n, size_t most) {
    if (!qkv_connections_reserve(&e->server->connections, what, n, most)) return 0;
    e->reserved[what] += n;
    return 1;
}

/* Beyond a limit the connection is closed: what else would come cannot be told from a flood. */
static enum MHD_Result collect(exchange *e, const char *data, size_t n) {
    if (!e->endpoint || n > body_limit(e->endpoint) - e->body.length) return MHD_NO;
    if (!reserve(e, QKV_BYTES_IN, n, QKV_SERVE_ALL_BODIES)) return MHD_NO;
    qkv_text_append(&e->body, data, n);
    return e->body.failed ? MHD_NO : MHD_YES;
}

/* ---- jobs ---- */

static void wake(qkv_job *job) {
    MHD_resume_connection(((exchange *)job->user)->connection);
}

/* Has the client closed the connection? A page does so when it no longer wants the answer. What was
 * sent after the request does not hide it. */
static int has_left(const qkv_job *job) {
    struct pollfd socket = {.fd = job->fd, .events = POLLRDHUP};
    return poll(&socket, 1, 0) > 0 && (socket.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* JSON of a few bytes may take a hundred times as much when it is read, and waits in the queue then.
 * 0: it was refused. */
static int reserve_json(exchange *e) {
    if (!e->endpoint->fields) return 1;
    const size_t cost = qkv_json_cost(e->body.data, e->body.length);
    if (cost > QKV_SERVE_ALL_BODIES)
        qkv_reply_error(&e->job.reply, 413, "too_large", "the request has too many parts");
    else if (!reserve(e, QKV_BYTES_IN, cost, QKV_SERVE_ALL_BODIES))
        qkv_reply_error(&e->job.reply, 503, "busy", "too much waits already; try again");
    return !e->job.reply.status;
}

static enum MHD_Result start_job(exchange *e) {
    qkv_job *job = &e->job;
    qkv_error err = {0};
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(e->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    job->endpoint = e->endpoint;
    job->done = wake;
    job->is_gone = has_left;
    job->user = e;
    job->fd = info ? info->connect_fd : -1;
    e->has_job = 1;
    if (!reserve_json(e)) return send_reply(e->server, e->connection, &job->reply);
    char *body = e->body.data;
    const size_t n_body = e->body.length;
    e->body = (qkv_text){0};
    if (qkv_call_read(&job->call, e->endpoint, e->server->pool, body, n_body, &err) != QKV_OK) {
        qkv_reply_failure(&job->reply, &err);
        return send_reply(e->server, e->connection, &job->reply);
    }
    qkv_connection_allow(&e->server->connections, connection_of(e->connection), 0);
    MHD_suspend_connection(e->connection);
    qkv_queue_add(&e->server->queue, job);
    return MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_data, void **context) {
    qkv_server *server = user;
    exchange *e = *context;
    (void)version;
    if (!e) return begin(server, connection, url, method, context);
    if (*n_data) {
        const size_t n = *n_data;
        *n_data = 0;
        return collect(e, data, n);
    }
    if (!e->endpoint) return send_file(server, connection, url[1] ? url + 1 : "index.html");
    if (!e->has_job) return start_job(e);
    /* Who does not read holds memory. */
    if (!reserve(e, QKV_BYTES_OUT, e->job.reply.n_bytes, QKV_SERVE_ALL_REPLIES))
        qkv_reply_error(&e->job.reply, 503, "busy", "too many answers are not read; try again");
    qkv_connection_allow(&server->connections, connection_of(connection), QKV_TIME_TO_READ);
    return send_reply(server, connection, &e->job.reply);
}

/* ---- ends ---- */

static void on_completed(void *user, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why) {
    qkv_server *server = user;
    exchange *e = *context;
    (void)why;
    qkv_connection_allow(&server->connections, connection_of(connection), QKV_TIME_TO_ASK);
    if (!e) return;
    for (int i = 0; i < QKV_BYTES_COUNT; i++)
        qkv_connections_release_bytes(&server->connections, (qkv_bytes)i, e->reserved[i]);
    qkv_call_release(&e->job.call);
    qkv_reply_release(&e->job.reply);
    qkv_text_release(&e->body);
    free(e);
    *context = NULL;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what) {
    qkv_server *server = user;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        qkv_connection_remove(&server->connections, *context);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = info ? qkv_connection_add(&server->connections, info->connect_fd) : NULL;
}

/* The library prints nothing: what strangers send is not worth a line. */
static void be_quiet(void *user, const char *format, va_list args) {
    (void)user;
    (void)format;
    (void)args;
}

/* Escapes in paths and arguments stay as they are: no name here needs one. */
static size_t keep_escapes(void *user, struct MHD_Connection *connection, char *text) {
    (void)user;
    (void)connection;
    return strlen(text);
}

int qkv_serve_listen(qkv_server *server, int fd, struct MHD_Daemon **out, qkv_error *err) {
    enum { IDLE_SECONDS = 120 };
    *out = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        on_request, server, MHD_OPTION_EXTERNAL_LOGGER, be_quiet, NULL, MHD_OPTION_LISTEN_SOCKET,
        fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->connections.most,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        QKV_SERVE_HEADERS, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_END);
    if (*out) return QKV_OK;
    return qkv_fail(err, QKV_ERR_BACKEND, "libmicrohttpd could not be started: %s",
                    strerror(errno));
}
