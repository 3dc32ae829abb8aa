/* The way through a parsed template, on which every node is replaced. */
#include "chat/jinja_guard.h"

#include "chat/jinja_nodes.h"

namespace qkv_chat {

namespace {

void guard(statement_ptr &node);
void guard_all(jinja::statements &nodes);

void guard_parameters(jinja::statements &parameters) {
    for (auto &parameter : parameters)
        if (auto *named = cast_stmt<jinja::keyword_argument_expression>(parameter))
            guard(named->val);
}

void guard_arguments(jinja::statements &arguments) {
    guard_parameters(arguments);
    for (auto &argument : arguments)
        if (!is_stmt<jinja::keyword_argument_expression>(argument)) guard(argument);
}

void guard_filter(statement_ptr &filter) {
    if (auto *call = cast_stmt<jinja::call_expression>(filter)) guard_arguments(call->args);
}

bool guard_statement(statement_ptr &node) {
    if (auto *s = cast_stmt<jinja::if_statement>(node)) {
        guard(s->test);
        guard_block(s->body);
        guard_block(s->alternate);
    } else if (auto *f = cast_stmt<jinja::for_statement>(node)) {
        auto *chosen = cast_stmt<jinja::select_expression>(f->iterable);
        guard(chosen ? chosen->lhs : f->iterable);
        loop_over(chosen ? chosen->lhs : f->iterable);
        if (chosen) guard(chosen->test);
        guard_block(f->body);
        guard_block(f->default_block);
    } else if (auto *a = cast_stmt<jinja::set_statement>(node)) {
        if (auto *target = cast_stmt<jinja::member_expression>(a->assignee)) guard(target->object);
        guard(a->val);
        guard_block(a->body);
        replace_with<assigned, jinja::set_statement>(node);
    } else if (auto *m = cast_stmt<jinja::macro_statement>(node)) {
        guard_parameters(m->args);
        guard_block(m->body);
    } else if (auto *c = cast_stmt<jinja::call_statement>(node)) {
        if (auto *call = cast_stmt<jinja::call_expression>(c->call)) {
            guard(call->callee);
            guard_arguments(call->args);
        }
        guard_parameters(c->caller_args);
        guard_block(c->body);
    } else if (auto *t = cast_stmt<jinja::filter_statement>(node)) {
        guard_filter(t->filter);
        guard_block(t->body);
        replace_with<filtered_block, jinja::filter_statement>(node);
    } else {
        return false;
    }
    return true;
}

void guard_member(jinja::member_expression *m) {
    guard(m->object);
    if (!m->computed) return;
    if (auto *bounds = cast_stmt<jinja::slice_expression>(m->property)) {
        guard(bounds->start_expr);
        guard(bounds->stop_expr);
        guard(bounds->step_expr);
    } else {
        guard(m->property);
    }
}

bool guard_operation(statement_ptr &node) {
    if (auto *b = cast_stmt<jinja::binary_expression>(node)) {
        guard(b->left);
        guard(b->right);
        replace_with<binary, jinja::binary_expression>(node);
    } else if (auto *f = cast_stmt<jinja::filter_expression>(node)) {
        guard(f->operand);
        guard_filter(f->filter);
        replace_with<filtered, jinja::filter_expression>(node);
    } else if (auto *t = cast_stmt<jinja::test_expression>(node)) {
        guard(t->operand);
        look_at(t->operand);
        guard_filter(t->test);
        replace_with<tested, jinja::test_expression>(node);
    } else if (auto *u = cast_stmt<jinja::unary_expression>(node)) {
        guard(u->argument);
        replace_with<negation, jinja::unary_expression>(node);
    } else if (auto *m = cast_stmt<jinja::member_expression>(node)) {
        guard_member(m);
        replace_with<member, jinja::member_expression>(node);
    } else {
        return false;
    }
    return true;
}

void guard_expression(statement_ptr &node) {
    if (is_stmt<jinja::identifier>(node)) {
        replace_with<name, jinja::identifier>(node);
    } else if (auto *c = cast_stmt<jinja::call_expression>(node)) {
        guard(c->callee);
        guard_arguments(c->args);
        replace<stepping, jinja::call_expression>(node);
    } else if (auto *t = cast_stmt<jinja::ternary_expression>(node)) {
        guard(t->condition);
        guard(t->true_expr);
        guard(t->false_expr);
        replace<stepping, jinja::ternary_expression>(node);
    } else if (auto *s = cast_stmt<jinja::select_expression>(node)) {
        guard(s->lhs);
        guard(s->test);
        replace<stepping, jinja::select_expression>(node);
    } else if (auto *a = cast_stmt<jinja::array_literal>(node)) {
        guard_all(a->val);
        replace<making, jinja::array_literal>(node);
    } else if (auto *p = cast_stmt<jinja::tuple_literal>(node)) {
        guard_all(p->val);
        replace<making, jinja::tuple_literal>(node);
    } else if (auto *o = cast_stmt<jinja::object_literal>(node)) {
        for (auto &pair : o->val) {
            guard(pair.first);
            look_at(pair.first);
            guard(pair.second);
        }
        replace<making, jinja::object_literal>(node);
    }
}

void guard(statement_ptr &node) {
    if (!node || guard_statement(node) || guard_operation(node)) return;
    guard_expression(node);
}

void guard_all(jinja::statements &nodes) {
    for (auto &node : nodes) guard(node);
}

} // namespace

void guard_block(jinja::statements &block) {
    for (auto &statement : block) {
        const size_t pos = statement->pos;
        guard(statement);
        statement = std::make_unique<written>(std::move(statement));
        statement->pos = pos;
    }
}

} // namespace qkv_chat
