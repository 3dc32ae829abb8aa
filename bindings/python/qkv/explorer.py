"""The explorer: its live page in a notebook.

A server of the library, with threads of its own, serves the page on this machine alone; only who knows the token of
its address is answered. Pages of notebooks on this machine may show it in a frame. Browsers keep the page's cookie only
where the notebook's own address has the same host, localhost unless told otherwise: elsewhere (VS Code), open the link
in a tab.
"""
from __future__ import annotations

import html
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Optional

from . import selections
from ._core import Strings, check, ffi, lib, new_error, new_struct, text_of, wrong

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Explorer"]

# Notebooks are served by programs of this machine, at any port.
FRAME_ANCESTORS = "http://localhost:* http://127.0.0.1:*"
HOSTS = ("localhost", "127.0.0.1")


class Explorer:
    """The live page of the explorer, served as long as the object is there, or until `.stop()`.

    >>> import qkv
    >>> with qkv.open().explore("The river runs past the mill.") as page:
    ...     print(page.url.split("?")[0])
    http://localhost:...
    >>> page
    <qkv.Explorer: stopped>
    """

    def __init__(self, model: "Model", text: Optional[str], height: int, port: int, host: str) -> None:
        if host not in HOSTS:
            raise wrong(f"host is one of {', '.join(HOSTS)}, not {host!r}")
        self._height = selections.number(height, "height")
        strings, options, entry = Strings(), new_struct("server_options"), new_struct("server_model")
        name = os.path.basename(model.name) or "model"
        entry.name, entry.path = strings.one(name), strings.one(os.fsencode(model.info.path))
        entry.argument = strings.one(os.fsencode(model.name))
        entry.model, entry.file_size = model._pointer, model.info.file_size
        options.models, options.n_models = entry, 1
        if text is not None:
            options.prompt = strings.one(text)
        options.port, options.frame_ancestors = selections.number(port, "port"), strings.one(FRAME_ANCESTORS)
        options.n_threads, options.memory_budget = model._threads, model._memory
        out, err = ffi.new("qkv_server **"), new_error()
        check(lib.qkv_server_new(out, options, err), err)
        self._lock = threading.Lock()
        #: What to open in a browser, with the token.
        self.url = text_of(lib.qkv_server_url(out[0])).replace("//127.0.0.1:", f"//{host}:", 1)
        # Also at the end of the interpreter, when objects may not be collected any more.
        self._finish = weakref.finalize(self, lib.qkv_server_free, out[0])

    @property
    def running(self) -> bool:
        return bool(self._finish.alive)

    def stop(self) -> None:
        """Ends the server; the page is not answered any more."""
        with self._lock:
            self._finish()

    def __enter__(self) -> "Explorer":
        return self

    def __exit__(self, *problem: Any) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        if not self.running:
            return "<p>The explorer was stopped.</p>"
        url = html.escape(self.url)
        return (
            f'<iframe src="{url}" width="100%" height="{self._height}" style="border: 0"></iframe>'
            f'<p><a href="{url}" target="_blank">open in a tab</a></p>'
        )

    def __repr__(self) -> str:
        return f"<qkv.Explorer: {self.url.split('?')[0]}>" if self.running else "<qkv.Explorer: stopped>"
