/*
 * The nodes that a template's are replaced by. Each spends from the budget, and then does what the
 * engine's does, or what Python does where the engine differs. Part of jinja_guard.cpp.
 */
#ifndef QKV_CHAT_JINJA_NODES_H
#define QKV_CHAT_JINJA_NODES_H

#include <cmath>

#include "chat/jinja_functions.h"

namespace qkv_chat {

using jinja::cast_stmt;
using jinja::context;
using jinja::func_args;
using jinja::is_stmt;
using jinja::is_val;
using jinja::mk_val;
using jinja::statement_ptr;
using jinja::value;

/* ---- nodes that do what the engine's do, after a step ---- */

template <class Base> struct stepping : Base {
    explicit stepping(Base &&base) : Base(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        return Base::execute_impl(ctx);
    }
};

/* Lists that were just made: as deep as they may be. */
template <class Base> struct making : Base {
    explicit making(Base &&base) : Base(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        value made = Base::execute_impl(ctx);
        spend_tree(made);
        return made;
    }
};

template <template <class> class Guard, class Node> bool replace(statement_ptr &node) {
    auto *old = cast_stmt<Node>(node);
    if (!old) return false;
    auto guarded = std::make_unique<Guard<Node>>(std::move(*old));
    guarded->pos = old->pos;
    node = std::move(guarded);
    return true;
}

template <class Guard, class Node> void replace_with(statement_ptr &node) {
    auto *old = cast_stmt<Node>(node);
    auto guarded = std::make_unique<Guard>(std::move(*old));
    guarded->pos = old->pos;
    node = std::move(guarded);
}

/* ---- expressions ---- */

/* The engine copies its table of functions each time. */
struct name : jinja::identifier {
    explicit name(jinja::identifier &&base) : identifier(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        value found = ctx.get_val(val);
        return found->is_undefined() ? mk_val<jinja::value_undefined>(val) : found;
    }
};

/* An operand whose whole content is looked at. */
struct whole : jinja::expression {
    statement_ptr inner;
    explicit whole(statement_ptr &&from) : inner(std::move(from)) {
    }
    value execute_impl(context &ctx) const override {
        value found = inner->execute(ctx);
        spend_tree(found);
        return found;
    }
};

inline void look_at(statement_ptr &node) {
    const size_t pos = node->pos;
    node = std::make_unique<whole>(std::move(node));
    node->pos = pos;
}

/* What a loop goes through: the engine copies all variables for every item. */
struct looped : jinja::expression {
    statement_ptr inner;
    explicit looped(statement_ptr &&from) : inner(std::move(from)) {
    }
    value execute_impl(context &ctx) const override {
        value found = inner->execute(ctx);
        if (is_val<jinja::value_string>(found)) found = characters(found);
        /* Templates for tools go through `tools`, which is none here; transformers fails then. */
        if (found->is_none()) found = mk_val<jinja::value_array>();
        const size_t items = found->val_arr.size() + found->val_obj.size();
        spend_items(items);
        step(4 * items);
        /* Before its first round the loop copies all variables for every item, and nothing is checked
         * on the way: one copy tells how long that will take. */
        const int64_t before = time_spent();
        if (items > 8) {
            const context copy(ctx);
        }
        foresee_time((time_spent() - before) * static_cast<int64_t>(items));
        return found;
    }
};

inline void loop_over(statement_ptr &node) {
    const size_t pos = node->pos;
    node = std::make_unique<looped>(std::move(node));
    node->pos = pos;
}

inline int64_t whole_number(double number) {
    if (!(std::fabs(number) < 9e15)) fail("a number is too large");
    return static_cast<int64_t>(number);
}

struct binary : jinja::binary_expression {
    explicit binary(jinja::binary_expression &&base) : binary_expression(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        if (op.value == "and" || op.value == "or") return binary_expression::execute_impl(ctx);
        return apply(ctx, left->execute(ctx), right->execute(ctx));
    }

  private:
    struct constant : jinja::expression {
        value v;
        explicit constant(value from) : v(std::move(from)) {
        }
        value execute_impl(context &) const override {
            return v;
        }
    };

    value apply(context &ctx, const value &a, const value &b) const {
        spend_tree(a);
        spend_tree(b);
        if (op.value == "~") return joined(python_str(a), python_str(b));
        if (op.value == "+" && (is_markup(a) || is_markup(b)) && is_val<jinja::value_string>(a) &&
            is_val<jinja::value_string>(b)) {
            marked both = escaped_once(a);
            both.put(escaped_once(b));
            return std::make_shared<markup_t>(both);
        }
        if (op.value == "*" && is_val<jinja::value_string>(a) && is_val<jinja::value_int>(b))
            return repeated(a, b->as_int());
        if (op.value == "*" && is_val<jinja::value_string>(b) && is_val<jinja::value_int>(a))
            return repeated(b, a->as_int());
        if (op.value == "==" || op.value == "!=")
            return mk_val<jinja::value_bool>(equals(a, b) == (op.value == "=="));
        if (a->is_numeric() && b->is_numeric() &&
            std::string("+-*/%").find(op.value) != std::string::npos)
            return number(a, b);
        if (is_val<jinja::value_string>(a) && is_val<jinja::value_string>(b) &&
            std::string("< > <= >=").find(op.value) != std::string::npos)
            return in_order(a->val_str.str(), b->val_str.str());
        jinja::binary_expression plain(op, std::make_unique<constant>(a),
                                       std::make_unique<constant>(b));
        return plain.execute_impl(ctx);
    }

    static value joined(jinja::string a, const jinja::string &b) {
        return mk_val<jinja::value_string>(a.append(b));
    }

    static value repeated(const value &text, int64_t times) {
        jinja::string out;
        for (int64_t i = 0; i < times; i++) {
            spend_text(text->val_str);
            out.append(text->val_str);
        }
        spend_text(out);
        return mk_val<jinja::value_string>(out);
    }

    value in_order(const std::string &a, const std::string &b) const {
        const int order = a.compare(b);
        const bool met = op.value == "<"    ? order < 0
                         : op.value == ">"  ? order > 0
                         : op.value == "<=" ? order <= 0
                                            : order >= 0;
        return mk_val<jinja::value_bool>(met);
    }

    value number(const value &a, const value &b) const {
        const double x = a->val_flt, y = b->val_flt;
        const bool is_float = is_val<jinja::value_float>(a) || is_val<jinja::value_float>(b);
        if ((op.value == "/" || op.value == "%") && y == 0) fail("division by zero");
        double result = op.value == "+"   ? x + y
                        : op.value == "-" ? x - y
                        : op.value == "*" ? x * y
                        : op.value == "/" ? x / y
                                          : std::fmod(x, y);
        /* The remainder has the sign of the divisor. */
        if (op.value == "%" && result != 0 && (result < 0) != (y < 0)) result += y;
        if (is_float || op.value == "/") return mk_val<jinja::value_float>(result);
        return mk_val<jinja::value_int>(whole_number(result));
    }
};

struct negation : jinja::unary_expression {
    explicit negation(jinja::unary_expression &&base) : unary_expression(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        const value found = argument->execute(ctx);
        if (op.value == "not") return mk_val<jinja::value_bool>(!found->as_bool());
        if (!found->is_numeric()) fail("a sign before " + found->type());
        const double sign = op.value == "-" ? -1 : 1;
        if (is_val<jinja::value_float>(found))
            return mk_val<jinja::value_float>(sign * found->val_flt);
        return mk_val<jinja::value_int>(whole_number(sign * found->val_flt));
    }
};

/* The filters of jinja_text.h. */
inline value apply_filter(context &ctx, const statement_ptr &filter, const value &input) {
    func_args args(ctx);
    const auto *call = cast_stmt<jinja::call_expression>(filter);
    const auto *id = cast_stmt<jinja::identifier>(call ? call->callee : filter);
    if (!id) fail("a filter has no name");
    args.func_name = id->val;
    args.push_back(input);
    if (call)
        for (const auto &argument : call->args) args.push_back(argument->execute(ctx));
    const auto *own = find_filter(id->val);
    if (!own) fail("there is no filter '" + id->val + "' here");
    return (*own)(args);
}

struct filtered : jinja::filter_expression {
    explicit filtered(jinja::filter_expression &&base) : filter_expression(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        return apply_filter(ctx, filter, operand->execute(ctx));
    }
};

struct filtered_block : jinja::filter_statement {
    explicit filtered_block(jinja::filter_statement &&base) : filter_statement(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        auto text = mk_val<jinja::value_string>();
        for (const auto &statement : body)
            jinja::gather_string_parts_recursive(statement->execute(ctx), text);
        return apply_filter(ctx, filter, text);
    }
};

struct tested : jinja::test_expression {
    explicit tested(jinja::test_expression &&base) : test_expression(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        const auto *call = cast_stmt<jinja::call_expression>(test);
        const auto *id = cast_stmt<jinja::identifier>(call ? call->callee : test);
        if (!id) fail("a test has no name");
        func_args args(ctx);
        args.func_name = id->val;
        args.push_back(operand->execute(ctx));
        if (call)
            for (const auto &argument : call->args) args.push_back(argument->execute(ctx));
        return mk_val<jinja::value_bool>(apply_test(id->val, args) != negate);
    }
};

struct member : jinja::member_expression {
    explicit member(jinja::member_expression &&base) : member_expression(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        const value from = object->execute(ctx);
        if (!computed) return named(from);
        if (const auto *bounds = cast_stmt<jinja::slice_expression>(property)) {
            auto at = [&](const statement_ptr &bound) {
                return bound ? bound->execute(ctx) : nullptr;
            };
            return slice_of(from, at(bounds->start_expr), at(bounds->stop_expr),
                            at(bounds->step_expr));
        }
        return item(from, property->execute(ctx));
    }

  private:
    static value nothing() {
        return mk_val<jinja::value_undefined>("attribute");
    }

    static value item(value from, const value &key) {
        value missing = nothing();
        if (is_val<jinja::value_object>(from)) {
            spend_tree(key);
            return key->is_hashable() ? from->at(key, missing) : missing;
        }
        if (is_val<jinja::value_array>(from) && is_val<jinja::value_int>(key))
            return from->at(key->as_int(), missing);
        if (is_val<jinja::value_string>(from) && is_val<jinja::value_int>(key))
            return string_item(from, key->as_int());
        return is_val<jinja::value_string>(key) ? method(from, key->val_str.str()) : missing;
    }

    value named(value from) const {
        if (const auto *number = cast_stmt<jinja::integer_literal>(property))
            return item(from, mk_val<jinja::value_int>(number->val));
        const auto *id = cast_stmt<jinja::identifier>(property);
        if (!id) fail("an attribute has no name");
        if (const auto *group = dynamic_cast<const group_t *>(from.get()))
            return group->part(id->val);
        value found = method(from, id->val);
        if (!found->is_undefined() || !is_val<jinja::value_object>(from)) return found;
        return from->at(id->val, found);
    }

    /* Methods of dictionaries go before their keys, as in Jinja. */
    static value method(const value &from, const std::string &name) {
        static const char *const of_objects[] = {"get", "items", "keys", "values"};
        const jinja::func_handler *found = nullptr;
        if (is_val<jinja::value_string>(from))
            found = find_string_method(name);
        else if (is_val<jinja::value_array>(from))
            found = find_list_method(name);
        else if (is_val<jinja::value_object>(from) &&
                 std::find(std::begin(of_objects), std::end(of_objects), name) !=
                     std::end(of_objects)) {
            const auto &table = from->get_builtins();
            const auto entry = table.find(name);
            if (entry != table.end()) found = &entry->second;
        }
        return found ? value(mk_val<jinja::value_func>(name, *found, from)) : nothing();
    }
};

/* ---- statements ---- */

/* ns.name = value: not into itself, or nothing could free it. */
struct assigned : jinja::set_statement {
    explicit assigned(jinja::set_statement &&base) : set_statement(std::move(base)) {
    }
    value execute_impl(context &ctx) const override {
        step();
        value done = set_statement::execute_impl(ctx);
        const auto *target = cast_stmt<jinja::member_expression>(assignee);
        const auto *id = target ? cast_stmt<jinja::identifier>(target->property) : nullptr;
        if (!id) return done;
        value object = target->object->execute(ctx), none = mk_val<jinja::value_none>();
        try {
            check_link(object.get(), object->at(id->val, none));
        } catch (...) {
            object->insert(mk_val<jinja::value_string>(id->val), none);
            throw;
        }
        return done;
    }
};

/* What stands in a template or a block: an expression is written as Python's str() does. */
struct written : jinja::statement {
    statement_ptr inner;
    explicit written(statement_ptr &&from) : inner(std::move(from)) {
    }
    std::string type() const override {
        return inner->type();
    }
    value execute_impl(context &ctx) const override {
        step();
        value found = inner->execute(ctx);
        if (!is_val<jinja::value_string>(found) && is_stmt<jinja::expression>(inner))
            found = mk_val<jinja::value_string>(python_str(found));
        if (is_val<jinja::value_string>(found)) spend_text(found->val_str);
        return found;
    }
};

} // namespace qkv_chat

#endif
