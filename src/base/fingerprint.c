#include "base/fingerprint.h"

#include <xxhash.h>

int qkv_fingerprint_start(qkv_fingerprint *print, qkv_error *err) {
    print->state = XXH3_createState();
    if (!print->state) return qkv_fail_memory(err);
    XXH3_128bits_reset(print->state);
    return QKV_OK;
}

void qkv_fingerprint_add(qkv_fingerprint *print, const void *bytes, size_t n) {
    XXH3_128bits_update(print->state, bytes, n);
}

void qkv_fingerprint_add_number(qkv_fingerprint *print, uint64_t number) {
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(number >> (8 * i));
    qkv_fingerprint_add(print, bytes, sizeof bytes);
}

void qkv_fingerprint_end(qkv_fingerprint *print, char out[QKV_FINGERPRINT_SIZE]) {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(print->state));
    XXH3_freeState(print->state);
    print->state = NULL;
    if (!out) return;
    for (size_t i = 0; i < sizeof bytes.digest; i++) {
        out[2 * i] = "0123456789abcdef"[bytes.digest[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[bytes.digest[i] & 15];
    }
    out[QKV_FINGERPRINT_SIZE - 1] = '\0';
}
