/* tokenizer.json: not read yet. */
#include "model/tokenizer_json.h"

int qkv_tokenizer_json_read(struct gguf_context *meta, const char *dir, qkv_error *err) {
    (void)meta;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s/tokenizer.json: not supported", dir);
}
