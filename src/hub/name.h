/*
 * Names of models on the Hugging Face hub: org/name[@REVISION][:FILE or QUANT].
 *
 *     qwen/qwen3-0.6b            the repository at its main revision
 *     qwen/qwen3-0.6b@v1.0       a branch, a tag or a commit of it
 *     org/name-GGUF:Q4_K_M       the GGUF file of that quantisation
 *     org/name-GGUF:a/b.gguf     a file by its path in the repository
 */
#ifndef QKV_HUB_NAME_H
#define QKV_HUB_NAME_H

#include "base/fail.h"

typedef struct qkv_hub_name {
    char *repository; /* "org/name" */
    char *revision;   /* "main" where none is given */
    char *file;       /* path in the repository, or a quantisation; NULL where none is given */
} qkv_hub_name;

/* Does the text have the form of such a name? Says nothing about whether there is such a model. */
int qkv_hub_name_matches(const char *text);

int qkv_hub_name_parse(qkv_hub_name *name, const char *text, qkv_error *err);

/* The same without "org/": what the hub's first models were called ("gpt2"), and still are in
 * caches. */
int qkv_hub_plain_name_matches(const char *text);
int qkv_hub_plain_name_parse(qkv_hub_name *name, const char *text, qkv_error *err);

void qkv_hub_name_release(qkv_hub_name *name);

/* Is the text a path below a directory, without empty parts, "." and "..": fit to be written
 * where the directory is? */
int qkv_hub_path_is_safe(const char *path);

#endif
