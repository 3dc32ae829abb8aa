/* The functions that transformers gives to templates. */
#include <cmath>

#include "chat/jinja_guard.h"
#include "chat/jinja_text.h"

namespace qkv_chat {

using jinja::func_args;
using jinja::is_val;
using jinja::mk_val;
using jinja::value;

namespace {

value range(const func_args &args) {
    args.ensure_count(1, 3);
    int64_t bounds[3] = {0, 0, 1};
    const size_t n = args.count();
    for (size_t i = 0; i < n; i++) {
        if (!is_val<jinja::value_int>(args.get_pos(i))) fail("range() wants integers");
        bounds[n == 1 ? 1 : i] = args.get_pos(i)->as_int();
    }
    const double length =
        std::ceil((static_cast<double>(bounds[1]) - static_cast<double>(bounds[0])) /
                  static_cast<double>(bounds[2]));
    if (bounds[2] == 0) fail("range() step argument must not be zero");
    if (length > 1e6) fail_limit("range() has more than 100000 items");
    const size_t items = length > 0 ? static_cast<size_t>(length) : 0;
    spend_items(items);
    auto out = mk_val<jinja::value_array>();
    for (size_t i = 0; i < items; i++)
        out->push_back(mk_val<jinja::value_int>(bounds[0] + static_cast<int64_t>(i) * bounds[2]));
    return out;
}

value make_object(const func_args &args) {
    auto out = mk_val<jinja::value_object>();
    for (const auto &argument : args.get_args()) {
        const auto *given = jinja::cast_val<jinja::value_kwarg>(argument);
        if (!given) fail(args.func_name + "() takes names and values: a=1");
        out->insert(given->key, given->val);
    }
    spend_tree(out);
    return out;
}

value format_date(const func_args &args) {
    if (!is_val<jinja::value_string>(args.get_pos(0))) fail("strftime_now() wants a format");
    const std::string format = args.get_pos(0)->val_str.str();
    char buffer[256];
    if (format.empty()) return mk_val<jinja::value_string>("");
    if (format.size() > 128 || !std::strftime(buffer, sizeof buffer, format.c_str(), &spent().date))
        fail("strftime_now(): the format is too long");
    return mk_val<jinja::value_string>(std::string(buffer));
}

[[noreturn]] value refuse(const func_args &args) {
    const std::string why = python_str(args.get_pos(0)).str();
    if (spent().failure.empty()) spent().failure = "the template refuses this conversation: " + why;
    throw jinja::raised_exception(why);
}

} // namespace

void add_functions(jinja::context &ctx) {
    static const std::pair<const char *, jinja::func_handler> table[] = {
        {"range", range},
        {"namespace", make_object},
        {"dict", make_object},
        {"strftime_now", format_date},
        {"raise_exception", refuse}};
    for (const auto &entry : table)
        ctx.set_val(entry.first, mk_val<jinja::value_func>(entry.first, entry.second));
}

} // namespace qkv_chat
