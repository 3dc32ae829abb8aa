/*
 * Python's strings for templates: the methods and filters that transformers' Jinja has, on texts
 * that remember which of their pieces came from the conversation.
 *
 * The engine has most of them too. These count characters and not bytes, split and strip as Python
 * does, keep the marks of every piece, and are bounded by the budget (jinja_budget.h).
 */
#ifndef QKV_CHAT_JINJA_TEXT_H
#define QKV_CHAT_JINJA_TEXT_H

#include "chat/jinja_budget.h"

namespace qkv_chat {

/* What str() and repr() of Python give. */
jinja::string python_str(const jinja::value &value);

/* NULL when there is none of this name. */
const jinja::func_handler *find_filter(const std::string &name);
const jinja::func_handler *find_string_method(const std::string &name);
const jinja::func_handler *find_list_method(const std::string &name);

/* text[index] and text[start:stop:step]; a bound that was left out is NULL. */
jinja::value string_item(const jinja::value &text, int64_t index);
jinja::value slice_of(const jinja::value &sequence, const jinja::value &start,
                      const jinja::value &stop, const jinja::value &step);
/* The characters of a text, one by one, for loops. */
jinja::value characters(const jinja::value &text);

} // namespace qkv_chat

#endif
