/*
 * The files of a repository on the hub, at one commit: those that can belong to a model.
 *
 * What the hub says is not believed: names that lead out of a directory are refused, sizes and digests
 * must be such, and a list has its limits. It is gone through in place, so that a repository of
 * 100,000 files takes little more memory than its list.
 */
#ifndef QKV_HUB_LISTING_H
#define QKV_HUB_LISTING_H

#include "hub/hub.h"

/* 64 hexadecimal digits, and a NUL. */
enum { QKV_BLOB_NAME = 65, QKV_COMMIT_NAME = 41 };

typedef enum qkv_file_use { QKV_FILE_UNUSED, QKV_FILE_SETTINGS, QKV_FILE_WEIGHTS } qkv_file_use;

typedef struct qkv_listed_file {
    char *path;
    uint64_t size;
    /* The name of its bytes in the cache: their SHA-256 (files in LFS), or git's SHA-1 for a blob;
     * "" where the list does not say, and then there is no size either. */
    char blob[QKV_BLOB_NAME];
    qkv_file_use use;
    qkv_text content; /* of a small file that was needed before: empty where it was not */
} qkv_listed_file;

typedef struct qkv_listing {
    char commit[QKV_COMMIT_NAME];
    qkv_listed_file *files; /* by path */
    size_t n, capacity;
    size_t n_listed; /* files in all */
    char *pickle;    /* a file of pickled weights, NULL: none */
} qkv_listing;

/* Release it also after a failure. */
int qkv_listing_read(qkv_listing *listing, qkv_hub *hub, qkv_error *err);
void qkv_listing_release(qkv_listing *listing);

/* Reads the hub's answer about a revision, {"sha": COMMIT, "siblings": [FILE, ...]}. */
int qkv_listing_parse(qkv_listing *listing, const qkv_hub *hub, const qkv_text *body,
                      qkv_error *err);

/* NULL: there is none, or none that counts. */
qkv_listed_file *qkv_listing_find(const qkv_listing *listing, const char *path);

/* Asks the hub for size and digest of a file, where the list has none. */
int qkv_listing_complete(const qkv_listing *listing, qkv_hub *hub, qkv_listed_file *file,
                         qkv_error *err);

/* Does a file hold weights that Python unpickles, or that nothing here reads? */
int qkv_is_pickle(const char *path);

#endif
