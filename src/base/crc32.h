/* CRC-32 as ZIP and PNG have it. */
#ifndef QKV_BASE_CRC32_H
#define QKV_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes that follow others whose sum is `before`: 0 where there are none. */
uint32_t qkv_crc32(uint32_t before, const void *bytes, size_t n);

#endif
