/*
 * libqkv: what a transformer attends to when its queries, keys or values are changed.
 *
 *     #include <qkv/qkv.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     int main(void) {
 *         const char *text = "The river runs past the old mill.";
 *         qkv_error err = {0};
 *         qkv_model *model = NULL;
 *         qkv_session *session = NULL;
 *         qkv_plan *plan = NULL;
 *         qkv_result *result = NULL;
 *         int32_t *tokens = NULL;
 *         size_t n = 0;
 *         qkv_tensor pattern = QKV_TENSOR_INIT;
 *
 *         if (qkv_model_open(&model, "model.gguf", &err) == QKV_OK &&
 *             qkv_tokenize(model, &tokens, &n, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL,
 *                          &err) == QKV_OK &&
 *             qkv_plan_new(&plan, model, tokens, n, &err) == QKV_OK &&
 *             qkv_plan_add_variant(plan, "q@3.h1=scale:1e-3", NULL, &err) == QKV_OK &&
 *             qkv_plan_add_capture(plan, "pattern@3.h1", &err) == QKV_OK &&
 *             qkv_session_new(&session, model, NULL, &err) == QKV_OK &&
 *             qkv_session_run(session, &result, plan, &err) == QKV_OK &&
 *             qkv_result_get(result, 1, QKV_SITE_PATTERN, 3, &pattern)) {
 *             printf("the last token gives the first one %.3f of its attention\n",
 *                    pattern.data[(n - 1) * n]);
 *         } else {
 *             fprintf(stderr, "%s\n", err.message);
 *         }
 *
 *         qkv_result_free(result);
 *         qkv_session_free(session);
 *         qkv_plan_free(plan);
 *         qkv_tokens_free(tokens);
 *         qkv_model_free(model);
 *         return err.status ? 1 : 0;
 *     }
 *
 * Conventions
 *
 * An object returned through `T **out` is the caller's to free with its own free function, which
 * accepts NULL; *out is NULL on failure; anything returned as `const T *` is borrowed from the
 * object that was asked. Objects keep alive what they need (a plan its model): freeing in any order
 * is safe.
 *
 * A struct that the caller allocates starts with its size and is made with its initialiser,
 * `qkv_tensor t = QKV_TENSOR_INIT;`, whether the library reads or fills it. Later versions add
 * fields at the end, so that programs and libraries of different versions understand each other.
 * Without the initialiser (from another language): all bytes 0, then size. Structs that the library hands out as
 * `const T *` grow at their end, too.
 *
 * A function that can fail returns a status and takes a qkv_error; one that looks something up
 * returns 1 or 0, or NULL past the end. Arguments are checked: NULL where there must be something,
 * or an index out of range, is QKV_ERR_ARGUMENT, or nothing found; never a crash.
 *
 * Models may be shared by threads; a session, plan or grid belongs to one thread at a time. Texts
 * and files are read and written the same under every locale of the host program: the decimal sign
 * is a point.
 *
 * Headers that open with "Unstable: may change in every version" are included only where
 * QKV_UNSTABLE is defined before this file, or by their own names.
 */
#ifndef QKV_QKV_H
#define QKV_QKV_H

#include "qkv/bytes.h"
#include "qkv/chart.h"
#include "qkv/convert.h"
#include "qkv/error.h"
#include "qkv/grid.h"
#include "qkv/head_choice.h"
#include "qkv/measure.h"
#include "qkv/model.h"
#include "qkv/plan.h"
#include "qkv/plot.h"
#include "qkv/progress.h"
#include "qkv/prompt.h"
#include "qkv/reproduce.h"
#include "qkv/session.h"
#include "qkv/store.h"
#include "qkv/store_reader.h"
#include "qkv/study.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "qkv/version.h"

#ifdef QKV_UNSTABLE
#include "qkv/chat.h"
#include "qkv/custom.h"
#include "qkv/edit_data.h"
#include "qkv/generate.h"
#include "qkv/hooks.h"
#include "qkv/host.h"
#include "qkv/hub.h"
#include "qkv/next.h"
#include "qkv/package.h"
#include "qkv/pull.h"
#include "qkv/server.h"
#include "qkv/weights.h"
#endif

#endif
