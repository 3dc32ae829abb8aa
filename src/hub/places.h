/*
 * Where models that have names lie on this machine.
 *
 * Hugging Face's cache, as its tools have it:
 *
 *     CACHE/models--org--name/refs/main                 a commit
 *     CACHE/models--org--name/snapshots/COMMIT/FILE     a link to
 *     CACHE/models--org--name/blobs/DIGEST              the bytes
 *
 * qkv's own, for models that come from packages: HOME/NAME/...
 */
#ifndef QKV_HUB_PLACES_H
#define QKV_HUB_PLACES_H

#include "base/fail.h"
#include "base/text.h"
#include "qkv/hub.h"

/* HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub. Fails where the environment names no place. */
int qkv_hub_cache(qkv_text *path, qkv_error *err);
/* Does the environment name one? Where it does not, no model can have been stored. */
int qkv_hub_cache_is_known(void);
/* The folder of a repository, "org/name", in it. */
int qkv_hub_folder(qkv_text *path, const char *repository, qkv_error *err);
/* The file in which Hugging Face's tools keep the token: HF_TOKEN_PATH, else "token" in the folder
 * that "hub" is in. */
int qkv_hub_token_path(qkv_text *path, qkv_error *err);

/* QKV_CACHE/models, else XDG_CACHE_HOME/qkv/models, else ~/.cache/qkv/models. */
int qkv_own_models(qkv_text *path, qkv_error *err);
int qkv_own_models_is_known(void);

/* Where a model is, as an object and as one of a list: a qkv_model_place_info and its strings. */

struct qkv_model_place {
    qkv_model_place_info info;
};

/* Copies the strings; NULL becomes "". Release it also after a failure. */
int qkv_place_fill(qkv_model_place *place, const qkv_model_place_info *from, qkv_error *err);
void qkv_place_release(qkv_model_place *place);

#endif
