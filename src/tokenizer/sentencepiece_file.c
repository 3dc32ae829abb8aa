/*
 * Protocol buffers are read field by field, in place; fields that are not asked for are passed over.
 * A message is a list of (number << 3 | wire type, value).
 */
#include "tokenizer/sentencepiece_file.h"
#include "base/json.h"

#include <string.h>

typedef struct field {
    uint32_t number;
    uint64_t value;      /* of numbers, as bits */
    qkv_json_span bytes; /* of texts and messages, else text NULL */
} field;

/* Numbers of fields in sentencepiece_model.proto. */
enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_UNK_ID = 40, TRAINER_UNK = 45, TRAINER_TYPE_BPE = 2 };
enum { NORMALIZER_CHARSMAP = 2, NORMALIZER_PREFIX = 3 };

static int take_varint(qkv_json_span *left, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && left->length > 0; shift += 7) {
        const unsigned char byte = (unsigned char)*left->text++;
        left->length--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return 1;
    }
    return 0;
}

static int take_bytes(qkv_json_span *left, uint64_t length, qkv_json_span *bytes) {
    if (length > left->length) return 0;
    *bytes = (qkv_json_span){left->text, (size_t)length};
    left->text += length;
    left->length -= (size_t)length;
    return 1;
}

/* 1 and the next field, 0 after the last, -1 when the message is malformed. */
static int next_field(qkv_json_span *left, field *f) {
    uint64_t tag, length;
    *f = (field){0};
    if (left->length == 0) return 0;
    if (!take_varint(left, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return -1;
    f->number = (uint32_t)(tag >> 3);
    switch (tag & 7) {
    case 0:
        return take_varint(left, &f->value) ? 1 : -1;
    case 2:
        return take_varint(left, &length) && take_bytes(left, length, &f->bytes) ? 1 : -1;
    case 1:
    case 5: {
        qkv_json_span number;
        if (!take_bytes(left, (tag & 7) == 1 ? 8 : 4, &number)) return -1;
        f->value = qkv_little_endian((const unsigned char *)number.text, (int)number.length);
        return 1;
    }
    default:
        return -1;
    }
}

/* ---- facts ---- */

static const struct {
    const char *role, *fallback;
} roles[] = {{"unk_token", "<unk>"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}};

enum { N_ROLES = sizeof roles / sizeof *roles };

/* A role that has no id (-1) is not a token. */
static int read_trainer(qkv_pieces_facts *facts, qkv_json_span message) {
    qkv_json_span texts[N_ROLES] = {{NULL, 0}};
    int absent[N_ROLES] = {0}, more;
    field f;
    while ((more = next_field(&message, &f)) > 0) {
        if (f.number == TRAINER_TYPE) facts->is_bpe = f.value == TRAINER_TYPE_BPE;
        if (f.number >= TRAINER_UNK_ID && f.number < TRAINER_UNK_ID + N_ROLES)
            absent[f.number - TRAINER_UNK_ID] = (int32_t)f.value < 0;
        if (f.number >= TRAINER_UNK && f.number < TRAINER_UNK + N_ROLES)
            texts[f.number - TRAINER_UNK] = f.bytes;
    }
    for (int i = 0; i < N_ROLES && more == 0; i++) {
        const char *text = texts[i].text ? texts[i].text : roles[i].fallback;
        const size_t length = texts[i].text ? texts[i].length : strlen(text);
        if (!absent[i] && qkv_json_put(facts->roles, roles[i].role, json_stringn(text, length)))
            more = -1;
    }
    return more;
}

static int read_normalizer(qkv_pieces_facts *facts, qkv_json_span message) {
    int more;
    field f;
    while ((more = next_field(&message, &f)) > 0) {
        if (f.number == NORMALIZER_CHARSMAP) facts->has_charsmap = f.bytes.length > 0;
        if (f.number == NORMALIZER_PREFIX) facts->adds_prefix = f.value != 0;
    }
    return more;
}

int qkv_pieces_read_facts(qkv_pieces_facts *facts, qkv_json_span file, qkv_error *err) {
    int more;
    field f;
    *facts = (qkv_pieces_facts){.adds_prefix = 1, .roles = json_object()};
    if (!facts->roles) return qkv_fail_memory(err);
    while ((more = next_field(&file, &f)) > 0) {
        if (f.bytes.text && f.number == MODEL_TRAINER) more = read_trainer(facts, f.bytes);
        if (f.bytes.text && f.number == MODEL_NORMALIZER) more = read_normalizer(facts, f.bytes);
        if (more < 0) break;
    }
    if (more < 0) facts->is_bpe = 0;
    return QKV_OK;
}

/* ---- pieces ---- */

static int read_piece(qkv_tokenizer_json *reader, qkv_json_span message, qkv_error *err) {
    const size_t id = reader->n_tokens, start = reader->pool.length;
    uint64_t type = QKV_TOKEN_NORMAL;
    float score = 0;
    int more;
    field f;
    while ((more = next_field(&message, &f)) > 0) {
        if (f.number == PIECE_TEXT && f.bytes.text) {
            reader->pool.length = start;
            qkv_text_append(&reader->pool, f.bytes.text, f.bytes.length);
        } else if (f.number == PIECE_SCORE) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, sizeof score);
        } else if (f.number == PIECE_TYPE) {
            type = f.value;
        }
    }
    if (more < 0 || type >= QKV_TOKEN_TYPE_COUNT || id >= INT32_MAX)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: piece %zu is malformed", reader->path, id);
    int status = qkv_json_reach(reader, (double)id, id, err);
    if (status == QKV_OK) status = qkv_json_set_token(reader, id, start, score, err);
    if (status == QKV_OK) reader->tokens[id].type = (int32_t)type;
    return status;
}

int qkv_pieces_read_vocab(qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_json_span left = reader->pieces;
    int status = QKV_OK;
    field f;
    while (status == QKV_OK && next_field(&left, &f) > 0) {
        if (f.number == MODEL_PIECE && f.bytes.text) status = read_piece(reader, f.bytes, err);
    }
    return status;
}
