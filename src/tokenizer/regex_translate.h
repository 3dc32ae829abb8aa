/*
 * Patterns of tokenizer.json, which are Oniguruma's (Ruby's syntax), as PCRE2 understands them.
 *
 * White space is written as the property, as in pretokenizer_list.h, so that equal patterns become
 * equal texts. What means something else to PCRE2 and cannot be rewritten is refused.
 */
#ifndef QKV_TOKENIZER_REGEX_TRANSLATE_H
#define QKV_TOKENIZER_REGEX_TRANSLATE_H

#include "base/text.h"

/* Appends the translation. */
int qkv_regex_translate(qkv_text *out, const char *pattern, const char *path, qkv_error *err);
/* Appends a pattern that matches the text literally. */
void qkv_regex_quote(qkv_text *out, const char *text);

#endif
