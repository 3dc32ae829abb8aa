/*
 * What the fuzzers share.
 *
 * Each fuzz_NAME.c defines LLVMFuzzerTestOneInput. libFuzzer drives it with inputs of its own
 * making; replay.c drives it with the files of corpus/NAME, which is the test fuzz_NAME_corpus.
 * A broken promise aborts, so that both notice.
 */
#ifndef QKV_TESTS_FUZZ_HARNESS_H
#define QKV_TESTS_FUZZ_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The path of a file in memory with these bytes. There is one such file: the next call replaces
 * it. */
const char *fuzz_file(const void *data, size_t size);

/* A directory in TMPDIR (else /tmp), and files in it: written anew, or removed where data is NULL.
 * libFuzzer ends its process without a chance to remove it, so scripts/fuzz.sh gives a TMPDIR that
 * it removes. */
const char *fuzz_directory(void);
void fuzz_put(const char *name, const void *data, size_t size);

/* Between the two, no more than a small multiple of the input's `size` may be in use, beside what
 * opening takes whatever the input. Measured in libFuzzer's builds only. */
enum {
    FUZZ_TABLES = 64, /* an empty token is 8 bytes of a file and some hundred in tables */
    FUZZ_JSON = 256   /* an empty object is 3 bytes of a text and two hundred as an object */
};
void fuzz_watch_memory(size_t size, size_t multiple);
void fuzz_check_memory(void);

/* Success comes with an object, failure without one and with one line that says why. */
void fuzz_check_status(int status, const void *object, const qkv_error *err);

/* Everything that can be asked of a model once it is open: facts, text to tokens and back, and one
 * small run with an edit. */
void fuzz_use_model(const qkv_model *model);
/* Of these, what needs nothing but a vocabulary. */
void fuzz_use_text(const qkv_model *model, const char *text, size_t length);
void fuzz_show_tokens(const qkv_model *model);
/* Both with the vocabulary of metadata, which may be refused. */
struct gguf_context;
void fuzz_use_vocab(const struct gguf_context *meta, const char *text, size_t length);

#define FUZZ_REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *condition, const char *file, int line);

#endif
