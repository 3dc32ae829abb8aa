/* Bytes as ASCII: base64 with padding (RFC 4648). */
#ifndef QKV_BASE_BASE64_H
#define QKV_BASE_BASE64_H

#include "base/text.h"

void qkv_base64_append(qkv_text *text, const void *bytes, size_t n);

#endif
