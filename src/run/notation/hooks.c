/* Hook names of TransformerLens: a list, and its reading. */
#include "qkv/hooks.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "run/notation/notation.h"

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
                        "'%s' is not a site here: it is the sum of resid_pre and attn_out", hook);
    for (size_t i = 0; i < N_HOOKS; i++) {
        if (qkv_site_has_layer(hooks[i].site)) qkv_nearest_try(&near, hooks[i].name);
    }
    return qkv_fail(err, QKV_ERR_ARGUMENT, "the hook '%s' has no site here%s", hook,
                    qkv_nearest_hint(&near));
}

static const char prefix[] = "blocks.";

/* Layers are numbers, from the end where they are negative, or all of them; 0: something else. */
static size_t layer_length(const char *layer) {
    const size_t sign = *layer == '-';
    const size_t length = *layer == '*' ? 1 : strspn(layer + sign, "0123456789");
    return length >= 1 && length <= 9 && layer[sign + length] == '.' ? sign + length : 0;
}

size_t qkv_hook_read(char out[QKV_HOOK_SIZE], const char *text) {
    const int in_layer = strncmp(text, prefix, sizeof prefix - 1) == 0;
    const char *layer = in_layer ? text + sizeof prefix - 1 : text;
    const size_t length = in_layer ? layer_length(layer) : 0;
    const char *part = in_layer ? layer + length + 1 : text;
    out[0] = '\0';
    if (in_layer && length == 0) return 0;
    for (size_t i = 0; i < N_HOOKS; i++) {
        const size_t n = strlen(hooks[i].name);
        if (qkv_site_has_layer(hooks[i].site) != in_layer) continue;
        if (strncmp(part, hooks[i].name, n) != 0 || !strchr(".@[{=:", part[n])) continue;
        snprintf(out, QKV_HOOK_SIZE, "%s%s%.*s", qkv_site_name(hooks[i].site), in_layer ? "@" : "",
                 (int)length, layer);
        return (size_t)(part + n - text);
    }
    return 0;
}

int qkv_hook_translate(char out[QKV_HOOK_SIZE], const char *hook, qkv_error *err) {
    QKV_NEED(err, out);
    out[0] = '\0';
    QKV_NEED(err, hook);
    if (qkv_hook_read(out, hook) == strlen(hook) && *hook) return QKV_OK;
    out[0] = '\0';
    if (strncmp(hook, prefix, sizeof prefix - 1) != 0)
        return qkv_fail(
            err, QKV_ERR_ARGUMENT,
            "'%s' is not the name of a hook that has a site here, such as blocks.3.attn.hook_q",
            hook);
    const char *layer = hook + sizeof prefix - 1;
    const size_t length = layer_length(layer);
    if (length == 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the hook '%s' must have a layer, as in blocks.3.attn.hook_q", hook);
    return fail_hook(hook, layer + length + 1, err);
}
