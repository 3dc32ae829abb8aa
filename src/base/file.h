/*
 * Files: read-only mappings, and outputs that appear whole or not at all.
 *
 * A qkv_output is written under a temporary name beside its target and takes the target's name only
 * when it is complete:
 *
 *     qkv_output out;
 *     status = qkv_output_open(&out, path, err);
 *     if (status == QKV_OK) {
 *         fwrite(..., out.stream);  ...
 *         status = qkv_output_finish(&out, err); // flush, check, rename
 *     }
 *     ... or qkv_output_abandon(&out) to give up.
 *
 * It is on the disk before it takes the name. A file that it replaces hands down its permissions,
 * and its owner and group where that is allowed; other names of that file (hard links) keep the old
 * content. A symbolic link stays one: what it leads to is replaced, or made.
 *
 * A target that exists and is not a regular file (/dev/full, a pipe) is written in place: there is
 * nothing to rename onto. /dev/stdout and /dev/fd/N are the open descriptors.
 */
#ifndef QKV_BASE_FILE_H
#define QKV_BASE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/temporary.h"
#include "base/text.h"

typedef struct qkv_output {
    FILE *stream;
    char *path;              /* as given */
    char *target;            /* where it leads to */
    qkv_temporary temporary; /* without a name when written in place */
    qkv_text text;           /* of one in memory, as far as it is flushed */
} qkv_output;

int qkv_output_open(qkv_output *out, const char *path, qkv_error *err);
int qkv_output_finish(qkv_output *out, qkv_error *err);
void qkv_output_abandon(qkv_output *out);

/* One that ends in memory; it must not be moved. Is finished by handing over its bytes, with a NUL
 * after them, to be freed with free. */
int qkv_output_open_memory(qkv_output *out, qkv_error *err);
int qkv_output_take(qkv_output *out, char **bytes, size_t *n_bytes, qkv_error *err);

/* All of it at once. */
int qkv_output_write(const char *path, const char *bytes, size_t n_bytes, qkv_error *err);

/* Fails early, before long work, where a later qkv_output_open could not succeed. */
int qkv_output_check(const char *path, qkv_error *err);

typedef struct qkv_mapping {
    const unsigned char *data; /* page-aligned */
    size_t size;
} qkv_mapping;

/* Maps a whole regular file read-only. */
int qkv_mapping_open(qkv_mapping *map, const char *path, qkv_error *err);
void qkv_mapping_close(qkv_mapping *map);

/* Puts on the disk which names there are in the directory of a path, as far as the system can. */
void qkv_sync_directory(const char *path);

/* Reads a whole file (or standard input for "-") up to `limit` bytes; NUL-terminated, freed with
 * free. */
int qkv_read_file(char **data, size_t *size, const char *path, size_t limit, qkv_error *err);

/* 1 or 0, through links. */
int qkv_is_directory(const char *path);

/* The last part of a path, where it begins: a slash after it stays. */
const char *qkv_path_base(const char *path);

/* Of a directory in Hugging Face's cache, .../models--org--name/snapshots/COMMIT, these three parts,
 * where they begin; NULL for any other path. */
const char *qkv_path_snapshot(const char *path);
/* A model's path as files that are handed on show it: those three, or the last part. Neither tells
 * where on somebody's machine things lie. */
const char *qkv_path_model(const char *path);

/* Of a model that `qkv pull` put where it keeps models, .../models/NAME/NAME.gguf, where the first NAME
 * begins, and its length; NULL for any other path. */
const char *qkv_path_pulled(const char *path, size_t *length);

/* A model as small print names it: "Name (file.gguf), Q4_K"; "file.gguf, Q4_K" where the name is "" or
 * the file's own, and "name, Q4_K" where the file is called name.gguf. weights is the type of most of
 * its weights; "": not known. */
void qkv_text_append_model(qkv_text *text, const char *name, const char *path, const char *weights);

/* The part of a path after its last dot, without the dot, "" when there is none. */
const char *qkv_path_suffix(const char *path);

#endif
