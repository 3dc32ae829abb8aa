/* Filters and methods of lists and dictionaries, and slices, as Python has them. */
#include <algorithm>
#include <cmath>

#include "chat/jinja_functions.h"

namespace qkv_chat {

std::vector<value> items_of(const value &v) {
    if (is_val<jinja::value_string>(v)) return characters(v)->val_arr;
    if (v->is_undefined()) return {};
    std::vector<value> keys;
    if (is_val<jinja::value_object>(v)) {
        spend_items(v->val_obj.size());
        for (const auto &item : v->val_obj) keys.push_back(item.first);
        return keys;
    }
    if (!is_val<jinja::value_array>(v)) fail(v->type() + " is no list");
    spend_items(v->val_arr.size());
    return v->val_arr;
}

namespace {

value attribute_of(const value &v, const value &name) {
    value missing = mk_val<jinja::value_undefined>();
    if (is_val<jinja::value_object>(v) && name->is_hashable()) return v->at(name, missing);
    if (is_val<jinja::value_array>(v) && is_val<jinja::value_int>(name))
        return v->at(name->as_int(), missing);
    return missing;
}

value join_items(const value &list, const marked &by, const value &attribute) {
    marked out;
    bool first = true;
    for (value item : items_of(list)) {
        if (is_given(attribute)) item = attribute_of(item, attribute);
        spend_bytes(by.size());
        spend_tree(item);
        if (!first) out.put(by);
        out.put(text_of(item));
        first = false;
    }
    return out.value();
}

/* Numbers by size, texts by their letters: anything else, or both, has no order in Python. */
bool comes_before(const value &a, const value &b, bool exact) {
    if (a->is_numeric() && b->is_numeric()) return a->val_flt < b->val_flt;
    if (!is_val<jinja::value_string>(a) || !is_val<jinja::value_string>(b))
        fail("cannot put " + a->type() + " and " + b->type() + " in order");
    const marked left(a->val_str), right(b->val_str);
    return exact ? left.text < right.text : lower_case(left).text < lower_case(right).text;
}

} // namespace

value join_filter(const func_args &args) {
    const value by = args.get_kwarg_or_pos("d", 1);
    return join_items(args.get_pos(0), is_given(by) ? text_of(by) : marked(),
                      args.get_kwarg_or_pos("attribute", 2));
}

value join_method(const func_args &args) {
    return join_items(args.get_pos(1), text_argument(args, 0), mk_val<jinja::value_none>());
}

value length_of(const func_args &args) {
    const value v = args.get_pos(0);
    if (is_val<jinja::value_string>(v)) {
        size_t n = 0;
        const std::string text = v->val_str.str();
        spend_bytes(text.size());
        for (size_t at = 0; at < text.size(); at += character_at(text, at)) n++;
        return mk_val<jinja::value_int>(static_cast<int64_t>(n));
    }
    if (!v->is_undefined() && !is_val<jinja::value_array>(v) && !is_val<jinja::value_object>(v))
        fail(v->type() + " has no length");
    return mk_val<jinja::value_int>(static_cast<int64_t>(v->val_arr.size() + v->val_obj.size()));
}

value end_of(const func_args &args, bool last) {
    const auto items = items_of(args.get_pos(0));
    if (items.empty()) return mk_val<jinja::value_undefined>();
    return last ? items.back() : items.front();
}

value reverse(const func_args &args) {
    auto items = items_of(args.get_pos(0));
    std::reverse(items.begin(), items.end());
    if (!is_val<jinja::value_string>(args.get_pos(0))) return list_of(std::move(items));
    return join_items(list_of(std::move(items)), marked(), mk_val<jinja::value_none>());
}

value sort(const func_args &args) {
    auto items = items_of(args.get_pos(0));
    const bool backwards = args.get_kwarg_or_pos("reverse", 1)->as_bool();
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 2)->as_bool();
    const value attribute = args.get_kwarg_or_pos("attribute", 3);
    std::stable_sort(items.begin(), items.end(), [&](const value &a, const value &b) {
        const value x = is_given(attribute) ? attribute_of(a, attribute) : a;
        const value y = is_given(attribute) ? attribute_of(b, attribute) : b;
        return backwards ? comes_before(y, x, exact) : comes_before(x, y, exact);
    });
    return list_of(std::move(items));
}

value sort_keys(const func_args &args) {
    const value from = args.get_pos(0);
    if (!is_val<jinja::value_object>(from)) fail("dictsort wants a dictionary");
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 1)->as_bool();
    const value by = args.get_kwarg_or_pos("by", 2);
    const bool backwards = args.get_kwarg_or_pos("reverse", 3)->as_bool();
    const bool by_value = is_given(by) && text_of(by).text == "value";
    auto pairs = from->val_obj;
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto &a, const auto &b) {
        const value &x = by_value ? a.second : a.first, &y = by_value ? b.second : b.first;
        return backwards ? comes_before(y, x, exact) : comes_before(x, y, exact);
    });
    std::vector<value> items;
    for (const auto &pair : pairs) items.push_back(mk_val<jinja::value_tuple>(pair));
    return list_of(std::move(items));
}

value unique(const func_args &args) {
    std::vector<value> items;
    for (const value &item : items_of(args.get_pos(0))) {
        spend_tree(item);
        step(1 + items.size() / 16);
        const bool known = std::any_of(items.begin(), items.end(),
                                       [&](const value &other) { return *other == *item; });
        if (!known) items.push_back(item);
    }
    return list_of(std::move(items));
}

value sum(const func_args &args) {
    const value attribute = args.get_kwarg_or_pos("attribute", 1);
    double total = 0;
    bool is_float = false;
    for (value item : items_of(args.get_pos(0))) {
        if (is_given(attribute)) item = attribute_of(item, attribute);
        if (!item->is_numeric()) fail("sum of " + item->type());
        total += item->val_flt;
        is_float = is_float || is_val<jinja::value_float>(item);
    }
    if (is_float) return mk_val<jinja::value_float>(total);
    if (std::fabs(total) > 9e15) fail("a number is too large");
    return mk_val<jinja::value_int>(static_cast<int64_t>(total));
}

/* map('upper') and map(attribute='name', default=...). */
value map(const func_args &args) {
    const value attribute = args.get_kwarg("attribute", mk_val<jinja::value_undefined>());
    const value instead = args.get_kwarg("default", mk_val<jinja::value_undefined>());
    std::vector<value> items;
    const jinja::func_handler *filter = nullptr;
    if (!is_given(attribute)) {
        const std::string name = text_argument(args, 1).text;
        filter = find_filter(name);
        if (!filter) fail("map: there is no filter " + name);
    }
    for (const value &item : items_of(args.get_pos(0))) {
        step();
        if (!filter) {
            const value found = attribute_of(item, attribute);
            items.push_back(found->is_undefined() ? instead : found);
            continue;
        }
        func_args inner(args.ctx);
        inner.func_name = "map";
        inner.push_back(item);
        for (size_t i = 2; i < args.count(); i++) inner.push_back(args.get_args()[i]);
        items.push_back((*filter)(inner));
    }
    return list_of(std::move(items));
}

value append(const func_args &args) {
    value list = args.get_pos(0);
    auto *items = jinja::cast_val<jinja::value_array>(list);
    if (!items || list->is_immutable()) fail("append wants a list");
    check_link(list.get(), args.get_pos(1));
    spend_items(items->val_arr.size() / 16);
    items->push_back(args.get_pos(1));
    return mk_val<jinja::value_none>();
}

/* ---- slices ---- */

/* As Python clips the bounds of a slice: PySlice_AdjustIndices. */
static int64_t clip(const value &bound, int64_t length, int64_t by, bool is_start) {
    const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? length - 1 : length;
    if (!bound || !is_given(bound)) return is_start == (by > 0) ? low : high;
    int64_t at = integer_of(bound, "a slice");
    if (at < 0) at = at < -length ? low : at + length;
    return std::min(std::max(at, low), high);
}

value slice_of(const value &sequence, const value &start, const value &stop, const value &step_by) {
    const bool is_text = is_val<jinja::value_string>(sequence);
    if (!is_text && !is_val<jinja::value_array>(sequence))
        fail(sequence->type() + " has no slices");
    const int64_t by = step_by && is_given(step_by) ? integer_of(step_by, "a step") : 1;
    if (by == 0) fail("slice step cannot be zero");
    marked text;
    std::vector<size_t> starts;
    if (is_text) {
        text = marked(sequence->val_str);
        starts = boundaries(text.text);
    }
    const int64_t length =
        static_cast<int64_t>(is_text ? starts.size() - 1 : sequence->val_arr.size());
    const int64_t first = clip(start, length, by, true), end = clip(stop, length, by, false);
    marked out;
    std::vector<value> items;
    spend_items(is_text ? 0 : sequence->val_arr.size());
    for (int64_t i = first; by > 0 ? i < end : i > end;) {
        const size_t k = static_cast<size_t>(i);
        if (is_text)
            out.put(text, starts[k], starts[k + 1]);
        else
            items.push_back(sequence->val_arr[k]);
        if (by > length || by < -length) break;
        i += by;
    }
    if (is_text) return out.value();
    if (sequence->is_immutable()) return mk_val<jinja::value_tuple>(std::move(items));
    return list_of(std::move(items));
}

} // namespace qkv_chat
