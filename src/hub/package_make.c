#include "hub/package.h"

#include "base/text.h"
#include "model/llama2c.h"

int qkv_make_stories(const char *from, const char *to, const qkv_progress *progress,
                     qkv_error *err) {
    const qkv_llama2c_facts facts = {
        .name = "stories15M", .licence = "mit", .source = "npm:" QKV_STORIES_SOURCE};
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/" QKV_STORIES_FILE, to);
    const int status = path.failed ? qkv_fail_memory(err)
                                   : qkv_llama2c_convert(from, path.data, &facts, progress, err);
    qkv_text_release(&path);
    return status;
}
