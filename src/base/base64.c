/* Base64. See base64.h. */
#include "base/base64.h"

#include <stdint.h>

void qkv_base64_append(qkv_text *text, const void *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = bytes;
    char four[4];
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t more = n - i > 1 ? at[i + 1] : 0, last = n - i > 2 ? at[i + 2] : 0;
        const uint32_t three = (uint32_t)at[i] << 16 | more << 8 | last;
        for (int k = 0; k < 4; k++) four[k] = digits[three >> (18 - 6 * k) & 63];
        if (n - i < 3) four[3] = '=';
        if (n - i < 2) four[2] = '=';
        qkv_text_append(text, four, sizeof four);
    }
}
