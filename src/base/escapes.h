/* Texts of options in which tables' escapes can be given: \n, \t, \r, \xNN, \\. */
#ifndef QKV_BASE_ESCAPES_H
#define QKV_BASE_ESCAPES_H

#include "base/text.h"

/* Reads a text up to `between` (0: to its end), which a backslash makes an ordinary character; what is not
 * an escape stays as it is. Replaces what `out` holds. Returns where it ended. */
const char *qkv_read_escaped(qkv_text *out, const char *at, char between);

#endif
