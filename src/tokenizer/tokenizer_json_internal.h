/*
 * What the files that read a tokeniser share: the parts in hand, and what has been understood of
 * them so far. Each part is read by a function of its own; tokenizer_json_write.c then writes the
 * metadata. The parts are those of tokenizer.json, or those that tokenizer_classes.c puts together
 * from older files.
 */
#ifndef QKV_TOKENIZER_TOKENIZER_JSON_INTERNAL_H
#define QKV_TOKENIZER_TOKENIZER_JSON_INTERNAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "format/json_scan.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/vocab_internal.h"

/* X(name): values of model.type */
#define QKV_JSON_MODEL_LIST(X)                                                                     \
    X(BPE)                                                                                         \
    X(Unigram)                                                                                     \
    X(WordPiece)

enum qkv_json_model {
#define QKV_JSON_MODEL_ENUM(name) QKV_JSON_##name,
    QKV_JSON_MODEL_LIST(QKV_JSON_MODEL_ENUM) QKV_JSON_N_MODELS
#undef QKV_JSON_MODEL_ENUM
};

/* Ids below the highest one that no token has. */
enum { QKV_JSON_MAX_HOLES = 4096 };

/* Strings of one's own. */
typedef struct qkv_word_list {
    char **items;
    size_t count, capacity;
} qkv_word_list;

typedef struct qkv_json_token {
    size_t start; /* in the pool */
    uint32_t length;
    int32_t type; /* enum qkv_token_type; QKV_TOKEN_UNDEFINED: no token has this id */
    float score;
    uint8_t strips_left, strips_right, normalized, single_word;
} qkv_json_token;

/* What goes before a text, or after it. */
typedef struct qkv_json_end {
    int32_t id;
    int count; /* of the tokens there */
} qkv_json_end;

typedef struct qkv_tokenizer_json {
    const char *path; /* for messages */
    qkv_json_span added, normalizer, pre, post, model;
    json_t *config;         /* tokenizer_config.json, or NULL */
    json_t *numbered;       /* tokens it adds: {"ID": {"content": TEXT, ...}, ...}, or NULL */
    int numbered_is_legacy; /* they are of added_tokens.json: tokenizer.json goes before it */
    unsigned files;         /* that were used: bits by enum qkv_tokenizer_file */
    size_t n_rows;          /* of embeddings; 0: not known */

    enum qkv_json_model kind;
    /* The model's settings. */
    qkv_json_span vocab, merges;
    qkv_json_span vocab_lines, merge_lines; /* in their place: the text of older files */
    qkv_json_span pieces;                   /* or of tokenizer.model */
    int by_score;                           /* scores say what merges, in place of a list */
    json_t *options;                        /* of the model, without vocab and merges */
    int byte_fallback, ignore_merges, fuse_unknown;
    int64_t max_characters;
    const char *continuing; /* WordPiece's mark of a token inside a word */

    qkv_json_token *tokens; /* by id */
    size_t n_tokens, capacity;
    qkv_text pool;
    qkv_word_list merge_list; /* "LEFT RIGHT" */
    int32_t unknown;          /* or QKV_NO_TOKEN */

    /* What is done to text. */
    qkv_word_list steps, patterns, behaviors;
    unsigned char *charsmap;
    size_t charsmap_size;
    int byte_level;   /* token texts spell bytes */
    int space_prefix; /* a space goes before the text */
    int joins_blanks; /* runs of spaces become one */
    int bert_words, lowercase, strip_accents;

    /* What is put around it. */
    int wraps; /* the tokens that have the roles cls and sep, without a post-processor */
    qkv_json_end first, last;
    int64_t separators; /* between two texts; 0: it does not say */
} qkv_tokenizer_json;

/* ---- tokenizer_files.c ---- */

/* Maps a file of the directory; one that is not there leaves map->data NULL. `path` gets its path. */
int qkv_tokenizer_map_file(qkv_mapping *map, qkv_text *path, const char *dir,
                           enum qkv_tokenizer_file file, qkv_error *err);
int qkv_tokenizer_map_named(qkv_mapping *map, qkv_text *path, const char *dir, const char *name,
                            qkv_error *err);

/* ---- tokenizer_json.c ---- */

int qkv_word_list_push(qkv_word_list *list, const char *word, qkv_error *err);
void qkv_word_list_release(qkv_word_list *list);

/* Where the parts of tokenizer.json are; then what they say. */
int qkv_json_find_parts(qkv_tokenizer_json *reader, const qkv_mapping *map, qkv_error *err);
int qkv_json_read_parts(qkv_tokenizer_json *reader, qkv_error *err);

/* A small value as a tree; one that is too big or malformed is an error. */
int qkv_json_tree(const qkv_tokenizer_json *reader, qkv_json_span value, const char *what,
                  json_t **tree, qkv_error *err);
/* The member "type" of a tree, "" when there is none. */
const char *qkv_json_type(const json_t *tree);
/* A member that must be a boolean where it is there. */
int qkv_json_flag(const qkv_tokenizer_json *reader, const json_t *tree, const char *what,
                  const char *key, int fallback, int *value, qkv_error *err);
int qkv_json_fail_part(const qkv_tokenizer_json *reader, const char *part, const json_t *tree,
                       qkv_error *err);

/* ---- tokenizer_json_config.c ---- */

/* tokenizer_config.json and the files that older versions wrote in its place. */
int qkv_json_read_config(qkv_tokenizer_json *reader, const char *dir, qkv_error *err);
/* The tokens that end a text, as generation_config.json says, or config.json where that is not there. No
 * id of a prompt depends on them. */
int qkv_json_write_end_tokens(struct gguf_context *meta, const char *dir, qkv_error *err);

/* ---- tokenizer_json_vocab.c ---- */
int qkv_json_read_vocab(qkv_tokenizer_json *reader, qkv_error *err);
/* Makes room for an id, of so many that there can be. */
int qkv_json_reach(qkv_tokenizer_json *reader, double id, size_t expected, qkv_error *err);
/* Sets a token whose text is the end of the pool, from `start`. */
int qkv_json_set_token(qkv_tokenizer_json *reader, size_t id, size_t start, float score,
                       qkv_error *err);
int qkv_json_read_merges(qkv_tokenizer_json *reader, qkv_error *err);
/* The id of a token by its text, or QKV_NO_TOKEN. */
int32_t qkv_json_find_token(const qkv_tokenizer_json *reader, const char *text);

/* ---- tokenizer_lines.c ---- */
int qkv_lines_read_vocab(qkv_tokenizer_json *reader, qkv_error *err);
int qkv_lines_read_merges(qkv_tokenizer_json *reader, qkv_error *err);

/* ---- tokenizer_classes.c ---- */

/* What makes a tokenizer.json of older files: the parts, as texts. */
typedef struct qkv_older_files {
    qkv_mapping maps[2];
    qkv_text path, model, normalizer, pre;
} qkv_older_files;

/* Finds the files of a tokeniser class whose tokenizer.json is known, and fills in the reader's
 * parts. reader->files stays 0 where there are none. */
int qkv_older_files_open(qkv_older_files *older, qkv_tokenizer_json *reader, const char *dir,
                         const char *architecture, qkv_error *err);
void qkv_older_files_close(qkv_older_files *older);

/* ---- tokenizer_json_added.c ---- */
int qkv_json_read_added(qkv_tokenizer_json *reader, qkv_error *err);

/* ---- tokenizer_json_normalizer.c ---- */
int qkv_json_read_normalizer(qkv_tokenizer_json *reader, qkv_error *err);

/* ---- tokenizer_json_words.c ---- */
int qkv_json_read_words(qkv_tokenizer_json *reader, qkv_error *err);

/* ---- tokenizer_json_ends.c ---- */

/* The name of a role in the configuration, "bos_token"; NULL after the last. */
const char *qkv_json_role(size_t index);
int qkv_json_read_ends(qkv_tokenizer_json *reader, qkv_error *err);
int qkv_json_write_ends(const qkv_tokenizer_json *reader, struct gguf_context *meta,
                        qkv_error *err);

/* ---- tokenizer_json_write.c ---- */
int qkv_json_write(const qkv_tokenizer_json *reader, struct gguf_context *meta, qkv_error *err);

#endif
