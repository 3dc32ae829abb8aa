/* Hook names of TransformerLens: a list, and its reading. */
#include "qkv/hooks.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"

#define HOOK_ENTRY(name, site) {name, QKV_SITE_##site},
static const struct {
    const char *name;
    qkv_site site;
} hooks[] = {QKV_HOOK_LIST(HOOK_ENTRY)};
#undef HOOK_ENTRY

enum { N_HOOKS = sizeof hooks / sizeof *hooks };

const char *qkv_hook_name(size_t index, qkv_site *site) {
    if (index >= N_HOOKS) return NULL;
    if (site) *site = hooks[index].site;
    return hooks[index].name;
}

static int fail_hook(const char *hook, const char *part, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(part, strlen(part));
    if (strcmp(part, "hook_resid_mid") == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%s' is no site here: it is the sum of resid_pre and attn_out", hook);
    for (size_t i = 0; i < N_HOOKS; i++) qkv_nearest_try(&near, hooks[i].name);
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the hook '%s' has no site here%s", hook,
                    qkv_nearest_hint(&near));
}

int qkv_hook_translate(char out[QKV_HOOK_SIZE], const char *hook, qkv_error *err) {
    static const char prefix[] = "blocks.";
    QKV_NEED(err, out);
    out[0] = '\0';
    QKV_NEED(err, hook);
    const char *layer = hook + sizeof prefix - 1;
    if (strncmp(hook, prefix, sizeof prefix - 1) != 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "'%s' is not the name of a hook such as blocks.3.attn.hook_q", hook);
    size_t length = *layer == '*' ? 1 : strspn(layer, "0123456789");
    if (length == 0 || length > 9 || layer[length] != '.')
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the hook '%s' must have a layer, as in blocks.3.attn.hook_q", hook);
    const char *part = layer + length + 1;
    for (size_t i = 0; i < N_HOOKS; i++) {
        if (strcmp(part, hooks[i].name) != 0) continue;
        snprintf(out, QKV_HOOK_SIZE, "%s@%.*s", qkv_site_name(hooks[i].site), (int)length, layer);
        return QKV_OK;
    }
    return fail_hook(hook, part, err);
}
