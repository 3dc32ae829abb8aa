/* SHA-256 and SHA-512 of what was fetched. */
#ifndef QKV_HUB_DIGEST_H
#define QKV_HUB_DIGEST_H

#include <stddef.h>

#include "base/fail.h"
#include "base/steps.h"

typedef enum qkv_digest_kind { QKV_SHA256, QKV_SHA512, QKV_SHA1 } qkv_digest_kind;

/* In hexadecimal digits, with a NUL. */
enum { QKV_DIGEST_SIZE = 129 };

typedef struct qkv_digest qkv_digest;

int qkv_digest_new(qkv_digest **out, qkv_digest_kind kind, qkv_error *err);
int qkv_digest_add(qkv_digest *digest, const void *bytes, size_t n, qkv_error *err);
/* Of all that was added; ends it. */
int qkv_digest_end(qkv_digest *digest, char hex[QKV_DIGEST_SIZE], qkv_error *err);
void qkv_digest_free(qkv_digest *digest);

/* Of a whole file, or of its first `size` bytes; steps may be NULL. */
int qkv_digest_file(char hex[QKV_DIGEST_SIZE], qkv_digest_kind kind, const char *path, size_t size,
                    qkv_steps *steps, qkv_error *err);

#endif
