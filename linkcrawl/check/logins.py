"""Login pages between a visitor and a resource, recognised by URLs alone.

A login is certain only where a specification or its vendor's documentation says how its URL looks. A word of
LOGIN_SEGMENTS counts only as a whole path segment: `/blogin/`, `/catalogin` and `?q=login` are not login pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from urllib.parse import parse_qsl

from linkcrawl.urls import Target

#: Paths of identity providers, and of services that send visitors to one.
_PROVIDER_PATHS = re.compile(
    r"""/(
      profile/(saml2|shibboleth|oidc)/                          # Shibboleth IdP: SAML 2.0, SAML 1, OpenID Connect
    | profile/cas/login | cas/login                             # CAS protocol 3.0, 2.1
    | shibboleth\.sso/(login|ds|wayf)                           # Shibboleth SP: starts a session, discovery
    | adfs/(ls|oauth2)                                          # Microsoft AD FS
    | realms/[^/]+/(protocol/(openid-connect|saml)|login-actions)   # Keycloak
    | (openid-connect/auth | oauth2?/(v[\d.]+/)?authorize | oidc/authorize | connect/authorize)
    | simplesaml/(saml2/idp/|module\.php/(core/(loginuserpass|as_login)|discopower|multiauth))   # SimpleSAMLphp
    | (discojuice|wayf)                                         # choice of the home organisation
    )(?:(?<=/)|(?=[/.])|$)""",
    re.VERBOSE | re.IGNORECASE,
)

#: Last path segments of ordinary login pages, without extension, `-` and `_`.
# fmt: off
LOGIN_SEGMENTS = frozenset({
    "login", "logon", "signin", "signon", "userlogin", "wplogin", "loginform", "loginpage", "loginuserpass",
    "passwordlogin", "ldaplogin", "shibbolethlogin", "oidclogin",
})
# fmt: on

#: First labels of host names that serve nothing but logins.
LOGIN_LABELS = frozenset({"login", "signin", "idp", "sso", "wayf"})

#: Query arguments that say where to go after the login, without `-`, `_` and `.`.
# fmt: off
RETURN_ARGUMENTS = frozenset({
    "next", "return", "returnto", "returnurl", "returnuri", "service", "goto", "redirect", "redirectto", "redirecturl",
    "redirecturi", "continue", "target", "camefrom", "destination", "dest", "back", "backurl", "url", "origin",
    "referer", "referrer",
})
# fmt: on


class Login(Enum):
    """How sure a URL says that a login is there: by a login protocol, or by a customary name."""

    CERTAIN = "certain"
    LIKELY = "likely"


def login_of(target: Target) -> Login | None:
    """How sure the URL is that of a login; None where nothing says so."""
    arguments = {name.lower(): value for name, value in parse_qsl(target.query, keep_blank_values=True)}
    if _PROVIDER_PATHS.search(target.path) or _is_login_request(arguments):
        return Login.CERTAIN
    segments = _segments(target.path)
    if segments and segments[-1] in LOGIN_SEGMENTS:
        return Login.LIKELY
    returns = any(re.sub(r"[-_.]", "", name) in RETURN_ARGUMENTS for name in arguments)
    if returns and not LOGIN_SEGMENTS.isdisjoint(segments):
        return Login.LIKELY
    return Login.LIKELY if target.hostname.partition(".")[0] in LOGIN_LABELS else None


def leads_to_login(targets: Sequence[Target], status: int | None, *, circling: bool) -> bool:
    """True where a chain of requests shows that its link needs a login.

    `targets`: those of the chain in order, the link's own first and the one that it ended at last. `status`: the
    last answer's, None where none came. `circling`: the chain was given up because it only redirected.

    A link that is itself a login page is judged like any other. A passing visit to an identity provider that comes
    back (a CAS gateway, passive SAML) is not a wall; an error at the provider, or going round by way of it, is. A
    page that is only *named* like a login counts where it answers like one: a `/login` that is 404 is broken.
    """
    start, end = targets[0], targets[-1]
    if (start.url == end.url and not circling) or login_of(start):
        return False
    kind = login_of(end)
    if kind is Login.CERTAIN:
        return True
    if kind is Login.LIKELY and status is not None and (200 <= status < 300 or status in (401, 403)):
        return True
    visited = {target.host for target in targets if login_of(target) is Login.CERTAIN}
    if circling:
        return bool(visited)
    failed = status is None or status >= 400
    return failed and end.host in visited - {start.host}


def _is_login_request(arguments: Mapping[str, str]) -> bool:
    """By the query alone: OAuth 2.0 and OpenID Connect (RFC 6749, 4.1.1), SAML 2.0 redirect binding, WS-Federation,
    OpenID 2.0, SAML identity provider discovery."""
    return (
        arguments.keys() >= {"client_id", "response_type"}
        or "samlrequest" in arguments
        or arguments.get("wa") == "wsignin1.0"
        or "openid.mode" in arguments
        or arguments.keys() >= {"entityid", "return"}
    )


def _segments(path: str) -> list[str]:
    """Path segments in lower case, without parameters, extension, `-` and `_`; a closing `index.php` is dropped."""
    names = [segment.partition(";")[0].partition(".")[0].lower() for segment in path.split("/")]
    words = [re.sub(r"[-_]", "", name) for name in names if name]
    return words[:-1] if words and words[-1] == "index" else words
