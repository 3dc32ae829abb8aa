/*
 * Models that do without tensors which their family has.
 */
#ifndef QKV_TESTS_WITHOUT_TENSORS_H
#define QKV_TESTS_WITHOUT_TENSORS_H

/* A scratch copy of a GGUF model without the tensors whose names match the pattern `part` (and not `except`,
 * which may be NULL), which says by the key ARCH.KEY that it does without. */
const char *model_without(const char *path, const char *part, const char *except, const char *key);

#endif
