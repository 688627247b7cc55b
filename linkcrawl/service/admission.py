"""Who may make a call. So far: whoever reaches this machine's loopback, under one of its own names.

A page of another site can make a browser ask this machine under the site's own name, if that name's address turns to
loopback once the page is there (DNS rebinding). The browser then sends the site's name as Host, so a Host that is no
name of this machine is refused.
"""

from __future__ import annotations

import ipaddress
import re

from linkcrawl.service.problems import Problem


def is_loopback(name: str) -> bool:
    """True for localhost and for addresses of loopback, without brackets."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def refuse_foreign_host(hosts: list[str]) -> None:
    """Raise Problem unless there is one Host header, and it names this machine. The port isn't compared: a tunnel may
    have another."""
    found = (
        re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::\d*)?|([^\s:\[\],/@]+)(?::\d*)?", hosts[0]) if len(hosts) == 1 else None
    )
    if found is None or not is_loopback(found[1] or found[2]):
        raise Problem(421, "Host: not a name of this service; localhost or 127.0.0.1 would work")
