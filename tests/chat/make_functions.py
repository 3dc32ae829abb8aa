#!/usr/bin/env python3
"""Writes functions.json: what Python's jinja2 gives for every test and filter of Jinja's manual.

    make_functions.py >functions.json       needs jinja2 (Debian: python3-jinja2)

Each line below is an expression. It is rendered as transformers does: an ImmutableSandboxedEnvironment with
trim_blocks and lstrip_blocks, and a tojson that keeps what is not ASCII. null: jinja2 refuses it.
"""
import json
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

MESSAGES = [{"role": "user", "content": "The river runs to the sea."},
            {"role": "assistant", "content": "It is 12 km long, <b>see</b> the map."},
            {"role": "user", "content": "Größe?"}]

SET = ("{%- set people = [{'name': 'Ada', 'age': 36, 'home': {'city': 'Bonn'}}, "
       "{'name': 'ben', 'age': 7, 'home': {'city': 'Rom'}}, {'name': 'Cleo', 'age': 36}] -%}"
       "{%- set d = {'b': 1, 'A': 3, 'c': 2} -%}{%- set n = [3, 1, 2, 1] -%}{%- set w = ['pear', 'Fig', 'apple', 'fig'] -%}"
       "{%- set text = 'The river runs past the old mill and on to the sea.' -%}")

EXPRESSIONS = r"""
nothing is defined
n is defined
nothing is undefined
n is not undefined
people[2].home is undefined
none is none
n is none
true is boolean
1 is boolean
true is true
1 is true
false is false
0 is false
1 is integer
true is integer
1.0 is integer
1.5 is float
1 is float
1 is number
1.5 is number
true is number
'1' is number
'a' is string
1 is string
d is mapping
n is mapping
n is iterable
d is iterable
'a' is iterable
1 is iterable
none is iterable
nothing is iterable
n is sequence
d is sequence
'a' is sequence
1 is sequence
range is callable
n is callable
n is sameas n
1 is sameas 1
none is sameas none
true is sameas true
'a' is escaped
2 is in n
9 is in n
'iver' is in text
'b' is in d
3 is eq 3
3 is equalto 3
3 is ne 4
3 is lt 4
3 is lessthan 4
3 is le 3
3 is gt 4
3 is greaterthan 2
3 is ge 3
3 is eq 3.0
'a' is eq 'a'
'a' is lt 'b'
n is eq [3, 1, 2, 1]
3 is odd
4 is odd
4 is even
-3 is odd
9 is divisibleby 3
9 is divisibleby(4)
9 is not divisibleby 3
'abc' is lower
'aBc' is lower
'123' is lower
'ABC' is upper
'ABc' is upper
'ß' is lower
'upper' is filter
'nothing' is filter
'defined' is test
'nothing' is test
n is test_of_nothing
-3 | abs
-2.5 | abs
'a' | abs
people[0] | attr('name')
n | batch(3) | list
n | batch(3, 'x') | list
n | batch(2) | map('join', '-') | join(' ')
'hELLO wORLD' | capitalize
'ab' | center(7)
'ab' | center(8) | length
'ab' | center
'größe' | center(9) | replace(' ', '.')
nothing | default('x')
'' | default('x')
'' | default('x', true)
none | default('x')
nothing | d('y')
nothing | default
d | dictsort
d | dictsort(true)
d | dictsort(false, 'value')
d | dictsort(by='value', reverse=true)
'<a href="x">&\'' | escape
'<a>' | e
'<a>' | forceescape
'<a>' | escape | forceescape
'<a>' | escape | escape
'<a>' | safe | escape
'<a>' | safe is escaped
('<a>' | safe) + '<b>'
('<a>' | safe) ~ '<b>'
'<i>' + ('<a>' | escape)
('<a>' | escape) | upper
13 | filesizeformat
1 | filesizeformat
1000 | filesizeformat
1234567 | filesizeformat
1234567 | filesizeformat(true)
1024 | filesizeformat(binary=true)
'5000' | filesizeformat
n | first
[] | first
'abc' | first
d | first
'1.5' | float
'x' | float
'x' | float(2.5)
3 | float
'1e3' | float
' 2 ' | float
none | float
'inf' | float
'%s and %s' | format('a', 'b')
'%d' | format(3)
'%5.2f|' | format(3.14159)
'%-6s|' | format('ab')
'%6s|' | format('ab')
'%03d' | format(7)
'%x %X %o' | format(255, 255, 8)
'%e' | format(12345.678)
'%g' | format(0.0001)
'%%' | format()
'%(a)s-%(b)d' | format(a='x', b=2)
'%r' | format('a')
'%+d' | format(5)
'%c' | format('a')
'%s' | format(n)
'%s' | format()
'%d' | format('a')
'%i' | format(3.9)
people | groupby('age') | map('first') | list
people | groupby('age') | map('last') | map('length') | list
people | groupby('home.city', default='-') | map('first') | list
people | groupby('name') | map('first') | list
people | groupby('name', case_sensitive=true) | map('first') | list
(people | groupby('age'))[0].grouper
(people | groupby('age'))[1].list | map(attribute='name') | list
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2)
'a\nb\n\nc' | indent(2, true)
'a\nb\n\nc' | indent(2, true, true)
'a\nb' | indent('> ')
'a\nb' | indent(width=1, first=true)
'a\n' | indent(2)
'42' | int
'42.7' | int
'x' | int
'x' | int(7)
'0x1f' | int(0, 16)
'1f' | int(0, 16)
'101' | int(base=2)
'0b11' | int(0, 2)
42.9 | int
true | int
none | int
d | items | list
nothing | items | list
n | join
n | join(', ')
w | join('-')
people | join(', ', attribute='name')
people | join('|', 'age')
'abc' | join('.')
d | join(',')
n | last
[] | last
'abc' | last
n | length
'größe' | length
d | count
1 | length
'abc' | list
d | list
n | list
range(3) | list
'ÀB' | lower
['a', 'B'] | map('upper') | list
people | map(attribute='name') | list
people | map(attribute='home.city') | list
people | map(attribute='home.city', default='?') | list
people | map(attribute='nothing', default='?') | join(',')
n | map('string') | list
['1', 'x'] | map('int', default=9) | list
[[1, 2], [3]] | map('join', '+') | list
[' a ', 'b '] | map('trim') | list
['a', 'b'] | map('replace', 'a', 'c') | list
[[1, 2], [3, 4]] | map(attribute=1) | list
[[3, 4], [1]] | map('first') | list
n | map('abs') | sum
n | map('nothing') | list
n | max
n | min
w | max
w | min
w | max(case_sensitive=true)
w | min(true)
people | max(attribute='age')
people | min(attribute='age')
people | max(attribute='name')
[] | max
[] | min
'hello' | max
[1.5, 2] | max
d | pprint
[1, 'a', none, true, 1.5] | pprint
'text' | pprint
n | reject('odd') | list
n | reject('equalto', 1) | list
[0, 1, '', 'a', none] | reject | list
w | reject('in', ['Fig', 'fig']) | list
people | rejectattr('home') | map(attribute='name') | list
people | rejectattr('home', 'defined') | map(attribute='name') | list
people | rejectattr('age', 'equalto', 36) | map(attribute='name') | list
people | rejectattr('name', 'in', ['Ada']) | map(attribute='name') | list
'Hello' | replace('l', 'L')
'Hello' | replace('l', 'L', 1)
'aaa' | replace('', '-')
123 | replace(2, 'x')
'Hello' | replace('l', '')
n | reverse | list
'abc' | reverse
'größe' | reverse
d | reverse | list
42.55 | round
42.55 | round(1)
42.45 | round(1)
2.5 | round
3.5 | round
42.55 | round(1, 'floor')
42.51 | round(1, 'ceil')
42.1 | round(method='ceil')
-42.5 | round(method='floor')
1234.5 | round(-2)
42 | round
1 | round(2)
42.5 | round(0, 'nothing')
'<b>' | safe
[0, 1, '', 'a', none] | select | list
n | select('odd') | list
n | select('gt', 1) | list
n | select('>', 1) | list
n | select('==', 1) | list
n | select('!=', 1) | list
n | select('<=', 2) | list
n | select('>=', 2) | list
n | select('<', 2) | list
n | select('divisibleby', 3) | list
n | select('in', [1, 2]) | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('string') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('number') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('mapping') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('sequence') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('iterable') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('boolean') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('none') | list
['a', 1, none, 1.5, true, [1], {'a': 1}] | select('integer') | list
n | select('nothing') | list
people | selectattr('home') | map(attribute='name') | list
people | selectattr('home', 'undefined') | map(attribute='name') | list
people | selectattr('home', 'defined') | map(attribute='name') | list
people | selectattr('nothing', 'undefined') | list | length
people | selectattr('age', 'eq', 36) | map(attribute='name') | list
people | selectattr('age', 'equalto', 36) | map(attribute='name') | list
people | selectattr('age', '==', 7) | map(attribute='name') | list
people | selectattr('age', 'gt', 7) | list | length
people[:2] | selectattr('home.city', 'equalto', 'Rom') | map(attribute='name') | first
people | selectattr('name', 'lower') | map(attribute='name') | list
people | selectattr('name', 'nothing') | list
[[1, 2], [0, 3]] | selectattr(0) | list
messages | selectattr('role', 'equalto', 'user') | list | length
messages | selectattr('tool_calls', 'undefined') | list | length
messages | rejectattr("role", "equalto", "tool") | rejectattr("role", "equalto", "tool_results") | selectattr("tool_calls", "undefined") | map(attribute="role") | list
messages | rejectattr('role', 'equalto', 'user') | map(attribute='content') | join
messages | selectattr("role", "in", ["user"]) | map(attribute="content") | list | last
(messages | selectattr('role', 'equalto', 'user') | list)[0].content
n | slice(2) | list
n | slice(3) | list
n | slice(3, 'x') | list
range(10) | slice(3) | map('list') | list
n | sort
n | sort(reverse=true)
n | sort(true)
w | sort
w | sort(case_sensitive=true)
people | sort(attribute='name') | map(attribute='name') | list
people | sort(attribute='age,name') | map(attribute='name') | list
people | sort(attribute='age', reverse=true) | map(attribute='name') | list
d | sort
['a', 1] | sort
[[2, 'b'], [1, 'c'], [1, 'a']] | sort
1 | string
1.0 | string
n | string
true | string
none | string
'<b>a</b>  <!-- x -->  b &amp; c' | striptags
'a\n  <i>b</i>' | striptags
n | sum
people | sum(attribute='age')
people | sum('age', 10)
n | sum(start=5)
[1.5, 2] | sum
[] | sum
"hello world's end foo-bar (x) x1y" | title
'ÄPFEL und birnen' | title
'  a b ' | trim
'xxaxx' | trim('x')
5 | trim
'a' | tojson
'Größe <b>&\'"' | tojson
d | tojson
people[0] | tojson(indent=2)
[1, 2.5, none, true, 'x'] | tojson
d | tojson(sort_keys=true)
{'a': [1, {'b': []}]} | tojson(indent=1)
[] | tojson(indent=2)
text | truncate(20)
text | truncate(20, true)
text | truncate(20, false, '…')
text | truncate(length=9, killwords=true, end='')
text | truncate(48)
text | truncate(45, leeway=0)
text | truncate(51, leeway=0)
'short' | truncate(9)
text | truncate
'größe und weite' | truncate(8, true, '.', 0)
['b', 'a', 'B', 'a'] | unique | list
['b', 'a', 'B', 'a'] | unique(true) | list
people | unique(attribute='age') | map(attribute='name') | list
[1, 1.0, true, 2] | unique | list
'abC' | upper
'straße' | upper
'a b/ü&?' | urlencode
{'a b': 'c&d', 'e': 1} | urlencode
[['a', 'b c'], ['d', 'e']] | urlencode
'see example.org' | wordcount
text | wordcount
text | wordwrap(20)
text | wordwrap(20, false)
'abcdefghijklmnop qrs' | wordwrap(5)
'abcdefghijklmnop qrs' | wordwrap(5, false)
'a b c d e' | wordwrap(3, wrapstring='|')
'one two\n\nthree four five' | wordwrap(9)
'well-known things' | wordwrap(6)
'well-known things' | wordwrap(6, true, '/', false)
{'class': 'x', 'id': none, 'n': 1, 'v': '<"'} | xmlattr
{'class': 'x'} | xmlattr(false)
{} | xmlattr
'a' | nothing
n[0] | abs | string ~ 'x'
(n | select('odd') | list) + [5]
messages | map(attribute='role') | unique | list
messages | map(attribute='content') | map('length') | list
messages | groupby('role') | map('first') | list
messages[1].content | striptags
messages[1].content | escape
messages[2].content | upper
messages[0].content | truncate(12)
messages[0].content | wordwrap(10) | replace('\n', '/')
messages[0].content | center(32) | length
messages[0].content | urlencode
""".strip("\n").split("\n")


def render(environment, source):
    try:
        return environment.from_string(source).render(messages=MESSAGES)
    except (jinja2.exceptions.TemplateError, TypeError, ValueError, OverflowError, AttributeError, KeyError) as error:
        print("%s: %s" % (source[len(SET):], error), file=sys.stderr)
        return None


def main():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment.filters["tojson"] = tojson
    cases = {one: render(environment, SET + "{{ " + one + " }}") for one in EXPRESSIONS}
    print(json.dumps({"messages": MESSAGES, "set": SET, "cases": cases}, ensure_ascii=False, indent=0))


main()
