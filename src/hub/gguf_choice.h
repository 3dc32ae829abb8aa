/*
 * Which GGUF file of a repository is meant. Names are paths in the repository:
 *
 *     tiny-Q4_K_M.gguf   tiny.q8_0.gguf   BF16/tiny-BF16-00001-of-00003.gguf   UD/tiny-UD-Q2_K_XL.gguf
 *
 * A file is chosen by its path or by the quantisation in it; of a split model the first part stands
 * for all.
 */
#ifndef QKV_HUB_GGUF_CHOICE_H
#define QKV_HUB_GGUF_CHOICE_H

#include "base/text.h"

/* Is it a model that can be chosen? Not the parts of a split one after the first, nor projectors of
 * images (mmproj) and importance matrices, which are GGUF files too. */
int qkv_gguf_is_choice(const char *name);
/* Does the text of a choice name a file, and not a quantisation? */
int qkv_gguf_is_file_name(const char *text);
/* Does the name carry that quantisation? Case does not matter; "Q4_K" is not in "Q4_K_M". */
int qkv_gguf_has_quant(const char *name, const char *quant);

/* How names[i] is chosen among all n: by its quantisation, or where that says nothing by its path. */
void qkv_gguf_append_choice(qkv_text *text, const char *const *names, size_t n, size_t i);

/* The one of n names that `wanted` (NULL: nothing in particular) means, as its index. Fails where
 * none or several do, with a line that lists the choices; `model` is what the user calls the
 * repository, for messages. */
int qkv_gguf_choose(size_t *index, const char *const *names, size_t n, const char *wanted,
                    const char *model, qkv_error *err);

#endif
