/*
 * The nodes of a parsed template, each replaced by one that spends from the budget before it does
 * what the engine's does, and that treats values as Python would where the engine does not.
 */
#ifndef QKV_CHAT_JINJA_GUARD_H
#define QKV_CHAT_JINJA_GUARD_H

#include "chat/jinja_budget.h"

namespace qkv_chat {

/* Refuses what would take the parser too deep, before it sees the tokens: jinja_nesting.cpp. */
void check_nesting(const std::vector<jinja::token> &tokens);
/* `x is eq 3` becomes `x is eq(3)`, which the parser knows. */
void bracket_arguments(std::vector<jinja::token> &tokens);
/* All statements of a template or a block. */
void guard_block(jinja::statements &block);
/* range, namespace, strftime_now, raise_exception, dict: jinja_globals.cpp. */
void add_functions(jinja::context &context);

} // namespace qkv_chat

#endif
