"""Next tokens: what the model expects after a text, and how edits change that."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import selections
from ._core import Strings, check, ffi, lib, new_error, new_struct, text_of, wrong
from .edits import Edits, Variants
from .notices import notice_idle
from .progress import shower
from .tables import Rows, html_table, make_rows

if TYPE_CHECKING:
    from .model import Model, Others

__all__ = ["Predictions"]

_TOKEN = ("token", "rank", "rank_change", "logit", "logit_change", "probability", "probability_change")
_LOSS = ("position", "token", "loss", "loss_change", "rank", "rank_change", "kl")
_ANSWER = ("n_tokens", "log_probability", "log_probability_change", "probability", "probability_change")
_KINDS = {"n_tokens": np.int64, "token": np.int32, "position": np.int32, "rank": np.int64, "rank_change": np.int64}


class Predictions:
    """The most likely next tokens of the unedited model (0) and of every variant.

    >>> import qkv
    >>> m = qkv.open()
    >>> n = m.next("The river runs to the", edits=["z@3.h1=zero"], top=2, of=[" sea"], diff=[(" sea", " land")])
    >>> print(n)
    unedited
      1   0.064  ' river'
      2   0.055  ' north'
    z@3.h1=zero   KL 0.02362
      1   0.053  ' river'
      2   0.047  ' north'
    >>> n.of(1)["rank"].shape, len(n.diff[1])
    ((1,), 1)
    """

    def __init__(
        self, model: "Model", pointer: Any, variants: Variants, n_diff: int, answers: Sequence[str] = ()
    ) -> None:
        self._model, self._pointer, self._n_diff, self._answers = model, pointer, n_diff, answers
        #: The edits of every variant, "" first.
        self.edits: list[str] = ["", *variants.texts]

    @property
    def position(self) -> int:
        """The token after which predictions were read; -1 where losses were."""
        return int(lib.qkv_next_position(self._pointer))

    @property
    def kl(self) -> Any:
        """KL(unedited || variant) of the whole distribution, in nats, for every variant."""
        return np.array([lib.qkv_next_kl(self._pointer, v) for v in range(len(self))])

    @property
    def mean_loss(self) -> Any:
        """The mean loss of the prompt's tokens, for every variant; NaN unless `every` was set."""
        return np.array([lib.qkv_next_mean_loss(self._pointer, v) for v in range(len(self))])

    @property
    def diff(self) -> Any:
        """The differences of logits that were asked for: (variant, pair)."""
        out = ffi.new("double *")
        found = np.empty((len(self), self._n_diff))
        for v in range(len(self)):
            for i in range(self._n_diff):
                lib.qkv_next_get_diff(self._pointer, v, i, out, ffi.NULL)
                found[v, i] = out[0]
        return found

    @property
    def changed(self) -> list[dict[str, Optional[int]]]:
        """How many values each edit of each variant changed."""
        return [dict(self._edits_of(v)) for v in range(len(self))]

    def _edits_of(self, variant: int) -> Iterator[tuple[str, Optional[int]]]:
        i = 0
        while True:
            text = lib.qkv_next_edit_text(self._pointer, variant, i)
            if text == ffi.NULL:
                return
            ran = lib.qkv_next_edit_ran(self._pointer, variant, i)
            yield text_of(text), int(lib.qkv_next_edit_changed(self._pointer, variant, i)) if ran else None
            i += 1

    def _rows(self, get: Any, variant: int, struct_name: str, fields: Sequence[str]) -> Rows:
        number = range(len(self))[selections.number(variant, "a variant")]
        struct = new_struct(struct_name)
        found: list[list[Any]] = []
        while get(self._pointer, number, len(found), struct):
            found.append([getattr(struct, field) for field in fields])
        columns: dict[str, Any] = {
            field: np.array([row[i] for row in found], dtype=_KINDS.get(field, np.float64))
            for i, field in enumerate(fields)
        }
        texts = [
            self._model.token_text(int(t)) if self._model.info.tokenizer != "none" else str(t)
            for t in columns["token"]
        ]
        columns["text"] = np.array(texts, dtype=object)
        return make_rows(columns)

    def __getitem__(self, variant: int) -> Rows:
        """A variant's most likely tokens, in order; with `every`, the loss of each token of the prompt."""
        if self.position < 0:
            return self._rows(lib.qkv_next_get_loss, variant, "next_loss", _LOSS)
        return self._rows(lib.qkv_next_get, variant, "next_token", _TOKEN)

    def of(self, variant: int) -> Rows:
        """The tokens that were asked for by name, whatever their rank."""
        return self._rows(lib.qkv_next_get_of, variant, "next_token", _TOKEN)

    def answers(self, variant: int) -> Rows:
        """The answers that were asked for: the log-probability of each, of one token or more.

        >>> import qkv
        >>> n = qkv.open().next("The river runs to the", edits="z@3.h1=zero", answer=[" wide blue sea", " land"])
        >>> n.answers(0)["n_tokens"].tolist(), round(float(n.answers(0)["log_probability"][0]), 3)
        ([3, 1], -23.791)
        """
        number, struct = range(len(self))[selections.number(variant, "a variant")], new_struct("next_answer")
        found: list[list[Any]] = []
        while lib.qkv_next_get_answer(self._pointer, number, len(found), struct):
            found.append([getattr(struct, field) for field in _ANSWER])
        columns: dict[str, Any] = {
            field: np.array([row[i] for row in found], dtype=_KINDS.get(field, np.float64))
            for i, field in enumerate(_ANSWER)
        }
        columns["text"] = np.array(list(self._answers), dtype=object)
        return make_rows(columns)

    def __len__(self) -> int:
        return int(lib.qkv_next_n_variants(self._pointer))

    def __iter__(self) -> Iterator[Rows]:
        return (self[v] for v in range(len(self)))

    def __repr__(self) -> str:
        where = "losses of the prompt" if self.position < 0 else f"after token {self.position}"
        return f"<qkv.Predictions: {len(self)} variants, {where}>"

    def __str__(self) -> str:
        lines = []
        for v, rows in enumerate(self):
            kl = "" if v == 0 or self.position < 0 else f"   KL {self.kl[v]:.4g}"
            lines.append((self.edits[v] or "unedited") + kl)
            for row in rows:
                number, share = (
                    (row["position"], row["loss"]) if self.position < 0 else (row["rank"], row["probability"])
                )
                lines.append(f"{number:3d}  {share:6.3f}  {row['text']!r}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        parts = []
        for v, rows in enumerate(self):
            kl = "" if v == 0 or self.position < 0 else f", KL {self.kl[v]:.4g}"
            parts.append(f"<p><code>{html.escape(self.edits[v] or 'unedited')}</code>{kl}</p>")
            names = rows.dtype.names or ()
            parts.append(html_table(names, [row.tolist() for row in rows.view(np.ndarray)], len(rows)))
        return "".join(parts)


Token = Union[int, str]


def _is_token(given: Any) -> bool:
    return isinstance(given, str) or (hasattr(given, "__index__") and not selections.is_list(given))


def _token_id(model: "Model", given: Any) -> int:
    """Of a text also the token that it is with a space before it."""
    if isinstance(given, str):
        found = model.find_answer(given)
        return found[0] if len(found) == 1 else model.find_token(given)
    return selections.number(given, "a token")


def _tokens(model: "Model", given: Any) -> list[int]:
    """Of one token, or of several."""
    if isinstance(given, (bytes, Mapping)) or not (_is_token(given) or selections.is_list(given)):
        raise TypeError(f"of takes tokens, or their texts: [' sea', 2290], not {given!r}")
    return [_token_id(model, t) for t in ([given] if _is_token(given) else selections.ordered(given, "of"))]


def _pair_ids(model: "Model", a: Any, b: Any) -> list[int]:
    """Of two texts, a space that one of them needs is put before both."""
    if not (isinstance(a, str) and isinstance(b, str)):
        return [_token_id(model, a), _token_id(model, b)]
    found = model.find_answer_pair(a, b)
    return [ids[0] if len(ids) == 1 else model.find_token(text) for text, ids in zip((a, b), found)]


def _pairs(model: "Model", given: Any) -> list[int]:
    """Of one pair, or of several, one after the other."""
    if isinstance(given, (str, bytes, Mapping)) or not selections.is_list(given):
        raise TypeError(f"diff takes pairs of tokens: [(' sea', ' land')], not {given!r}")
    several = list(selections.ordered(given, "diff"))
    if several and all(_is_token(t) for t in several):
        several = [several]
    found: list[int] = []
    for pair in several:
        if isinstance(pair, (str, bytes, Mapping)) or not selections.is_list(pair) or len(pair) != 2:
            raise TypeError(f"diff takes pairs of tokens: [(' sea', ' land')], and {pair!r} is not a pair")
        found += _pair_ids(model, *selections.ordered(pair, "diff"))
    return found


def _answer_ids(model: "Model", given: Any) -> tuple[list[int], str]:
    """The tokens of an answer, and its text."""
    if isinstance(given, str):
        ids = model.find_answer(given)
        if len(ids) > 1:
            return ids, given
    elif isinstance(given, (bytes, Mapping)) or not selections.is_list(given):
        raise TypeError(f"answer takes texts, or lists of tokens: [' wide sea', [1819, 2161]], not {given!r}")
    else:
        ids = [selections.number(t, "a token") for t in selections.ordered(given, "answer")]
    return ids, "".join(model.token_text(t) for t in ids) if model.info.tokenizer != "none" else str(ids)


def _warn_spaces(model: "Model", prompt: Any, n: int, answers: Sequence[tuple[list[int], str]]) -> None:
    """Of answers that most likely lack a space after the prompt."""
    for ids, text in answers:
        lacks, err = ffi.new("int *"), new_error()
        tokens = ffi.new("int32_t[]", ids)
        check(lib.qkv_answer_lacks_space(model._pointer, lacks, prompt, n, tokens, len(ids), err), err)
        if lacks[0]:
            note = f"{text!r} follows the prompt without a space; with one it is written {' ' + text!r}"
            warnings.warn(note, stacklevel=4)


def set_others(
    options: Any,
    model: "Model",
    variants: Variants,
    others: "Others",
    special: bool,
    parse_special: bool,
    strings: Strings,
) -> None:
    """Other prompts as C takes them beside variants."""
    found = [(name, *model._ids(prompt, special, parse_special)) for name, prompt in others.sources]
    if found:
        arrays = [strings.keep(ids) for _, ids, _, _ in found]
        options.source_names = strings.array([name for name, _, _, _ in found])
        options.source_tokens = strings.keep(ffi.new("int32_t *[]", arrays))
        options.source_lengths = strings.keep(ffi.new("size_t[]", [n for _, _, n, _ in found]))
        options.n_sources = len(found)
    options.data = strings.keep(others.data(model, variants, special, parse_special))


def predict(
    model: "Model",
    prompt: Any,
    edits: Edits,
    top: int,
    of: Union[Token, Sequence[Token]],
    diff: Union[tuple[Token, Token], Sequence[tuple[Token, Token]]],
    answer: Any,
    at: int,
    every: bool,
    others: "Others",
    special: bool,
    parse_special: bool,
    progress: Any,
) -> Predictions:
    """See Model.next."""
    variants, strings, options, err = Variants(edits), Strings(), new_struct("next_options"), new_error()
    ids, n, _ = model._ids(prompt, special, parse_special)
    variants.check_masks(model, n)
    options.variants, options.n_variants = strings.array(variants.texts), len(variants.texts)
    options.customs, options.n_customs = strings.keep(variants.structs()), len(variants.registered)
    set_others(options, model, variants, others, special, parse_special, strings)
    wanted, pairs = _tokens(model, of), _pairs(model, diff)
    asked = [answer] if isinstance(answer, str) else list(selections.ordered(answer, "answer"))
    answers = [_answer_ids(model, a) for a in asked]
    _warn_spaces(model, ids, n, [found for a, found in zip(asked, answers) if isinstance(a, str)])
    try:
        options.of, options.n_of = strings.keep(ffi.new("int32_t[]", wanted)), len(wanted)
        options.diff, options.n_diff = strings.keep(ffi.new("int32_t[]", pairs)), len(pairs) // 2
        arrays = [strings.keep(ffi.new("int32_t[]", ids_of)) for ids_of, _ in answers]
    except OverflowError:
        raise wrong(f"token ids are 0 to {model.info.n_vocab - 1}") from None
    options.answers = strings.keep(ffi.new("int32_t *[]", arrays))
    options.answer_lengths = strings.keep(ffi.new("size_t[]", [len(ids_of) for ids_of, _ in answers]))
    options.n_answers = len(answers)
    options.at, options.top = selections.number(at, "at"), selections.number(top, "top")
    options.all = every
    out, session = ffi.new("qkv_next **"), model._session()
    with session.showing(shower(progress)) as shown:
        status = lib.qkv_next_new(out, session.pointer, ids, n, options, err)
        pointer = ffi.gc(out[0], lib.qkv_next_free)
        shown.check(status, err, variants.registered)
    found = Predictions(model, pointer, variants, len(pairs) // 2, [text for _, text in answers])
    notice_idle(found.changed, "looked at")
    return found
