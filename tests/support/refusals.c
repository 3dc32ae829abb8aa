/* Opens what must not open, and reads the answer. */
#include "support/refusals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/model.h"

const tiny_options smallest_model = {.family = "llama",
                                     .n_layer = 1,
                                     .n_embd = 16,
                                     .n_head = 2,
                                     .n_kv_head = 1,
                                     .head_dim = 8,
                                     .n_ff = 16,
                                     .n_ctx = 16,
                                     .seed = 9};

void refuse_model(const char *path, const char *word) {
    qkv_error err = {0};
    qkv_model *model = (qkv_model *)&err; /* anything but NULL */
    const int status = qkv_model_open(&model, path, &err);
    if (status == QKV_OK) fail_msg("%s was opened, it should be refused (%s)", path, word);
    assert_null(model);
    assert_int_equal(err.status, status);
    if (err.message[0] == '\0' || strchr(err.message, '\n'))
        fail_msg("not one line: '%s'", err.message);
    if (word && !strstr(err.message, word))
        fail_msg("'%s' does not mention '%s'", err.message, word);
    assert_int_equal(qkv_model_open(&model, path, NULL), status);
}

void replace_bytes(unsigned char *data, size_t size, const char *from, const char *to) {
    const size_t length = strlen(from);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(data + i, from, length) == 0) memcpy(data + i, to, length);
}
