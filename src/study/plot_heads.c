/*
 * The attention that cells of a chart are about, for its page: that of every head that is drawn, for as many of the
 * first prompts of the sweep as the page has room for.
 */
#include <string.h>

#include "study/html_page.h"
#include "study/plot_numbers.h"
#include "sweep/sweep.h"

enum { MOST_NUMBERS = 1 << 20, MOST_PROMPTS = 8 }; /* of a page */

static int check_model(const qkv_plot *p, const qkv_model *model, qkv_error *err) {
    char hash[33];
    const qkv_model_info *info = qkv_model_get_info(model);
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    if (strcmp(hash, p->info->model_hash) != 0) {
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "the model is not the sweep's, which was made with %s",
                        p->info->model_path[0] ? p->info->model_path : "one of another hash");
    }
    for (size_t l = 0; l < p->layers.n; l++) {
        if (p->layers.at[l] >= info->n_layer) {
            return qkv_fail(err, QKV_ERR_FORMAT, "the sweep has a layer that its model lacks");
        }
    }
    for (size_t h = 0; h < p->heads.n; h++) {
        if (p->heads.at[h] >= info->n_head) {
            return qkv_fail(err, QKV_ERR_FORMAT, "the sweep has a head that its model lacks");
        }
    }
    return QKV_OK;
}

/* `numbers`: of the page by now, counted on. Nothing is added where they become too many. */
static int add_prompt(json_t *list, const qkv_plot *p, const html_places *places, int64_t id,
                      size_t *numbers, qkv_error *err) {
    qkv_session *session = p->options.session;
    const qkv_model *model = qkv_session_model(session);
    qkv_own_prompt prompt = {0};
    json_t *entry = NULL;
    int status = qkv_sweep_reader_prompt(p->file, id, &prompt.tokens, &prompt.n_tokens, err);
    *numbers += qkv_html_attention_count(places, &prompt, qkv_model_get_info(model)->causal);
    const int fits = *numbers <= MOST_NUMBERS;
    if (status == QKV_OK && fits) status = qkv_prompt_make_labels(&prompt, model, err);
    if (status == QKV_OK && fits) entry = qkv_html_attention_prompt(id, &prompt);
    for (size_t l = 0; l < places->n_layers && status == QKV_OK && fits; l++)
        status = qkv_html_attention_add(entry, places, l, session, &prompt, err);
    if (status == QKV_OK && fits && qkv_json_push(list, json_incref(entry)) != 0)
        status = qkv_fail_memory(err);
    json_decref(entry);
    qkv_own_prompt_release(&prompt);
    return status;
}

int qkv_plot_take_attention(json_t **out, const qkv_plot *p, const int64_t *ids, size_t n,
                            qkv_error *err) {
    const qkv_model *model = qkv_session_model(p->options.session);
    const html_places places = {.layers = p->layers.at,
                                .n_layers = p->layers.n,
                                .heads = p->heads.at,
                                .n_heads = p->heads.n};
    static const char *const names[2] = {"Before", "After"};
    size_t numbers = 0;
    int status = check_model(p, model, err);
    if (status != QKV_OK) return status;
    json_t *prompts = json_array();
    for (size_t i = 0; i < n && i < MOST_PROMPTS && status == QKV_OK && numbers <= MOST_NUMBERS;
         i++)
        status = add_prompt(prompts, p, &places, ids[i], &numbers, err);
    if (status != QKV_OK || json_array_size(prompts) == 0) return json_decref(prompts), status;
    *out = qkv_html_attention(&places, model, names, prompts);
    return *out ? QKV_OK : qkv_fail_memory(err);
}
