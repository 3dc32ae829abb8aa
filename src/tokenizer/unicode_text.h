/*
 * What tokenisers ask of Unicode: normal forms, lower case, classes of characters.
 *
 * utf8proc has the data; nothing else in the project sees it. Malformed UTF-8 is passed through as
 * it is and never an error.
 */
#ifndef QKV_TOKENIZER_UNICODE_TEXT_H
#define QKV_TOKENIZER_UNICODE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { QKV_UNICODE_COMPOSE = 1, QKV_UNICODE_COMPATIBILITY = 2 };

/* Appends the text in the normal form that the flags name: none NFD, both NFKC. */
void qkv_unicode_normalize(qkv_text *out, const char *text, size_t length, unsigned flags);

/* Appends one code point in lower case (U+0130 becomes two). */
void qkv_unicode_append_lower(qkv_text *out, uint32_t code);
void qkv_unicode_append(qkv_text *out, uint32_t code);

int qkv_unicode_is_white(uint32_t code);
/* Cc, Cf, Co, Cs; white space that is a control character, too */
int qkv_unicode_is_control(uint32_t code);
int qkv_unicode_is_mark(uint32_t code);
int qkv_unicode_is_nonspacing(uint32_t code);
/* What words are made of: letters, marks, numbers, connectors. */
int qkv_unicode_is_word(uint32_t code);
/* Ideographs that each count as a word. */
int qkv_unicode_is_ideograph(uint32_t code);

#endif
