/* Filters and methods of lists and dictionaries, and slices, as Python has them. */
#include <algorithm>
#include <cmath>
#include <utility>

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
    if (!is_val<jinja::value_array>(v)) fail(v->type() + " is not a list");
    spend_items(v->val_arr.size());
    return v->val_arr;
}

namespace {

value member_of(const value &v, const value &name) {
    value missing = mk_val<jinja::value_undefined>();
    if (v->is_undefined()) fail("an attribute of what is undefined");
    if (const auto *group = dynamic_cast<const group_t *>(v.get())) {
        if (is_val<jinja::value_string>(name)) return group->part(name->val_str.str());
    }
    if (is_val<jinja::value_object>(v) && name->is_hashable()) return v->at(name, missing);
    if (is_val<jinja::value_array>(v) && is_val<jinja::value_int>(name))
        return v->at(name->as_int(), missing);
    return missing;
}

value join_items(const value &list, const marked &by, const value &attribute) {
    marked out;
    bool first = true;
    for (value item : items_of(list)) {
        if (is_given(attribute)) item = attribute_of(item, attribute, nullptr);
        spend_bytes(by.size());
        spend_tree(item);
        if (!first) out.put(by);
        out.put(text_of(item));
        first = false;
    }
    return out.value();
}

/* What an item is compared by: its attribute, or several ('age,name'), texts without regard to their case. */
struct key_maker {
    value attribute;
    bool exact;
    value instead = nullptr; /* of an attribute that is not there */

    value operator()(const value &item) const {
        if (!is_given(attribute)) return plain(item);
        const std::string names = text_of(attribute).text;
        if (!is_val<jinja::value_string>(attribute) || names.find(',') == std::string::npos)
            return plain(attribute_of(item, attribute, instead));
        std::vector<value> keys;
        for (size_t at = 0; at <= names.size();) {
            const size_t end = std::min(names.find(',', at), names.size());
            const value name = mk_val<jinja::value_string>(names.substr(at, end - at));
            keys.push_back(plain(attribute_of(item, name, instead)));
            at = end + 1;
        }
        return list_of(std::move(keys));
    }

  private:
    value plain(const value &v) const {
        spend_tree(v);
        return exact || !is_val<jinja::value_string>(v) ? v : lower_case(text_of(v)).value();
    }
};

using keyed = std::pair<value, value>; /* an item after its key */

std::vector<keyed> with_keys(const value &list, const key_maker &key) {
    std::vector<keyed> out;
    for (const value &item : items_of(list)) out.emplace_back(key(item), item);
    return out;
}

void sort_keyed(std::vector<keyed> &items, bool backwards) {
    std::stable_sort(items.begin(), items.end(), [&](const keyed &a, const keyed &b) {
        return (backwards ? order_of(b.first, a.first) : order_of(a.first, b.first)) < 0;
    });
}

value without_keys(const std::vector<keyed> &items) {
    std::vector<value> out;
    for (const keyed &item : items) out.push_back(item.second);
    return list_of(std::move(out));
}

} // namespace

/* 'home.city', or a number; where a part is not there, `instead`, or undefined, whose parts cannot be asked for. */
value attribute_of(const value &v, const value &path, const value &instead) {
    if (!is_val<jinja::value_string>(path)) {
        const value found = member_of(v, path);
        return found->is_undefined() && instead ? instead : found;
    }
    const std::string names = path->val_str.str();
    value found = v;
    for (size_t at = 0; at <= names.size();) {
        const size_t end = std::min(names.find('.', at), names.size());
        const std::string name = names.substr(at, end - at);
        const bool is_number = !name.empty() && name.size() < 10 &&
                               name.find_first_not_of("0123456789") == std::string::npos;
        found = member_of(found, is_number ? value(mk_val<jinja::value_int>(std::stoll(name)))
                                           : value(mk_val<jinja::value_string>(name)));
        if (found->is_undefined() && instead) found = instead;
        at = end + 1;
    }
    return found;
}

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
    const bool backwards = args.get_kwarg_or_pos("reverse", 1)->as_bool();
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 2)->as_bool();
    auto items = with_keys(args.get_pos(0), {args.get_kwarg_or_pos("attribute", 3), exact});
    sort_keyed(items, backwards);
    return without_keys(items);
}

value sort_keys(const func_args &args) {
    const value from = args.get_pos(0);
    if (!is_val<jinja::value_object>(from)) fail("dictsort wants a dictionary");
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 1)->as_bool();
    const value by = args.get_kwarg_or_pos("by", 2);
    const bool backwards = args.get_kwarg_or_pos("reverse", 3)->as_bool();
    const bool by_value = is_given(by) && text_of(by).text == "value";
    const key_maker key{mk_val<jinja::value_int>(by_value ? 1 : 0), exact};
    auto pairs = with_keys(pairs_of(args), key);
    sort_keyed(pairs, backwards);
    return without_keys(pairs);
}

value unique(const func_args &args) {
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 1)->as_bool();
    const key_maker key{args.get_kwarg_or_pos("attribute", 2), exact};
    std::vector<keyed> items;
    for (const keyed &item : with_keys(args.get_pos(0), key)) {
        step(1 + items.size() / 16);
        const bool known = std::any_of(items.begin(), items.end(), [&](const keyed &other) {
            return equals(other.first, item.first);
        });
        if (!known) items.push_back(item);
    }
    return without_keys(items);
}

/* The first of those that have the largest or the smallest key. */
value extreme(const func_args &args, bool largest) {
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 1)->as_bool();
    const auto items = with_keys(args.get_pos(0), {args.get_kwarg_or_pos("attribute", 2), exact});
    if (items.empty()) return mk_val<jinja::value_undefined>();
    const keyed *found = &items[0];
    for (const keyed &item : items) {
        const int order = order_of(item.first, found->first);
        if (largest ? order > 0 : order < 0) found = &item;
    }
    return found->second;
}

value group_by(const func_args &args) {
    const value attribute = args.get_kwarg_or_pos("attribute", 1);
    const value given = args.get_kwarg_or_pos("default", 2);
    const value instead = given->is_undefined() ? nullptr : given;
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 3)->as_bool();
    auto items = with_keys(args.get_pos(0), {attribute, exact, instead});
    sort_keyed(items, false);
    std::vector<value> groups;
    for (size_t i = 0, end; i < items.size(); i = end) {
        std::vector<value> members;
        for (end = i; end < items.size() && equals(items[end].first, items[i].first); end++)
            members.push_back(items[end].second);
        const value name = attribute_of(items[i].second, attribute, instead);
        groups.push_back(std::make_shared<group_t>(name, list_of(std::move(members))));
    }
    return list_of(std::move(groups));
}

/* Rows of so many items; the last one is filled up where there is something to fill it with. */
value batch(const func_args &args) {
    const int64_t size = integer_of(args.get_kwarg_or_pos("linecount", 1), "linecount");
    const value filling = args.get_kwarg_or_pos("fill_with", 2);
    if (size < 1) fail("batch wants rows of one item at least");
    std::vector<value> rows, row;
    for (const value &item : items_of(args.get_pos(0))) {
        if (static_cast<int64_t>(row.size()) == size)
            rows.push_back(list_of(std::exchange(row, {})));
        row.push_back(item);
    }
    if (!row.empty() && is_given(filling)) {
        spend_items(static_cast<size_t>(size));
        row.resize(static_cast<size_t>(size), filling);
    }
    if (!row.empty()) rows.push_back(list_of(std::move(row)));
    return list_of(std::move(rows));
}

/* So many columns, the first ones longer by one. */
value columns(const func_args &args) {
    const int64_t slices = integer_of(args.get_kwarg_or_pos("slices", 1), "slices");
    const value filling = args.get_kwarg_or_pos("fill_with", 2);
    const auto items = items_of(args.get_pos(0));
    if (slices < 1) fail("slice wants one column at least");
    spend_items(static_cast<size_t>(slices));
    const size_t n = static_cast<size_t>(slices), each = items.size() / n,
                 longer = items.size() % n;
    std::vector<value> out;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t end = at + each + (i < longer ? 1 : 0);
        std::vector<value> column(items.begin() + static_cast<std::ptrdiff_t>(at),
                                  items.begin() + static_cast<std::ptrdiff_t>(end));
        if (is_given(filling) && i >= longer) column.push_back(filling);
        out.push_back(list_of(std::move(column)));
        at = end;
    }
    return list_of(std::move(out));
}

value sum(const func_args &args) {
    const value attribute = args.get_kwarg_or_pos("attribute", 1);
    const value start = args.get_kwarg_or_pos("start", 2);
    std::vector<value> items = items_of(args.get_pos(0));
    double total = 0;
    bool is_float = false;
    if (is_given(attribute))
        for (value &item : items) item = attribute_of(item, attribute, nullptr);
    if (is_given(start)) items.insert(items.begin(), start);
    for (const value &item : items) {
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
    const value given = args.get_kwarg("default", mk_val<jinja::value_undefined>());
    const value instead = given->is_undefined() ? nullptr : given;
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
            items.push_back(attribute_of(item, attribute, instead));
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
