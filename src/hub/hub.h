/*
 * The hub that one pull talks to: where it is, the token for it, attempts that are repeated, and its
 * refusals in words. The token appears in no message.
 */
#ifndef QKV_HUB_HUB_H
#define QKV_HUB_HUB_H

#include "hub/http.h"
#include "hub/name.h"
#include "hub/pull_watch.h"

typedef struct qkv_hub {
    qkv_hub_name name;
    char *endpoint; /* no slash at its end */
    char *shown;    /* the same for messages: without a password */
    char *token;    /* NULL: none */
    qkv_http *http;
    qkv_pull_watch *watch;
    int reached; /* it has answered before: what fails now may pass */
    long status; /* of its last answer */
} qkv_hub;

/* Close it also after a failure. */
int qkv_hub_open(qkv_hub *hub, const char *name, qkv_pull_watch *watch, qkv_error *err);
void qkv_hub_close(qkv_hub *hub);

/*
 * After a request: QKV_OK and *again = 0 when it succeeded; QKV_OK and *again = 1 when it is to be
 * repeated, the wait being over; else the failure in words. `tries` counts attempts, and starts at 0;
 * `file` is the file asked for, NULL for the repository itself. `err` holds the request's own failure
 * and is not NULL.
 */
int qkv_hub_judge(qkv_hub *hub, int *tries, int status, const qkv_http_answer *answer,
                  const char *file, int *again, qkv_error *err);

/* The whole of a small answer, at most `limit` bytes: NUL-terminated. `next` (may be NULL) becomes
 * the address of the following page, or stays empty. */
int qkv_hub_read(qkv_hub *hub, const char *url, const char *file, size_t limit, qkv_text *body,
                 qkv_text *next, qkv_error *err);

/* ENDPOINT/ORG/NAME/resolve/COMMIT/FILE */
int qkv_hub_file_url(const qkv_hub *hub, qkv_text *url, const char *commit, const char *file,
                     qkv_error *err);

#endif
