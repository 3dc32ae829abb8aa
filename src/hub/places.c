#include "hub/places.h"

#include <stdlib.h>

/* A variable that is empty says as little as one that is not set. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* A home directory's "~/" in a variable, as Hugging Face's tools read it. */
static void append_expanded(qkv_text *path, const char *value) {
    const char *home = variable("HOME");
    if (value[0] == '~' && (value[1] == '/' || !value[1]) && home) {
        qkv_text_puts(path, home);
        value++;
    }
    qkv_text_puts(path, value);
}

static int from(qkv_text *path, const char *value, const char *below) {
    append_expanded(path, value);
    qkv_text_puts(path, below);
    return 1;
}

static int end(qkv_text *path, int found, const char *says, qkv_error *err) {
    if (!found)
        return qkv_fail(err, QKV_ERR_IO, "no folder for models: neither HOME nor %s is set", says);
    return path->failed ? qkv_fail_memory(err) : QKV_OK;
}

/* A place in the home of Hugging Face's tools. */
static int from_hub_home(qkv_text *path, const char *below) {
    const char *value;
    int found = 0;
    if ((value = variable("HF_HOME")))
        found = from(path, value, "");
    else if ((value = variable("XDG_CACHE_HOME")))
        found = from(path, value, "/huggingface");
    else if ((value = variable("HOME")))
        found = from(path, value, "/.cache/huggingface");
    qkv_text_puts(path, below);
    return found;
}

int qkv_hub_cache(qkv_text *path, qkv_error *err) {
    const char *value;
    int found;
    if ((value = variable("HF_HUB_CACHE")) || (value = variable("HUGGINGFACE_HUB_CACHE")))
        found = from(path, value, "");
    else
        found = from_hub_home(path, "/hub");
    return end(path, found, "HF_HOME", err);
}

int qkv_hub_token_path(qkv_text *path, qkv_error *err) {
    const char *value = variable("HF_TOKEN_PATH");
    const int found = value ? from(path, value, "") : from_hub_home(path, "/token");
    return end(path, found, "HF_HOME", err);
}

int qkv_hub_folder(qkv_text *path, const char *repository, qkv_error *err) {
    int status = qkv_hub_cache(path, err);
    if (status != QKV_OK) return status;
    qkv_text_puts(path, "/models--");
    for (const char *c = repository; *c; c++)
        qkv_text_append(path, *c == '/' ? "--" : c, *c == '/' ? 2 : 1);
    return path->failed ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_own_models(qkv_text *path, qkv_error *err) {
    const char *value;
    int found = 0;
    if ((value = variable("QKV_CACHE")))
        found = from(path, value, "/models");
    else if ((value = variable("XDG_CACHE_HOME")))
        found = from(path, value, "/qkv/models");
    else if ((value = variable("HOME")))
        found = from(path, value, "/.cache/qkv/models");
    return end(path, found, "QKV_CACHE", err);
}

static int is_known(int (*place)(qkv_text *path, qkv_error *err)) {
    qkv_text path = {0};
    const int known = place(&path, NULL) != QKV_ERR_IO;
    qkv_text_release(&path);
    return known;
}

int qkv_hub_cache_is_known(void) {
    return is_known(qkv_hub_cache);
}

int qkv_own_models_is_known(void) {
    return is_known(qkv_own_models);
}
