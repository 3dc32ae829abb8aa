/*
 * What a directory with the files of a model holds: one that Hugging Face's transformers would open
 * (config.json, *.safetensors), GGUF files, both, or what a download left unfinished. Files may be
 * links to where their bytes are; a link that leads nowhere is a file that is missing.
 *
 * Names and sizes are looked at, and model.safetensors.index.json for what it names; no weights.
 */
#ifndef QKV_HUB_SNAPSHOT_H
#define QKV_HUB_SNAPSHOT_H

#include <stdint.h>

#include "base/text.h"

typedef struct qkv_snapshot {
    char *path;
    char **ggufs; /* those that can be chosen (hub/gguf_choice.h): paths in the directory, sorted */
    size_t n_ggufs, capacity;
    int has_config;
    int has_weights; /* safetensors, or an index of them */
    int has_index, has_shards;
    int has_pickles;
    char *dangling; /* the first file of a directory that is a link to nowhere, or NULL */
    uint64_t size;  /* of what is read of a directory */
} qkv_snapshot;

/* Release it also after a failure. */
int qkv_snapshot_read(qkv_snapshot *snapshot, const char *path, qkv_error *err);
void qkv_snapshot_release(qkv_snapshot *snapshot);

/* Is the directory as such the model that is meant where no file of it is named? */
int qkv_snapshot_is_directory(const qkv_snapshot *snapshot);
/* Is all of it there? Else a line that begins with what the user calls the model and says what is
 * missing. */
int qkv_snapshot_check_directory(const qkv_snapshot *snapshot, const char *model, qkv_error *err);

/* The path of a GGUF file in it, with all its parts' size; *size may be NULL. Fails in the same way
 * where it or a part of it is missing. The path is freed with free. */
int qkv_snapshot_check_gguf(char **path, uint64_t *size, const qkv_snapshot *snapshot,
                            const char *file, const char *model, qkv_error *err);

#endif
