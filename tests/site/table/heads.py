"""HEAD goes wrong, GET is fine."""

from __future__ import annotations

from tests.site.behaviours import PAGE, answer, hang_up, head, per_method, raw, redirect, reset, silence
from tests.site.misbehaviour import page
from tests.site.wire import Behaviour


def _only_get(on_head: Behaviour) -> Behaviour:
    return per_method(on_head, answer())


_BODY_ON_HEAD = head(200, [("Content-Type", "text/html"), ("Content-Length", str(len(PAGE)))]) + PAGE

ROWS = [
    *(
        page(f"head-{status}", f"HEAD {status}, GET 200", _only_get(answer(status)))
        for status in (400, 403, 404, 405, 500, 501, 503)
    ),
    page("head-reset", "HEAD is reset, GET 200", _only_get(reset())),
    page("head-empty", "HEAD is closed without an answer, GET 200", _only_get(hang_up())),
    page("head-hang", "HEAD is never answered, GET 200", _only_get(silence())),
    page("head-garbage", "HEAD is answered with what is not HTTP, GET 200", _only_get(raw(b"\x00\x01\x02\r\n\r\n"))),
    page("head-loop", "HEAD redirects to itself, GET 200", _only_get(redirect("/doc"))),
    page("head-body", "HEAD is answered with a body, the connection stays", raw(_BODY_ON_HEAD, "keep")),
    page("head-mime", "HEAD claims another Content-Type than GET", _only_get(answer(mime="application/x-odd"))),
    page("head-404-get-404", "HEAD and GET agree on 404", answer(404)),
    page("head-404-get-reset", "HEAD 404, GET is reset", per_method(answer(404), reset())),
]
