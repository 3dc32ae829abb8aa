/*
 * One request over HTTP, with its redirects; nothing else calls libcurl.
 *
 * Redirects are followed here and not by libcurl, because the token goes to the endpoint's own
 * scheme, host and port, and to no others. Other protocols than http and https, and ways from
 * https to http, are refused; certificates are checked.
 *
 * The library is a guest in its process: no signal handlers are touched, and SIGPIPE, which TLS can
 * cause, is held back in the calling thread for the time of a request.
 */
#ifndef QKV_HUB_HTTP_H
#define QKV_HUB_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "base/text.h"

typedef struct qkv_http qkv_http;

enum { QKV_HTTP_FIELD = 256 };

typedef struct qkv_http_answer {
    long status;   /* 0: none came */
    int broken;    /* the connection failed or ended early: another attempt may help */
    int reached;   /* a server answered */
    int elsewhere; /* and not the endpoint, but where it redirects to */
    char etag[QKV_HTTP_FIELD];
    char linked_etag[QKV_HTTP_FIELD]; /* what the endpoint says of the file it redirects to */
    int64_t linked_size, length;      /* below 0: not said */
    int64_t range_from, range_total;  /* of a 206, below 0: not said */
    int64_t retry_after;              /* seconds; 0: not said */
    char error_code[QKV_HTTP_FIELD], error_message[QKV_HTTP_FIELD];
    qkv_text next; /* the following page, as the endpoint's header Link says; empty: none */
    char host[QKV_HTTP_FIELD];
} qkv_http_answer;

typedef struct qkv_http_request {
    const char *url;
    int head;             /* headers only, and only the endpoint's own */
    int compressed;       /* the body may come compressed */
    uint64_t from;        /* the first byte that is wanted */
    const char *if_range; /* and only if the file still has this ETag; NULL or "": in any case */
    /* Takes the body of a 200 or 206; any other status than QKV_OK ends the request with it. */
    int (*take)(void *user, const qkv_http_answer *answer, const void *bytes, size_t n,
                qkv_error *err);
    void *user;
} qkv_http_request;

/* The token (NULL: none) is sent to where `endpoint` leads to. `stop`, called now and then, says
 * with anything but 0 that the work is to end. */
int qkv_http_new(qkv_http **out, const char *endpoint, const char *token, int (*stop)(void *user),
                 void *user, qkv_error *err);
void qkv_http_free(qkv_http *http);

/* QKV_OK when an answer came and is complete, whatever its status; release it in any case. */
int qkv_http_ask(qkv_http *http, const qkv_http_request *request, qkv_http_answer *answer,
                 qkv_error *err);
void qkv_http_answer_release(qkv_http_answer *answer);

/* Appends a text as part of a path, every byte that means something there escaped; '/' stays one
 * where `keep_slashes` is set. */
void qkv_http_append_escaped(qkv_text *url, const char *text, int keep_slashes);

#endif
