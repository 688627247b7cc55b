"""Walls: every sign of every product is recognised, and what only looks like one is not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from check_kit import GOOD, HOST, OK, OPEN, Case, answer, assert_finding, play
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Outcome
from linkcrawl.check.walls import (
    BODY_LIMIT,
    UNNAMED,
    WALLS,
    Wall,
    shows,
    wall_of_answer,
    wall_of_page,
    wall_of_redirect,
)
from linkcrawl.urls import Target, join

JWT = "eyJhbGciOiJFZERTQSJ9.e30.c2ln"
UUID = "0197f3b2-7c41-7000-8000-000000000001"
NO_STORE = "no-cache, no-store, must-revalidate"
TURNSTILE = "<https://challenges.cloudflare.com/turnstile/v0/api.js>; rel=preload; as=script"


def head(status: int = 200, *cookies: str, **fields: str) -> Outcome:
    return answer(status, cookies=cookies, **fields)


#: Product -> answers whose head shows it; each sign of a head is shown by one of them at least.
HEADS: dict[str, list[Outcome]] = {
    "anubis": [
        head(200, f"techaro.lol-anubis-cookie-verification-3f9a01c7={UUID}; Path=/; SameSite=None; Secure"),
        head(401, f"techaro.lol-anubis-cookie-verification={UUID}; Path=/"),
        head(200, "techaro.lol-anubis-cookie-test-if-you-block-this-anubis-wont-work=1; Path=/"),
        head(200, "techaro.lol-anubis-3f9a01c7=; Path=/; Max-Age=0; Secure"),
        head(403, "techaro.lol-anubis-auth=; Path=/; Expires=Mon, 30 Nov 2026 09:59:00 GMT"),
        head(200, "techaro.lol-anubis-auth-for-a.example=; Path=/"),
        head(200, "within.website-x-cmd-anubis-auth=x; Path=/; Max-Age=-1"),
        head(200, "theme=dark", f"shield-cookie-verification-3f9a01c7={UUID}; Path=/", cache_control="no-store"),
    ],
    "cloudflare": [head(status, cf_mitigated=" Challenge ") for status in (200, 403, 429, 503)],
    "turnstile": [head(403, link=TURNSTILE), head(429, link=f"</a.css>; rel=preload, {TURNSTILE.replace('=p', '=p')}")],
    "aws-waf": [head(202, x_amzn_waf_action="challenge"), head(405, x_amzn_waf_action="captcha")],
    "go-away": [
        head(418, f".go-away-1f0c77ab52d8e934-state={JWT}; Path=/"),
        head(200, f".go-away-1f0c77ab52d8e934-state={JWT}; Path=/", cache_control=NO_STORE),
        head(418, via="HTTP/1.1 git.gammaspectra.live/git/go-away@v0.7.0"),
        head(403, via="HTTP/1.1 git.gammaspectra.live/git/go-away@v0.7.0", cache_control=NO_STORE),
    ],
    "cerberus": [
        *(head(200, x_cerberus_status=word) for word in ("CHALLENGE", "BLOCKED", "FAIL")),
        head(200, "cerberus-auth=; Path=/; Max-Age=0; HttpOnly"),
    ],
    "vercel": [head(403, x_vercel_mitigated="challenge"), head(429, x_vercel_challenge_token="2.1795.60.x")],
    "datadome": [head(403, x_datadome="protected", x_dd_b="1"), head(403, x_datadome_cid="AHrlqAAAAAMA")],
    "human": [head(403, "_pxhd=abc; Path=/")],
    "imperva": [head(403, x_iinfo="7-41000613-0 PNNN RT(1639592547810 0) q(0 0 0 0) r(0 -1) B15(3,501529,0) U6")],
    "akamai": [head(428, "sec_cpt=1~0~x; Path=/")],
    "sucuri": [head(403, x_sucuri_block="FBP007", server="Sucuri/Cloudproxy")],
    "siteground": [head(202, sg_captcha="challenge")],
    "kasada": [head(429, x_kpsdk_ct="0abc")],
    "fastly": [head(200, "_fs_ch_st_FSBmUei20MqUiJb9=AfA8; Max-Age=10; Path=/")],
    "bunny": [head(403, cdn_challenge="true", server="BunnyCDN-DE1")],
    "qrator": [head(401, "qrator_jsr=1666613051.642.Ty6; Path=/", server="QRATOR")],
    "deflect": [head(429, "deflect_challenge3=abc; Max-Age=14400")],
    "reblaze": [head(247, "rbzid=abc; Path=/")],
    "privacy-pass": [
        head(401, www_authenticate='PrivateToken challenge="AAIA", token-key="MIIB"'),
        head(401, www_authenticate='PrivateToken challenge="AAIA", PrivateToken challenge="AAEA"'),
    ],
    "linkedin": [],
    UNNAMED: [head(999)],
}

#: Product -> targets of redirects that lead to it.
TARGETS: dict[str, list[str]] = {
    "anubis": ["https://b.example/.within.website/?redir=https%3A%2F%2Fa.example", "/app/.within.website/?redir=x"],
    "cloudflare": ["/cdn-cgi/challenge-platform/h/g/x", "/cdn-cgi/l/chk_captcha?id=1", "/doc?a=1&__cf_chl_rt_tk=x"],
    "turnstile": ["https://challenges.cloudflare.com/turnstile/v0/"],
    "bot-challenge-page": ["/challenge?dest=%2Fdoc", "https://a.example/catalog/challenge?x=1&dest=%2F"],
    "captcha-protect": ["/challenge?destination=%2Fdoc", "https://a.example/turnstile-challenge?destination=/x"],
    "aws-waf": ["https://0123.eu-west-1.captcha.awswaf.com/x"],
    "go-away": ["/doc?__goaway_challenge=js&__goaway_token=1", "?__goaway_id=7"],
    "vercel": ["/.well-known/vercel/security/request-challenge"],
    "datadome": ["https://geo.captcha-delivery.com/captcha/?initialCid=x"],
    "human": ["https://captcha.px-cdn.net/PX1/captcha.js", "https://x.perimeterx.net/", "https://x.px-cloud.net/"],
    "imperva": ["/_Incapsula_Resource?SWJIYLWA=1"],
    "akamai": ["/_sec/cp_challenge/crypto_message-4-3.htm"],
    "siteground": ["/.well-known/sgcaptcha/?r=%2F", "https://a.example/.well-known/captcha/?r=%2Fdoc"],
    "radware": ["http://validate.perfdrive.com:8080/64b926de/?ssa=be69", "https://captcha.perfdrive.com/x",
                "https://validate.shieldsquare.com/"],
    "bunny": ["/.bunny-shield/challenge"],
    "ddos-guard": ["/.well-known/ddos-guard/js-challenge/index.html"],
    "basedflare": ["/.basedflare/bot-check?/doc"],
    "silverchair": ["https://academic.example/crawlprevention/governor?content=%2fdoc"],
    "tollbit": ["https://tollbit.a.example/doc"],
    "queue-it": ["https://library.queue-it.net/?c=library&e=open"],
    "google": ["https://www.google.com/sorry/index?continue=x", "https://google.co.uk/sorry/"],
    "recaptcha": ["https://www.google.com/recaptcha/api2/demo", "https://www.recaptcha.net/x"],
    "hcaptcha": ["https://newassets.hcaptcha.com/captcha"],
    "friendly-captcha": ["https://api.friendlycaptcha.com/", "https://eu.friendlycaptcha.eu/"],
    "geetest": ["https://static.geetest.com/x"],
    "arkose": ["https://client-api.arkoselabs.com/fc", "https://funcaptcha.com/fc"],
    "captcha-eu": ["https://w19.captcha.eu/"],
    "tencent-captcha": ["https://turing.captcha.qcloud.com/", "https://t.captcha.qq.com/"],
    "alibaba": ["https://a.example/doc/_____tmd_____/punish?x5secdata=1", "//a.example/punish?a=1&x5secdata=2"],
    "yandex": ["https://a.example/showcaptcha?cc=1&retpath=x", "/showcaptchafast"],
    UNNAMED: ["/captcha", "/Captcha.php?back=%2Fdoc", "/recaptcha/", "/bot-check?x", "/site-captcha", "/captcha_page",
              "https://captcha.a.example/solve"],
}  # fmt: skip

#: Product -> pages that are it.
PAGES: dict[str, list[str]] = {
    "anubis": ['<script id="anubis_version" type="application/json">"v1.21"</script>',
               '<script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script>'],
    "cloudflare": ["<title>Just a moment...</title><script>window._cf_chl_opt={}</script>"],
    "turnstile": ['<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script>One moment'],
    "bot-challenge-page": ['<div class="bot_challenge_page"><h1>Traffic control</h1></div>'],
    "aws-waf": ["<script>window.gokuProps = {}</script>"],
    "go-away": ["<script>let a = {__goaway_token: 1}</script>"],
    "vercel": ["<title>Vercel Security Checkpoint</title>"],
    "datadome": ['<script src="https://ct.captcha-delivery.com/c.js"></script>'],
    "human": ['<div id="px-captcha"></div>'],
    "imperva": ["Request unsuccessful. Incapsula incident ID: 1-2", '<script src="/_Incapsula_Resource?x=1"></script>'],
    "akamai": ['<div id="sec-if-cpt-container"></div>'],
    "f5": ["<title>Request Rejected</title>The requested URL was rejected. Your support ID is: 9108677460373260626"],
    "sucuri": ["<script>sucuri_cloudproxy_js='x'</script>", "<h1>Sucuri WebSite Firewall</h1>"],
    "siteground": ['<meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=%2F">'],
    "radware": ['<link href="https://captcha.perfdrive.com/x.css">'],
    "fastly": ['<script src="/_fs-ch-1T1wmsGaOgGaSxcX/script.js"></script>'],
    "bunny": ['<script src="/.bunny-shield/assets/shield-challenge.js"></script>'],
    "ddos-guard": ['<script src="/.well-known/ddos-guard/js-challenge/index.js"></script>'],
    "basedflare": ['<script src="/.basedflare/js/challenge.js"></script>'],
    "recaptcha": ['<script src="https://www.google.com/recaptcha/api.js"></script>'],
    "hcaptcha": ['<script src="https://js.hcaptcha.com/1/api.js"></script>'],
    "friendly-captcha": ['<div class="frc-captcha"></div>'],
    "geetest": ['<script src="https://static.geetest.com/v4/gt4.js"></script>'],
    "arkose": ['<script src="https://client-api.arkoselabs.com/v2/x/api.js"></script>'],
    "captcha-eu": ['<script src="https://www.captcha.eu/sdk.js"></script>'],
    "tencent-captcha": ["<script>new TencentCaptcha()</script>"],
    "alibaba": ["<script>location = '/x?x5secdata=1'</script>"],
}  # fmt: skip


def to(location: str) -> Target:
    """Where a Location leads from a page."""
    target = join("https://a.example/doc", location)
    assert isinstance(target, Target)
    return target


def of(product: str) -> Wall:
    return Wall(product or None)


def each(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(product, shown) for product, all_shown in table.items() for shown in all_shown]


@pytest.mark.parametrize(("product", "outcome"), each(HEADS))
def test_a_head_that_shows_a_wall(product: str, outcome: Outcome) -> None:
    assert wall_of_answer(outcome) == of(product)


@pytest.mark.parametrize(("product", "target"), each(TARGETS))
def test_a_redirect_that_leads_to_a_wall(product: str, target: str) -> None:
    assert wall_of_redirect(to(target), 307) == of(product)


@pytest.mark.parametrize(("product", "page"), each(PAGES))
def test_a_page_that_is_a_wall(product: str, page: str) -> None:
    assert wall_of_page(f"<!doctype html><html>{page}</html>".encode()) == of(product)


def test_every_sign_is_shown_by_an_example() -> None:
    """A sign that no example needs is a sign that no test would miss."""
    for product, signs in WALLS.items():
        for sign in signs:
            if sign.target:
                found = [to(target) for target in TARGETS[product]]
                places = [f"{target.host}{target.request_target}" for target in found]
                assert any(re.search(sign.target, place, re.IGNORECASE) for place in places), sign
            elif sign.body:
                assert any(all(part in page for part in sign.body) for page in PAGES[product]), sign
            elif sign.host:
                assert wall_of_answer(head(999), "www.linkedin.com") == of(product)
            else:
                assert any(shows(sign, outcome) for outcome in HEADS[product]), sign


def test_every_sign_has_a_source_and_a_text() -> None:
    for signs in WALLS.values():
        for sign in signs:
            assert sign.about
            assert sign.source
            assert bool(sign.target) + bool(sign.body) + bool(sign.fields or sign.cookie or sign.statuses) >= 1


ORDINARY = [
    head(200),
    head(200, server="cloudflare", cf_ray="8c1f2a-FRA", cf_cache_status="DYNAMIC"),
    head(403, server="cloudflare", cf_ray="8c1f2a-FRA"),
    head(200, "__cf_bm=8e144c45; path=/; HttpOnly", "cf_clearance=x"),
    *(head(403, cf_mitigated=word) for word in ("block", "none", "", "challenged", "challenge, log")),
    head(200, x_amzn_waf_action="allow"),
    head(200, "aws-waf-token=x"),
    head(200, "anubis-theme=dark", "x-techaro.lol-anubis=", "last=techaro.lol-anubis-cookie-verification; Path=/"),
    head(200, f"techaro.lol-anubis-3f9a01c7={JWT}; Path=/; Max-Age=604800"),
    head(200, f"email-cookie-verification={UUID}; Path=/"),
    head(200, "email-cookie-verification=1; Path=/", cache_control="no-store"),
    head(200, f".go-away-1f0c-state={JWT}", via="HTTP/1.1 git.gammaspectra.live/git/go-away@v0.7.0"),
    head(404, f".go-away-1f0c-state={JWT}", cache_control="no-cache"),
    head(418, "x.go-away-state=1", "go-away-banner=seen"),
    head(418),
    head(200, cache_control=NO_STORE),
    *(head(200, x_cerberus_status=word) for word in ("PASS", "DISABLED", "")),
    head(200, "cerberus-auth=abc; Path=/", "cerberus=1", "cerberus="),
    head(403, x_vercel_mitigated="deny"),
    head(200, server="Vercel", x_vercel_id="fra1::x", x_vercel_challenge_token="x"),
    head(200, "datadome=AHrlqAAAAAMA; Path=/", x_datadome="protected"),
    head(200, x_dd_b="0"),
    head(200, x_datadome_cid="AHrlqAAAAAMA"),
    head(200, "_pxhd=abc", "_px3=x"),
    head(200, "visid_incap_1=x", "incap_ses_1_2=x", x_iinfo="9-123-124 NNNN CT(0 0 0) RT(1 2) q(0 0 0 -1) r(1 1) U12"),
    head(200, "ak_bmsc=5A1; Path=/", "bm_sz=77C", "_abck=9F0~-1~", server="AkamaiGHost", akamai_grn="0.5e0d"),
    head(428),
    head(200, "sec_cpt=1~3~x"),
    head(200, x_sucuri_id="19002", server="Sucuri/Cloudproxy"),
    head(202),
    head(202, sg_captcha="passed"),
    head(200, x_kpsdk_ct="0abc"),
    head(200, "_fs_ch_cp_FSB=x", "_fs_ch_st_FSB=; Max-Age=0"),
    head(200, cdn_challenge="false"),
    head(200, "qrator_jsr=1", "qrator_ssid=2"),
    head(200, "deflect_challenges=1", "deflect_password3=x"),
    head(200, "rbzid=abc", "rbzsessionid=x"),
    head(401, www_authenticate='Basic realm="PrivateToken"'),
    head(401, www_authenticate='PrivateToken challenge="AAIA", Basic realm="x"'),
    head(200, www_authenticate='PrivateToken challenge="AAIA"'),
    head(200, link=TURNSTILE),
    head(403, link="<https://a.example/?x=challenges.cloudflare.com/turnstile>; rel=preload"),
    head(998),
]
LEADS_ON = [
    "https://a.example/",
    "/en/start?dest=%2Fdoc",
    "/challenge",
    "/challenge/12?dest=x",
    "/grand-challenges?destination=x",
    "https://b.example/papers/captcha",
    "https://github.example/google/recaptcha",
    "/docs/anti-captcha-history.html",
    "/captchas-and-robots",
    "/recaptcha-a-history-of-proof",
    "https://captcha.example/",
    "https://hcaptcha.com.a.example/",
    "https://nothcaptcha.com/",
    "https://a.example/hcaptcha.com/x",
    "https://www.google.com/search?q=/sorry/",
    "/within.website/",
    "/x?redir=/.within.website/",
    "/queue-it.net/",
    "/doc?x=__cf_chl_tk",
    "/doc?goaway_token=1",
    "/punishment?x5secdata",
    "https://tollbit.com/",
    "/cdn-cgi/image/width=80/x.png",
]
PROSE = "The corpus was recorded in forty villages between 1961 and 1974. " * 10


@pytest.mark.parametrize("outcome", ORDINARY)
def test_an_ordinary_answer_is_no_wall(outcome: Outcome) -> None:
    assert wall_of_answer(outcome, "a.example") is None


@pytest.mark.parametrize("target", LEADS_ON)
def test_an_ordinary_redirect_leads_to_no_wall(target: str) -> None:
    assert wall_of_redirect(to(target), 307) is None


def test_the_rails_guard_redirects_with_307_only() -> None:
    assert wall_of_redirect(to("/challenge?dest=%2Fdoc"), 302) is None


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<p>Request Rejected: a study of peer review",
        "<p>Your support ID is 7",
        f'<script src="https://challenges.cloudflare.com/turnstile/v0/api.js"></script><p>{PROSE}',
        f'<script src="https://js.hcaptcha.com/1/api.js"></script><p>{PROSE}',
        f'<script src="/_Incapsula_Resource?SWJIYLWA=1"></script><p>{PROSE}',
        "<p>How Anubis and anubis_version work",
        f'<p>{"x" * BODY_LIMIT}<script id="anubis_version">',
    ],
)
def test_an_ordinary_page_is_no_wall(page: str) -> None:
    assert wall_of_page(page.encode()) is None


def test_a_page_longer_than_what_was_read_is_not_bare() -> None:
    page = '<script src="https://js.hcaptcha.com/1/api.js"></script>'
    assert wall_of_page(page.encode() + b" " * (BODY_LIMIT - len(page))) is None


def test_only_linkedin_is_called_so() -> None:
    for host in ("linkedin.com", "www.linkedin.com", "de.linkedin.com:8443"):
        assert wall_of_answer(head(999), host) == Wall("linkedin")
    for host in ("", "notlinkedin.com", "linkedin.com.a.example"):
        assert wall_of_answer(head(999), host) == Wall(None)


def test_silence_is_no_wall() -> None:
    assert wall_of_answer(Outcome(sent_at=1.0, ended_at=2.0, duration_ms=9)) is None


@given(st.binary(max_size=200), st.text(max_size=80), st.integers(100, 999))
def test_anything_can_be_judged(page: bytes, text: str, status: int) -> None:
    wall_of_page(page)
    target = join("https://a.example/doc", text)
    if isinstance(target, Target):
        wall_of_redirect(target, status)
    wall_of_answer(answer(status, cookies=[text], x_iinfo=text, link=text))


# What a check makes of them.

CHALLENGED = OPEN | {"reason": "bot_challenge", "method": "HEAD"}
ANUBIS = head(200, f"techaro.lol-anubis-cookie-verification={UUID}; Path=/")
F5 = b"<html><title>Request Rejected</title>Your support ID is: 1</html>"
HTML = answer(200, content_type="text/html")
CSV = answer(200, content_type="text/csv")


def page(body: bytes) -> Outcome:
    return Outcome(
        sent_at=1.0, ended_at=2.0, duration_ms=9, status=200, headers={"content-type": "text/html"}, page=body
    )


CASES = [
    Case("a challenge ends the check", [("HEAD /doc", ANUBIS)], CHALLENGED | {"wall": "anubis", "status": 200}),
    Case("told on a later hop", [("HEAD /doc", answer(302, "/x")), ("HEAD /x", ANUBIS)],
         CHALLENGED | {"wall": "anubis", "final_url": f"{HOST}/x", "redirects": 1}),
    Case("a redirect to a challenge is not followed",
         [("HEAD /doc", answer(307, "http://b.example/.within.website/?redir=x"))],
         CHALLENGED | {"wall": "anubis", "status": 307, "final_url": f"{HOST}/doc", "redirects": 0}),
    Case("nor on a later hop", [("HEAD /doc", answer(302, "/x")), ("HEAD /x", answer(302, "/captcha?r=x"))],
         CHALLENGED | {"wall": None, "status": 302}),
    Case("a challenge that redirects is one", [("HEAD /doc", answer(302, "/x", cf_mitigated="challenge"))],
         CHALLENGED | {"wall": "cloudflare"}),
    Case("a link that is a captcha itself", [("HEAD /captcha", answer(302, "/captcha?x=1")),
         ("HEAD /captcha?x=1", GOOD)], OK | {"wall": None}, url=f"{HOST}/captcha"),
    Case("HEAD fails, GET is challenged", [("HEAD /doc", answer(405)), ("GET /doc", head(403, link=TURNSTILE))],
         CHALLENGED | {"wall": "turnstile", "method": "GET"}),
    Case("only GET's 202 shows it", [("HEAD /doc", answer(202)), ("GET /doc", head(202, sg_captcha="challenge"))],
         CHALLENGED | {"wall": "siteground", "method": "GET"}),
    Case("no wall where a login is", [("GET /doc", answer(302, "/cas/login")), ("GET /cas/login", ANUBIS)],
         {"reason": "login_redirect", "wall": None}, method="GET"),
    Case("another media type by HEAD only", [("HEAD /doc", HTML), ("GET /doc", CSV)], OK | {"mime": "text/csv"},
         expected_mime="text/csv"),
    Case("another media type by both", [("HEAD /doc", HTML), ("GET /doc", page(b"<p>hello"))],
         OK | {"mime": "text/html", "wall": None}, expected_mime="text/csv"),
    Case("a wall where the metadata want another media type", [("HEAD /doc", HTML), ("GET /doc", page(F5))],
         CHALLENGED | {"wall": "f5", "method": "GET", "status": 200}, expected_mime="text/csv"),
    Case("the media type that the metadata want", [("HEAD /doc", CSV)], OK, expected_mime="Text/CSV; header=present"),
    Case("no media type says nothing", [("HEAD /doc", answer(200))], OK, expected_mime="text/csv"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    assert_finding(case)


@pytest.mark.parametrize(
    ("expected", "limits"),
    [(None, [None, None]), ("text/html", [None, None]), ("application/xhtml+xml", [None, None]),
     ("text/csv", [None, BODY_LIMIT])],
)  # fmt: skip
def test_pages_are_read_only_by_get_and_where_no_page_is_wanted(expected: str | None, limits: list[int | None]) -> None:
    steps = [("HEAD /doc", answer(405)), ("GET /doc", GOOD)]
    found: list[int | None] = []
    play(Case("", steps, {}, expected_mime=expected), seen=lambda request: found.append(request.page_limit))
    assert found == limits


def test_a_head_that_agrees_with_get_is_not_useless() -> None:
    steps = [("HEAD /doc", HTML), ("GET /doc", page(b"<p>hello"))]
    assert play(Case("", steps, {}, expected_mime="text/csv")).head_useless is None
    assert play(Case("", [("HEAD /doc", HTML), ("GET /doc", CSV)], {}, expected_mime="text/csv")).head_useless is True
    assert play(Case("", [("HEAD /doc", answer(202)), ("GET /doc", answer(202))], {})).head_useless is None
