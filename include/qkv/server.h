/*
 * Unstable: may change in every version.
 *
 * The explorer: a page in the browser, and the JSON interface that it uses (docs/explorer.md).
 *
 *     qkv_server *server = NULL;
 *     qkv_server_model model = QKV_SERVER_MODEL_INIT;
 *     model.name = "model";
 *     model.path = "model.gguf";
 *     qkv_server_options options = QKV_SERVER_OPTIONS_INIT;
 *     options.models = &model;
 *     options.n_models = 1;
 *     if (qkv_server_new(&server, &options, &err) == QKV_OK) {
 *         printf("%s\n", qkv_server_url(server));
 *         qkv_server_wait(server, 0.1); // here it serves, until qkv_server_stop or the time is up
 *     }
 *     qkv_server_free(server);
 *
 * A server has threads of its own: one waits for requests at each address, one computes, one does
 * what needs no pass of a model. What the page shows first is computed at once. It listens on this
 * machine alone unless an address is given, and answers no request without its token, which is
 * part of its URL. It opens the models of its list and reads no other file.
 *
 * A server may be asked, and stopped, by any thread; it is freed by one, when no other uses it.
 * Models that are handed over open are shared, not copied.
 */
#ifndef QKV_SERVER_H
#define QKV_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_server qkv_server;

/* A model that can be chosen. Strings are copied. */
typedef struct qkv_server_model {
    size_t size;
    const char *name;       /* what requests call it; no two are the same */
    const char *path;       /* for qkv_model_open; may be NULL where `model` is not */
    const char *argument;   /* what -m of the program takes for it; NULL: it needs no -m */
    const qkv_model *model; /* already open; NULL: opened when it is first asked for */
    uint64_t file_size;     /* bytes, for people; 0: not known */
} qkv_server_model;

#define QKV_SERVER_MODEL_INIT                                                                      \
    { .size = sizeof(qkv_server_model) }

typedef struct qkv_server_options {
    size_t size;
    const qkv_server_model *models; /* an array, all of one size; the first is opened at once */
    size_t n_models;
    const char *prompt; /* that the page begins with; NULL: the library's own */
    int32_t port;       /* 0: any that is free */
    /* A numeric address, "192.168.1.5", "0.0.0.0", "::", in place of 127.0.0.1 and ::1. Everybody who
     * reaches it and knows the token can use the models; nothing is encrypted. Needs a token. */
    const char *bind;
    const char *token; /* 16 to 128 letters, digits, - and _; NULL: a random one */
    /* Which pages may show the explorer in a frame, as in a Content-Security-Policy:
     * "http://localhost:8888"; NULL: none. */
    const char *frame_ancestors;
    int32_t n_threads;       /* as in qkv_session_options */
    size_t memory_budget;    /* the same, of each of the two sessions that a model has */
    int64_t max_tokens;      /* of a prompt; 0: 16384, or what the model takes if that is less */
    int32_t max_connections; /* at a time; 0: 256 */
    double time_limit;       /* seconds that a request may compute; 0: 300 */
} qkv_server_options;

#define QKV_SERVER_OPTIONS_INIT                                                                    \
    { .size = sizeof(qkv_server_options) }

/* Begins to listen. The first model is opened, so that mistakes show here. */
QKV_API int qkv_server_new(qkv_server **out, const qkv_server_options *options, qkv_error *err);
/* What to open in a browser, with the token. Belongs to the server; NULL without one. */
QKV_API const char *qkv_server_url(const qkv_server *server);
/* Waits until the server was stopped, or so many seconds: 1 when it was stopped, else 0. */
QKV_API int qkv_server_wait(qkv_server *server, double seconds);
/* Ends what is being computed, and requests that wait. No request is answered any more. */
QKV_API void qkv_server_stop(qkv_server *server);
/* Stops and frees it. In a process that was forked from the one that serves, this and
 * qkv_server_stop do nothing: the server is not there. */
QKV_API void qkv_server_free(qkv_server *server);

#ifdef __cplusplus
}
#endif

#endif
