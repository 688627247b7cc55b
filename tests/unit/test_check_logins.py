"""Login pages told by their URLs, and what must not be taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.logins import Login, leads_to_login, login_of
from linkcrawl.urls import Target, read


def target(url: str) -> Target:
    found = read(url)
    assert isinstance(found, Target)
    return found


CERTAIN = [
    "/idp/profile/SAML2/Redirect/SSO?SAMLRequest=fZ&RelayState=1",
    "/idp/profile/SAML2/Redirect/SSO;jsessionid=1?execution=e1s1",
    "/idp/profile/Shibboleth/SSO",
    "/idp/profile/oidc/authorize",
    "/Shibboleth.sso/Login?target=x",
    "/shibboleth.sso/DS",
    "/cas/login",
    "/sso/cas/login?service=x&gateway=true",
    "/idp/profile/cas/login",
    "/adfs/ls/?wa=wsignin1.0",
    "/adfs/ls?x=1",
    "/adfs/oauth2/authorize/",
    "/auth/realms/clarin/protocol/openid-connect/auth",
    "/realms/a/protocol/saml",
    "/realms/a/login-actions/authenticate",
    "/oauth2/authorize",
    "/common/oauth2/v2.0/authorize",
    "/oauth/authorize",
    "/o/any?response_type=code&client_id=x&scope=openid",
    "/any?SAMLRequest=x",
    "/any?samlrequest=",
    "/any?openid.mode=checkid_setup",
    "/ds?entityID=https%3A%2F%2Fsp&return=x",
    "/simplesaml/module.php/core/loginuserpass.php?AuthState=x",
    "/simplesaml/saml2/idp/SSOService.php",
    "/discojuice/",
    "/wayf.php",
    "/WAYF",
]
LIKELY = [
    "/login",
    "/login/",
    "/Login.aspx?ReturnUrl=%2f",
    "/wp-login.php?redirect_to=x",
    "/accounts/login/?next=/",
    "/user/login",
    "/users/sign_in",
    "/signin",
    "/Account/LogOn",
    "/login/index.php",
    "/login;jsessionid=1",
    "/xmlui/password-login",
    "/ldap-login",
    "/shibboleth-login",
    "/login/canvas?return_to=x",
    "/login/step/2?came-from=x",
]
NEITHER = [
    "/",
    "/blogin/",
    "/catalogin",
    "/loginov/papers",
    "/doc?q=login",
    "/doc?q=/cas/login",
    "/search?next=2",
    "/docs/login/howto",
    "/docs/how-to-login-with-saml",
    "/profile/saml2",
    "/broadcas/loginfo",
    "/adfs/lsx",
    "/wayfarer",
    "/any?client_id=x",
    "/any?return=x",
    "/oauth2/authorized-people",
    "/index.html",
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (path, kind)
        for kind, paths in ((Login.CERTAIN, CERTAIN), (Login.LIKELY, LIKELY), (None, NEITHER))
        for path in paths
    ],
)
def test_login_of(path: str, kind: Login | None) -> None:
    assert login_of(target("https://b.example" + path)) is kind


@pytest.mark.parametrize(
    ("host", "kind"),
    [("login.b.example", Login.LIKELY), ("idp.b.example:8443", Login.LIKELY), ("logins.b.example", None),
     ("b.login.example", None), ("192.0.2.1", None), ("[2001:db8::1]:81", None)],
)  # fmt: skip
def test_hosts_that_serve_logins(host: str, kind: Login | None) -> None:
    assert login_of(target(f"https://{host}/portal")) is kind


START, IDP, OTHER = "http://a.example/doc", "https://b.example/cas/login", "https://b.example/error"
GATE = "http://a.example/Shibboleth.sso/Login"


@pytest.mark.parametrize(
    ("urls", "status", "circling", "wall"),
    [
        ([START], 200, False, False),
        ([START], 302, True, False),
        ([IDP], 200, False, False),
        ([IDP, IDP], None, False, False),
        ([IDP, "https://c.example/login"], 200, False, False),
        ([START, IDP], 200, False, True),
        ([START, IDP], 500, False, True),
        ([START, IDP], None, False, True),
        ([START, IDP, START], 200, False, False),
        ([START, IDP, START], 403, False, False),
        ([START, IDP, START], None, False, False),
        ([START, IDP, OTHER], 500, False, True),
        ([START, IDP, OTHER], None, False, True),
        ([START, IDP, OTHER], 200, False, False),
        ([START, GATE, START], 500, False, False),
        (["https://b.example/doc", IDP, "https://b.example/doc/1"], 404, False, False),
        ([START, IDP], 302, True, True),
        ([START, IDP, START], 302, True, True),
        ([START, "http://a.example/b"], 302, True, False),
        ([START, "http://a.example/login"], 200, False, True),
        ([START, "http://a.example/login"], 403, False, True),
        ([START, "http://a.example/login"], 404, False, False),
        ([START, "http://a.example/login"], 500, False, False),
        ([START, "http://a.example/login"], None, False, False),
        ([START, "http://a.example/login", START], 404, False, False),
    ],
)
def test_leads_to_login(urls: list[str], status: int | None, circling: bool, wall: bool) -> None:
    assert leads_to_login([*map(target, urls)], status, circling=circling) is wall


@given(st.text(alphabet="/?&=.;%-_aloginCAS[]@", max_size=40))
def test_any_path_has_an_answer(path: str) -> None:
    assert login_of(target("http://a.example/" + path)) in (Login.CERTAIN, Login.LIKELY, None)
