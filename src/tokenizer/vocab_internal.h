/*
 * What the files of the vocabulary share: the tokens as the metadata give them, and the interface
 * of a tokeniser kind.
 *
 * A kind turns a word, or a whole text where words are not cut apart, into token ids (`encode`),
 * and one token back into bytes (`decode`). Everything that kinds have in common is done for them:
 * reading and checking the metadata (vocab_metadata.c), tokens written out in the text
 * (vocab_special.c), normalising and cutting into words (normalizer.c, pretokenizer.c), BOS and EOS
 * (vocab_encode.c). A new kind is one file that defines its qkv_tokenizer, and one line in the list below.
 */
#ifndef QKV_TOKENIZER_VOCAB_INTERNAL_H
#define QKV_TOKENIZER_VOCAB_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "format/gguf_file.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/tokenizer_merge.h"
#include "tokenizer/vocab.h"

/* X(identifier): tokenizer_IDENTIFIER.c defines qkv_tokenizer_IDENTIFIER */
#define QKV_TOKENIZER_LIST(X)                                                                      \
    X(bpe)                                                                                         \
    X(spm)                                                                                         \
    X(gemma4)                                                                                      \
    X(wordpiece)                                                                                   \
    X(unigram)

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

/* Longest text in bytes; leaves room for 32-bit positions where a space becomes three bytes. */
#define QKV_VOCAB_MAX_TEXT (1u << 30)

typedef struct qkv_vocab_token {
    const char *text; /* as in the file, NUL-terminated, in qkv_vocab.pool */
    uint32_t length;
    uint8_t type;         /* enum qkv_token_type */
    uint8_t strips_left;  /* swallows the white space before it in the text */
    uint8_t strips_right; /* and the white space after it */
    uint8_t normalized;   /* looked for in the normalised text */
    uint8_t single_word;  /* counts only where no letter is beside it */
} qkv_vocab_token;

/* U+0000 in texts of the metadata, whose strings end at a NUL: the two bytes that UTF-8 forbids for
 * it, and that some use for this. */
#define QKV_VOCAB_NUL "\xc0\x80"

/* Strings to numbers: open addressing, keys are borrowed. */
typedef struct qkv_string_map {
    struct qkv_string_slot *slots;
    size_t n_slots; /* a power of two */
    size_t count;
} qkv_string_map;

/* Tokens by their bytes, sorted, to find those that a text starts with. */
typedef struct qkv_token_index {
    int32_t *ids;
    size_t count;
    uint32_t ranges[257]; /* ids[ranges[b] .. ranges[b + 1]) start with byte b */
} qkv_token_index;

/* Special tokens as they look in normalised text. */
typedef struct qkv_token_forms {
    qkv_vocab_token *tokens; /* with other texts */
    int32_t *ids;            /* of the tokens they are */
    size_t count;
    qkv_text pool;
    qkv_token_index index;
} qkv_token_forms;

typedef struct qkv_tokenizer qkv_tokenizer;

struct qkv_vocab {
    const qkv_tokenizer *kind;
    char *label;
    qkv_vocab_token *tokens;
    int32_t n_tokens;
    char *pool;                /* the bytes of all token texts */
    float *scores;             /* NULL when the file has none */
    qkv_token_index specials;  /* tokens that are looked for in the text */
    qkv_token_forms forms;     /* those that are looked for in the normalised text */
    int32_t bos, eos, unknown; /* or QKV_NO_TOKEN */
    int32_t sep;
    int32_t *ends; /* tokens that end a text */
    size_t n_ends;
    int add_bos, add_eos, add_sep, add_space_prefix;
    int32_t pair_separators; /* between two texts; 0: the file does not say */
    /* Each NULL where nothing is to be done. The file's own (keys qkv.tokenizer.*), or made by the
     * kind. */
    qkv_charsmap charsmap;
    qkv_normalizer *normalizer;
    qkv_pretokenizer *pre;
    void *state; /* the kind's own */
};

typedef struct qkv_token_list {
    int32_t *ids;
    size_t count, capacity;
} qkv_token_list;

/* What encoding one text keeps between words: the ids so far, and memory to work in. */
typedef struct qkv_encoding {
    qkv_token_list out;
    qkv_merger merger;
    qkv_text scratch;
} qkv_encoding;

struct qkv_tokenizer {
    const char *model; /* value of tokenizer.ggml.model */
    /* What holds where the metadata are silent. */
    int32_t default_bos, default_eos, default_unknown, default_sep;
    int add_bos, add_eos, add_sep, add_space_prefix;
    /* Builds vocab->state and vocab->label, and what is usual for the kind of normalizer and pre
     * where the file gave none; the tokens are there already. */
    int (*load)(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);
    void (*free_state)(void *state);
    /* Appends the tokens of a word, never empty: of what vocab->pre makes, or of all that lies
     * between two special tokens. */
    int (*encode)(const qkv_vocab *vocab, qkv_encoding *work, const char *text, size_t length,
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

/* Fills charsmap, normalizer and pre from the keys of our own, where the file has them. */
int qkv_vocab_read_pipeline(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);

/* vocab_ends.c: fills `ends`; the special tokens are known. */
int qkv_vocab_find_ends(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);

/* ---- vocab_special.c ---- */

/* Gathers the special tokens and their rules. */
/* The ids that a key lists; none where there is no such key. They belong to the file. */
int qkv_vocab_read_ids(const qkv_gguf *file, const char *key, const int32_t **ids, size_t *n,
                       qkv_error *err);
int qkv_vocab_index_specials(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err);
/* Finds out what those look like that are looked for in the normalised text, once the normaliser is
 * there. */
int qkv_vocab_form_specials(qkv_vocab *vocab, const char *path, qkv_error *err);
void qkv_token_forms_release(qkv_token_forms *forms);
/* The longest special token at the start of `text`, or QKV_NO_TOKEN, and how many bytes it takes.
 * Control and unknown tokens count only with parse_special. `normalized`: those for normalised text,
 * else the others. */
int32_t qkv_vocab_match_special(const qkv_vocab *vocab, const char *text, size_t length,
                                int parse_special, int normalized, size_t *taken);

/* ---- vocab_index.c ---- */

/* Sorts the tokens with these ids, none empty; of equal ones the first given stays. Takes nothing
 * over. */
int qkv_token_index_init(qkv_token_index *index, const qkv_vocab_token *tokens, const int32_t *ids,
                         size_t count, qkv_error *err);
void qkv_token_index_release(qkv_token_index *index);

/* The tokens that start with the bytes seen so far. */
typedef struct qkv_token_cursor {
    size_t low, high, depth;
} qkv_token_cursor;

qkv_token_cursor qkv_token_index_start(const qkv_token_index *index, char first);
/* One byte further; 0 when no token is left. */
int qkv_token_index_step(const qkv_token_index *index, const qkv_vocab_token *tokens,
                         qkv_token_cursor *cursor, char byte);
/* The token that is exactly the bytes seen so far, or QKV_NO_TOKEN. */
int32_t qkv_token_index_get(const qkv_token_index *index, const qkv_vocab_token *tokens,
                            const qkv_token_cursor *cursor);

/* ---- vocab_strings.c ---- */

/* Room for `capacity` strings. 0 when memory is short. */
int qkv_string_map_init(qkv_string_map *map, size_t capacity);
void qkv_string_map_release(qkv_string_map *map);
/* Adds a string unless it is there already; returns the value it has now. */
int32_t qkv_string_map_add(qkv_string_map *map, const char *text, size_t length, int32_t value);
/* QKV_NO_TOKEN when it is not there. */
int32_t qkv_string_map_find(const qkv_string_map *map, const char *text, size_t length);

/* ---- vocab_encode.c ---- */

int qkv_token_list_push(qkv_token_list *list, int32_t id, qkv_error *err);
/* The unknown token for text that no token covers, or an error where there is none. */
int qkv_vocab_push_unknown(const qkv_vocab *vocab, qkv_token_list *out, char byte, qkv_error *err);

#endif
