#include "hub/digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PIECE ((size_t)1 << 20)

struct qkv_digest {
    EVP_MD_CTX *ctx;
};

static const EVP_MD *algorithm(qkv_digest_kind kind) {
    return kind == QKV_SHA256 ? EVP_sha256() : kind == QKV_SHA512 ? EVP_sha512() : EVP_sha1();
}

static int fail_digest(qkv_error *err) {
    return qkv_fail(err, QKV_ERR_BACKEND, "the cryptography library cannot make digests");
}

int qkv_digest_new(qkv_digest **out, qkv_digest_kind kind, qkv_error *err) {
    qkv_digest *digest = qkv_calloc(1, sizeof *digest);
    *out = digest;
    if (!digest || !(digest->ctx = EVP_MD_CTX_new())) {
        qkv_digest_free(digest);
        *out = NULL;
        return qkv_fail_memory(err);
    }
    if (EVP_DigestInit_ex(digest->ctx, algorithm(kind), NULL) == 1) return QKV_OK;
    qkv_digest_free(digest);
    *out = NULL;
    return fail_digest(err);
}

int qkv_digest_add(qkv_digest *digest, const void *bytes, size_t n, qkv_error *err) {
    return EVP_DigestUpdate(digest->ctx, bytes, n) == 1 ? QKV_OK : fail_digest(err);
}

int qkv_digest_end(qkv_digest *digest, char hex[QKV_DIGEST_SIZE], qkv_error *err) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(digest->ctx, bytes, &n) != 1) return fail_digest(err);
    for (unsigned i = 0; i < n; i++) snprintf(hex + (size_t)2 * i, 3, "%02x", bytes[i]);
    return QKV_OK;
}

void qkv_digest_free(qkv_digest *digest) {
    if (digest) EVP_MD_CTX_free(digest->ctx);
    free(digest);
}

static int add_file(qkv_digest *digest, FILE *file, const char *path, size_t size, char *piece,
                    qkv_steps *steps, qkv_error *err) {
    while (size > 0) {
        if (qkv_steps_tick(steps)) return qkv_fail_cancelled(err);
        const size_t n = fread(piece, 1, size < PIECE ? size : PIECE, file);
        if (n == 0) break;
        int status = qkv_digest_add(digest, piece, n, err);
        if (status != QKV_OK) return status;
        size -= n;
    }
    if (ferror(file)) return qkv_fail(err, QKV_ERR_IO, "%s: %s", path, strerror(errno));
    return QKV_OK;
}

int qkv_digest_file(char hex[QKV_DIGEST_SIZE], qkv_digest_kind kind, const char *path, size_t size,
                    qkv_steps *steps, qkv_error *err) {
    qkv_digest *digest = NULL;
    char *piece = NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return qkv_fail(err, QKV_ERR_IO, "%s: %s", path, strerror(errno));
    int status = qkv_digest_new(&digest, kind, err);
    if (status == QKV_OK && !(piece = malloc(PIECE))) status = qkv_fail_memory(err);
    if (status == QKV_OK) status = add_file(digest, file, path, size, piece, steps, err);
    if (status == QKV_OK) status = qkv_digest_end(digest, hex, err);
    qkv_digest_free(digest);
    free(piece);
    fclose(file);
    return status;
}
