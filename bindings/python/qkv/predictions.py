"""Next tokens: what the model expects behind a text, and how edits change that."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Union

import numpy as np

from ._core import Strings, check, ffi, lib, new_error, new_struct, text_of
from .edits import Edits, Variants
from .progress import shower
from .tables import Rows, html_table, make_rows

if TYPE_CHECKING:
    from .model import Model, Others

__all__ = ["Predictions"]

_TOKEN = ("token", "rank", "rank_change", "logit", "logit_change", "probability", "probability_change")
_LOSS = ("position", "token", "loss", "loss_change", "rank", "rank_change", "kl")
_KINDS = {"token": np.int32, "position": np.int32, "rank": np.int64, "rank_change": np.int64}


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

    def __init__(self, model: "Model", pointer: Any, variants: Variants, n_diff: int) -> None:
        self._model, self._pointer, self._n_diff = model, pointer, n_diff
        #: The edits of every variant, "" first.
        self.edits: list[str] = ["", *variants.texts]

    @property
    def position(self) -> int:
        """The token behind which was looked; -1 where losses were."""
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
        number = range(len(self))[variant]
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

    def __len__(self) -> int:
        return int(lib.qkv_next_n_variants(self._pointer))

    def __iter__(self) -> Iterator[Rows]:
        return (self[v] for v in range(len(self)))

    def __repr__(self) -> str:
        behind = "losses of the prompt" if self.position < 0 else f"behind token {self.position}"
        return f"<qkv.Predictions: {len(self)} variants, {behind}>"

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


def _token_ids(model: "Model", given: Sequence[Union[int, str]]) -> list[int]:
    return [model.find_token(t) if isinstance(t, str) else int(t) for t in given]


def set_others(
    options: Any, model: "Model", others: "Others", special: bool, parse_special: bool, strings: Strings
) -> None:
    """Other prompts as C takes them beside variants."""
    found = [(name, *model._ids(prompt, special, parse_special)) for name, prompt in others.sources]
    if found:
        arrays = [strings.keep(ids) for _, ids, _, _ in found]
        options.source_names = strings.array([name for name, _, _, _ in found])
        options.source_tokens = strings.keep(ffi.new("int32_t *[]", arrays))
        options.source_lengths = strings.keep(ffi.new("size_t[]", [n for _, _, n, _ in found]))
        options.n_sources = len(found)
    options.data = strings.keep(others.data(model, special, parse_special))


def predict(
    model: "Model",
    prompt: Any,
    edits: Edits,
    top: int,
    of: Sequence[Union[int, str]],
    diff: Sequence[tuple[Union[int, str], Union[int, str]]],
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
    options.variants, options.n_variants = strings.array(variants.texts), len(variants.texts)
    options.customs, options.n_customs = strings.keep(variants.structs()), len(variants.registered)
    set_others(options, model, others, special, parse_special, strings)
    if isinstance(of, (str, int)):
        of = [of]
    wanted = _token_ids(model, of)
    pairs = [t for pair in diff for t in _token_ids(model, pair)]
    options.of, options.n_of = strings.keep(ffi.new("int32_t[]", wanted)), len(wanted)
    options.diff, options.n_diff = strings.keep(ffi.new("int32_t[]", pairs)), len(pairs) // 2
    options.at, options.top, options.all = at, top, every
    out, session = ffi.new("qkv_next **"), model._session()
    with session.showing(shower(progress)):
        status = lib.qkv_next_new(out, session.pointer, ids, n, options, err)
    check(status, err, variants.registered)
    return Predictions(model, ffi.gc(out[0], lib.qkv_next_free), variants, len(pairs) // 2)
