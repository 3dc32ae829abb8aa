/*
 * Hugging Face directories that differ in one thing from those of tests/vectors. The scratch directory
 * itself is the model. Whatever fails here fails the running cmocka test.
 */
#ifndef QKV_TESTS_HF_DIRECTORY_H
#define QKV_TESTS_HF_DIRECTORY_H

#include <jansson.h>

#define VECTORS QKV_TEST_SOURCE_DIR "/vectors/"

const char *hf_directory_path(void);
/* The family's config.json, the caller's to decref. */
json_t *hf_directory_config(const char *family);
void hf_directory_write_config(const json_t *config);
/* The family's weights as they are. */
void hf_directory_link_weights(const char *family);

/* The family's weights as the language part of a larger model: every tensor's name goes through
 * `rename`, and those of `others`, a list that ends with NULL, are there too, a number each. */
void hf_directory_wrap_weights(const char *family, void (*rename)(char out[256], const char *name),
                               const char *const *others);

#endif
