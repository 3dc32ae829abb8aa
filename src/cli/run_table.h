/* A result as a short table on standard output, or as JSON. */
#ifndef QKV_CLI_RUN_TABLE_H
#define QKV_CLI_RUN_TABLE_H

#include "base/json.h"
#include "qkv/session.h"

void cli_print_result(const qkv_result *result);
/* The same as JSON: {"edits": [...], "tensors": [...]}; NULL without memory. */
json_t *cli_result_json(const qkv_result *result);

/* One line on standard error for every edit that changed nothing. */
void cli_warn_unchanged(const qkv_result *result);

#endif
