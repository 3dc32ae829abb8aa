/*
 * What a request is answered with: a status of HTTP and bytes.
 */
#ifndef QKV_SERVER_REPLY_H
#define QKV_SERVER_REPLY_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

typedef struct qkv_reply {
    unsigned status; /* 200; 0: not made yet */
    char *bytes;     /* of malloc */
    size_t n_bytes;
    const char *type; /* "application/json" */
    int64_t at;       /* of an error: where in the edits it is; -1: nowhere */
    int64_t length;   /* and how long what is wrong is */
    double seconds;   /* that it took to compute */
    int kept;         /* it was computed before, for the same request */
} qkv_reply;

#define QKV_REPLY_INIT                                                                             \
    { .at = -1 }

void qkv_reply_release(qkv_reply *reply);
/* Takes the JSON over, also on failure; NULL is memory that ran short. */
int qkv_reply_json(qkv_reply *reply, json_t *json, qkv_error *err);
/* Takes over bytes of malloc. */
void qkv_reply_bytes(qkv_reply *reply, char *bytes, size_t n_bytes, const char *type);
/* {"error": {"code", "message", "at"}}, in place of what there is. */
void qkv_reply_error(qkv_reply *reply, unsigned status, const char *code, const char *message);
/* The same of what a function of the library returned. */
void qkv_reply_failure(qkv_reply *reply, const qkv_error *err);

#endif
