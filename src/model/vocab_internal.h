/*
 * What the files of the vocabulary share: the tokens as the metadata give them, and the interface
 * of a tokeniser kind.
 *
 * A kind turns ordinary text into token ids (`encode`) and one token back into bytes (`decode`).
 * Everything that kinds have in common is done for them: reading and checking the metadata
 * (vocab_metadata.c), tokens written out in the text (vocab_special.c), BOS and EOS (vocab.c).
 * A new kind is one file that defines its qkv_tokenizer, and one line in the list below.
 */
#ifndef QKV_MODEL_VOCAB_INTERNAL_H
#define QKV_MODEL_VOCAB_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "model/gguf_file.h"
#include "model/vocab.h"

/* X(identifier): tokenizer_IDENTIFIER.c defines qkv_tokenizer_IDENTIFIER */
#define QKV_TOKENIZER_LIST(X)                                                                      \
    X(bpe)                                                                                         \
    X(spm)

/* X(name, number in tokenizer.ggml.token_type) */
#define QKV_TOKEN_TYPE_LIST(X)                                                                     \
    X(UNDEFINED, 0)                                                                                \
    X(NORMAL, 1)                                                                                   \
    X(UNKNOWN, 2)                                                                                  \
    X(CONTROL, 3)                                                                                  \
    X(USER_DEFINED, 4)                                                                             \
    X(UNUSED, 5)                                                                                   \
    X(BYTE, 6)

#define QKV_TOKEN_TYPE_ENUM(name, number) QKV_TOKEN_##name = (number),
enum qkv_token_type { QKV_TOKEN_TYPE_LIST(QKV_TOKEN_TYPE_ENUM) QKV_TOKEN_TYPE_COUNT };
#undef QKV_TOKEN_TYPE_ENUM

#define QKV_NO_TOKEN (-1)

/* Longest text in bytes; leaves room for 32-bit positions where a blank becomes three bytes. */
#define QKV_VOCAB_MAX_TEXT (1u << 30)

typedef struct qkv_vocab_token {
    const char *text; /* as in the file, NUL-terminated, in qkv_vocab.pool */
    uint32_t length;
    uint8_t type;         /* enum qkv_token_type */
    uint8_t strips_left;  /* swallows the white space before it in the text */
    uint8_t strips_right; /* and the white space behind it */
} qkv_vocab_token;

/* Strings to numbers: open addressing, keys are borrowed. */
typedef struct qkv_string_map {
    struct qkv_string_slot *slots;
    size_t n_slots; /* a power of two */
    size_t count;
} qkv_string_map;

typedef struct qkv_tokenizer qkv_tokenizer;

struct qkv_vocab {
    const qkv_tokenizer *kind;
    char *label;
    qkv_vocab_token *tokens;
    int32_t n_tokens;
    char *pool;        /* the bytes of all token texts */
    float *scores;     /* NULL when the file has none */
    int32_t *specials; /* tokens that are looked for in the text, sorted by their bytes */
    size_t n_specials;
    uint32_t special_ranges[257]; /* specials[ranges[b] .. ranges[b + 1]) start with byte b */
    int32_t bos, eos, unknown;    /* or QKV_NO_TOKEN */
    int add_bos, add_eos, add_space_prefix;
    void *state; /* the kind's own */
};

typedef struct qkv_token_list {
    int32_t *ids;
    size_t count, capacity;
} qkv_token_list;

struct qkv_tokenizer {
    const char *model; /* value of tokenizer.ggml.model */
    /* What holds where the metadata are silent. */
    int32_t default_bos, default_eos, default_unknown;
    int add_bos, add_eos, add_space_prefix;
    /* Builds vocab->state and vocab->label; the tokens are there already. */
    int (*load)(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);
    void (*free_state)(void *state);
    /* Appends the tokens of a stretch of ordinary text: all of the text, or what lies between two
     * special tokens. */
    int (*encode)(const qkv_vocab *vocab, qkv_token_list *out, const char *text, size_t length,
                  qkv_error *err);
    /* Appends the bytes of a token that is neither control nor unknown, nor names a single byte. */
    void (*decode)(const qkv_vocab_token *token, qkv_text *out);
};

#define QKV_TOKENIZER_DECLARE(id) extern const qkv_tokenizer qkv_tokenizer_##id;
QKV_TOKENIZER_LIST(QKV_TOKENIZER_DECLARE)
#undef QKV_TOKENIZER_DECLARE

/* ---- vocab_metadata.c ---- */

/* Fills tokens, scores, ids and rules of a vocabulary whose kind is set. */
int qkv_vocab_read_metadata(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);
/* An array of strings: its key id and length, or an error when it is absent or something else. */
int qkv_vocab_string_array(const qkv_gguf *file, const char *key, int64_t *id, size_t *count,
                           qkv_error *err);
/* The byte that a token text like <0x0A> stands for, or -1. */
int qkv_vocab_byte_of(const char *text, size_t length);

/* ---- vocab_special.c ---- */

/* Gathers the special tokens and their stripping rules. */
int qkv_vocab_index_specials(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);
/* The longest special token at the start of `text`, or QKV_NO_TOKEN. Control and unknown tokens
 * count only with parse_special. */
int32_t qkv_vocab_match_special(const qkv_vocab *vocab, const char *text, size_t length,
                                int parse_special);

/* ---- vocab_strings.c ---- */

/* Room for `capacity` strings. 0 when memory is short. */
int qkv_string_map_init(qkv_string_map *map, size_t capacity);
void qkv_string_map_release(qkv_string_map *map);
/* Adds a string unless it is there already; returns the value it has now. */
int32_t qkv_string_map_add(qkv_string_map *map, const char *text, size_t length, int32_t value);
/* QKV_NO_TOKEN when it is not there. */
int32_t qkv_string_map_find(const qkv_string_map *map, const char *text, size_t length);

/* ---- vocab.c ---- */

int qkv_token_list_push(qkv_token_list *list, int32_t id, qkv_error *err);

#endif
