/*
 * libqkv: what a transformer attends to when its queries, keys or values are changed.
 *
 *     #include <qkv/qkv.h>
 *
 *     qkv_error err;
 *     qkv_model *model = NULL;  qkv_session *session = NULL;  qkv_plan *plan = NULL;  qkv_result
 * *result = NULL; int32_t *tokens = NULL;  size_t n = 0; const char *text = "The river runs past
 * the old mill.";
 *
 *     qkv_model_open(&model, "model.gguf", &err);
 *     qkv_tokenize(model, &tokens, &n, text, strlen(text), QKV_TOKENIZE_ADD_SPECIAL, &err);
 *     qkv_plan_new(&plan, model, tokens, n, &err);
 *     qkv_plan_add_variant(plan, "q@3.h1=scale:1e-3", NULL, &err);
 *     qkv_plan_add_capture(plan, "pattern@3", &err);
 *     qkv_session_new(&session, model, NULL, &err);
 *     qkv_session_run(session, &result, plan, &err);
 *
 * Conventions: an object returned through `T **out` is the caller's to free with its own free
 * function, which accepts NULL; *out is NULL on failure; anything returned as `const T *` is
 * borrowed. Models may be shared by threads; a session, plan or grid belongs to one thread at a
 * time. Texts and files are read and written the same under every locale of the host program:
 * the decimal sign is a point.
 */
#ifndef QKV_QKV_H
#define QKV_QKV_H

#include "qkv/bytes.h"
#include "qkv/chart.h"
#include "qkv/convert.h"
#include "qkv/error.h"
#include "qkv/figure.h"
#include "qkv/grid.h"
#include "qkv/head_choice.h"
#include "qkv/host.h"
#include "qkv/measure.h"
#include "qkv/model.h"
#include "qkv/observe.h"
#include "qkv/plan.h"
#include "qkv/progress.h"
#include "qkv/prompt.h"
#include "qkv/session.h"
#include "qkv/store.h"
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"
#include "qkv/synthetic.h"
#include "qkv/table.h"

#endif
