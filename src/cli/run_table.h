/* A result as a short table on standard output. */
#ifndef QKV_CLI_RUN_TABLE_H
#define QKV_CLI_RUN_TABLE_H

#include "qkv/session.h"

void cli_print_result(const qkv_result *result);

/* One line on standard error for every edit that changed nothing. */
void cli_warn_unchanged(const qkv_result *result);

#endif
