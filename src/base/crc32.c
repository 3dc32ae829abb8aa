#include "base/crc32.h"

/* Made for every call: that takes a few microseconds, and nothing is shared by threads. */
static void make_table(uint32_t table[256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? value >> 1 ^ UINT32_C(0xedb88320) : value >> 1;
        table[i] = value;
    }
}

uint32_t qkv_crc32(uint32_t before, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    uint32_t table[256], sum = ~before;
    make_table(table);
    for (size_t i = 0; i < n; i++) sum = table[(sum ^ at[i]) & 0xff] ^ sum >> 8;
    return ~sum;
}
