/* A result as a short table on standard output, or as JSON. */
#ifndef QKV_CLI_RUN_TABLE_H
#define QKV_CLI_RUN_TABLE_H

#include "cli/run_changes.h"

int cli_print_result(const cli_outcome *outcome, qkv_error *err);
/* The same as JSON: {"edits": [...], "tensors": [...], "changes": [...], "next": [...]}; NULL without
 * memory. */
json_t *cli_result_json(const cli_outcome *outcome);

/* One line on standard error for every edit that changed nothing. */
void cli_warn_unchanged(const qkv_result *result);

#endif
