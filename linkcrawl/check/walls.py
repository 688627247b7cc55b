"""Walls against robots: products that send a challenge or a refusal instead of the resource, and how each shows.

WALLS is the one list; docs/reference/walls.md has it for people, and a test compares the two. A sign is listed only
with a source: the product's own code or documentation, or a report that quotes the answer. What a product adds to
ordinary answers too (`cf-ray`, `__cf_bm`, `visid_incap_…`, `_abck`, go-away's cookie with a page that it let pass) is
no sign.

A wall is recognised by the head of an answer, by the target of a redirect before a request is sent there, and, where
the metadata want another media type than HTML, by the first BODY_LIMIT bytes of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from attrs import field, frozen

from linkcrawl.check.outcome import Outcome
from linkcrawl.urls import Target

#: Bytes of an HTML page that are looked at for a challenge.
BODY_LIMIT = 16 * 1024

#: Product of a sign that many products share: a challenge, behind which no product can be named.
UNNAMED = ""

#: A page with more visible characters is a page of its own, whatever captcha a form of it loads.
_MOST_VISIBLE = 500

#: Openings and closings of what a page does not show.
_HIDDEN = (
    ("<!--", "-->"),
    ("<script", "</script"),
    ("<style", "</style"),
    ("<noscript", "</noscript"),
    ("<template", "</template"),
    ("<svg", "</svg"),
)


_CLEARED = re.compile(r"(?:^|;)\s*max-age\s*=\s*(?:0+|-\d+)\s*(?:;|$)", re.IGNORECASE)


@frozen(kw_only=True)
class Sign:
    """One way in which a wall shows. Everything that is given must hold.

    `about`: what shows, for people (Markdown). `source`: where that is documented. `statuses`: None for any. `fields`:
    header names in lower case -> pattern of the whole value. `cookie`: pattern of a whole `name=value` of Set-Cookie,
    which ends with `=` where the cookie is cleared. `host`: pattern of the whole name of the host that answered.
    `target`: pattern that is searched for in `host/path?query` of a redirect's target.
    `body`: texts that the page has, all of them. `bare`: the page says next to nothing else.
    """

    about: str
    source: str
    statuses: frozenset[int] | None = None
    fields: Mapping[str, str] = field(factory=dict)
    cookie: str | None = None
    host: str | None = None
    target: str | None = None
    body: tuple[str, ...] = ()
    bare: bool = False


@frozen
class Wall:
    """A challenge or refusal that was recognised. `product`: its name in WALLS, None where it can't be named."""

    product: str | None


_REFUSALS = frozenset({401, 403, 429})
_ANUBIS = "github.com/TecharoHQ/anubis at 2f45638"
_GO_AWAY = "github.com/WeebDataHoarder/go-away at 95ac085"
_CERBERUS = "github.com/sjtug/cerberus at b2b6820"
_CHALLENGE_PAGE = "github.com/samvera-labs/bot_challenge_page at b52f795"
_DETECTOR = "github.com/microlinkhq/is-antibot at eba53e7, src/providers.json"
#: Seen in answers and addresses that public code and trackers quote, where the vendor documents nothing.
_QUOTED = "answers quoted in public repositories"
_NO_STORE = r"no-cache, no-store, must-revalidate"


def _captcha(about: str, source: str, *hosts: str, paths: str = "", body: tuple[str, ...] = ()) -> tuple[Sign, ...]:
    """The signs of a captcha service: redirects to its hosts (or to `paths` there), and a bare page with its script."""
    names = "|".join(re.escape(host) for host in hosts)
    redirect = Sign(about=about, source=source, target=rf"^([\w-]+\.)*({names})(:\d+)?/{paths}")
    texts = " and ".join(f"`{text}`" for text in body)
    pages = [Sign(about=f"bare page with {texts}", source=source, body=body, bare=True)] if body else []
    return (redirect, *pages)


#: Product -> its signs. Names are the contract's where it has one.
WALLS: Mapping[str, tuple[Sign, ...]] = {
    "anubis": (
        Sign(
            about="cookie `techaro.lol-anubis-cookie-verification…` is set",
            source=f"{_ANUBIS}, lib/http.go RenderIndex; anubis.go at 6aa1753 for `…-cookie-test-…`",
            cookie=r"techaro\.lol-anubis-cookie-(verification|test-if-you-block-this-anubis-wont-work)(-[0-9a-f]+)?=.+",
        ),
        Sign(
            about="cookie `techaro.lol-anubis…` is cleared",
            source=f"{_ANUBIS}, lib/anubis.go checkRules; anubis.go at 6156d3d for `within.website-x-cmd-anubis-auth`",
            cookie=r"(techaro\.lol-anubis|within\.website-x-cmd-anubis)(-auth|-cookie-[a-z-]+)?(-for-[^=]+)?(-[0-9a-f]+)?=",
        ),
        Sign(
            about="cookie `…-cookie-verification…` of another prefix is set to a UUID, `Cache-Control: no-store`",
            source=f"{_ANUBIS}, cmd/anubis/main.go cookie-prefix",
            fields={"cache-control": r".*\bno-store\b.*"},
            cookie=r"[^=]+-cookie-verification(-[0-9a-f]+)?=[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        ),
        Sign(
            about="redirect to `…/.within.website/…`",
            source=f"{_ANUBIS}, lib/http.go constructRedirectURL",
            target=r"^[^?]*/\.within\.website/",
        ),
        Sign(about="page with `anubis_version`", source=f"{_ANUBIS}, web/index.templ", body=('id="anubis_version"',)),
        Sign(about="page with `/.within.website/x/`", source=f"{_ANUBIS}, anubis.go", body=("/.within.website/x/",)),
    ),
    "cloudflare": (
        Sign(
            about="`cf-mitigated: challenge`",
            source="developers.cloudflare.com, Detect a Challenge Page response",
            fields={"cf-mitigated": "challenge"},
        ),
        Sign(
            about="redirect to `/cdn-cgi/challenge-platform/` or `/cdn-cgi/l/chk_…`, or with `__cf_chl_…=`",
            source="developers.cloudflare.com, Cloudflare /cdn-cgi/ endpoint; " + _QUOTED,
            target=r"^[^/]*/cdn-cgi/(challenge-platform/|l/chk_)|[?&]__cf_chl_\w+=",
        ),
        Sign(about="page with `_cf_chl_opt`", source=_DETECTOR, body=("_cf_chl_opt",)),
    ),
    "turnstile": (
        Sign(
            about="`Link` preloads `challenges.cloudflare.com/turnstile`, status from 400 on",
            source=f"{_CHALLENGE_PAGE}, guard_action.rb",
            statuses=frozenset(range(400, 600)),
            fields={"link": r".*<https://challenges\.cloudflare\.com/turnstile/[^>]*>[^<]*\brel=\"?preload.*"},
        ),
        *_captcha(
            "redirect to `challenges.cloudflare.com`",
            _DETECTOR,
            "challenges.cloudflare.com",
            body=("challenges.cloudflare.com/turnstile",),
        ),
    ),
    "bot-challenge-page": (
        Sign(
            about="307 to `/challenge?dest=…`",
            source=f"{_CHALLENGE_PAGE}, guard_action.rb, install_generator.rb",
            statuses=frozenset({307}),
            target=r"^[^?]*/challenge\?(.*&)?dest=",
        ),
        Sign(
            about="page with `bot_challenge_page`",
            source=f"{_CHALLENGE_PAGE}, challenge.html.erb",
            body=('class="bot_challenge_page"',),
        ),
    ),
    "captcha-protect": (
        Sign(
            about="redirect to `/challenge?destination=…` or `/…-challenge?destination=…`",
            source="github.com/libops/captcha-protect, main_test.go; drupal.org/project/turnstile_protect",
            target=r"^[^?]*/([\w-]+-)?challenge\?(.*&)?destination=",
        ),
    ),
    "aws-waf": (
        Sign(
            about="`x-amzn-waf-action: challenge` or `captcha`",
            source="docs.aws.amazon.com/waf, CAPTCHA and Challenge action behavior",
            fields={"x-amzn-waf-action": "challenge|captcha"},
        ),
        *_captcha("redirect to `*.awswaf.com`", _DETECTOR, "awswaf.com", body=("window.gokuProps",)),
    ),
    "go-away": (
        Sign(
            about="418 and a cookie `.go-away-…`",
            source=f"{_GO_AWAY}, utils/cookie.go, lib/settings/settings.go",
            statuses=frozenset({418}),
            cookie=r"\.go-away-[^=]*=.*",
        ),
        Sign(
            about=f"a cookie `.go-away-…` and `Cache-Control: {_NO_STORE}`",
            source=f"{_GO_AWAY}, lib/template.go ChallengePage (its status is the administrator's choice)",
            fields={"cache-control": _NO_STORE},
            cookie=r"\.go-away-[^=]*=.*",
        ),
        Sign(
            about="418 and `Via: … go-away@…`",
            source=f"{_GO_AWAY}, lib/challenge/data.go ResponseHeaders",
            statuses=frozenset({418}),
            fields={"via": r".*\bgo-away@.*"},
        ),
        Sign(
            about=f"`Via: … go-away@…` and `Cache-Control: {_NO_STORE}`",
            source=f"{_GO_AWAY}, lib/template.go ErrorPage",
            fields={"via": r".*\bgo-away@.*", "cache-control": _NO_STORE},
        ),
        Sign(
            about="redirect with `__goaway_challenge=` or another argument of that prefix",
            source=f"{_GO_AWAY}, lib/challenge/helper.go",
            target=r"[?&]__goaway_(challenge|token|id|redirect)=",
        ),
        Sign(about="page with `__goaway_`", source=f"{_GO_AWAY}, lib/challenge/script.mjs", body=("__goaway_",)),
    ),
    "cerberus": (
        Sign(
            about="`X-Cerberus-Status: CHALLENGE`, `BLOCKED` or `FAIL`",
            source=f"{_CERBERUS}, core/config.go, directives/common.go",
            fields={"x-cerberus-status": "challenge|blocked|fail"},
        ),
        Sign(
            about="cookie `cerberus-auth` is cleared",
            source=f"{_CERBERUS}, directives/middleware.go invokeAuth",
            cookie=r"cerberus-auth=",
        ),
    ),
    "vercel": (
        Sign(
            about="`X-Vercel-Mitigated: challenge`",
            source="github.com/vercel/vercel/issues/13147",
            fields={"x-vercel-mitigated": "challenge"},
        ),
        Sign(
            about="`X-Vercel-Challenge-Token`, status 403 or 429",
            source="github.com/mohamedhiba/smartmenu/issues/45, github.com/vercel-labs/vgpu/issues/228",
            statuses=_REFUSALS,
            fields={"x-vercel-challenge-token": ".+"},
        ),
        Sign(
            about="redirect to `/.well-known/vercel/security/`",
            source="github.com/vercel/vercel/issues/13147",
            target=r"^[^/]*/\.well-known/vercel/security/",
        ),
        Sign(
            about="page with `Vercel Security Checkpoint`",
            source="github.com/vercel/vercel/issues/13147",
            body=("Vercel Security Checkpoint",),
        ),
    ),
    "datadome": (
        Sign(
            about="`X-DD-B` of 1 or more",
            source="docs.datadome.co/reference/validate-request",
            fields={"x-dd-b": r"[1-9][0-9]*"},
        ),
        Sign(
            about="`X-DataDome-CID`, status 401, 403 or 429",
            source=_DETECTOR,
            statuses=_REFUSALS,
            fields={"x-datadome-cid": ".+"},
        ),
        *_captcha("redirect to `*.captcha-delivery.com`", _DETECTOR, "captcha-delivery.com"),
        Sign(about="page with `captcha-delivery.com`", source=_DETECTOR, body=("captcha-delivery.com",), bare=True),
    ),
    "human": (
        Sign(
            about="cookie `_pxhd`, status 403 or 429",
            source=_DETECTOR,
            statuses=_REFUSALS,
            cookie=r"_pxhd=.+",
        ),
        *_captcha(
            "redirect to `*.perimeterx.net`, `*.px-cdn.net` or `*.px-cloud.net`",
            _DETECTOR,
            "perimeterx.net",
            "px-cdn.net",
            "px-cloud.net",
            body=("px-captcha",),
        ),
    ),
    "imperva": (
        Sign(
            about="`X-Iinfo` with a block code, `B15(…)`",
            source=_QUOTED,
            fields={"x-iinfo": r".*\bB\d+\(\d+,.*"},
        ),
        Sign(
            about="redirect to `/_Incapsula_Resource`",
            source=_DETECTOR,
            target=r"^[^/]*/_Incapsula_Resource\b",
        ),
        Sign(about="page with `Incapsula incident ID`", source=_DETECTOR, body=("Incapsula incident ID",)),
        Sign(
            about="bare page with `_Incapsula_Resource`",
            source=_DETECTOR,
            body=("_Incapsula_Resource",),
            bare=True,
        ),
    ),
    "akamai": (
        Sign(
            about="428 and a cookie `sec_cpt`",
            source="docs.hypersolutions.co/akamai-web/handling-428-status-code-sec-cpt",
            statuses=frozenset({428}),
            cookie=r"sec_cpt=.*",
        ),
        Sign(
            about="redirect to `/_sec/cp_challenge/`",
            source="docs.hypersolutions.co/akamai-web/handling-428-status-code-sec-cpt",
            target=r"^[^/]*/_sec/cp_challenge/",
        ),
        Sign(
            about="page with `sec-if-cpt-container`",
            source="docs.hypersolutions.co/akamai-web/handling-428-status-code-sec-cpt",
            body=("sec-if-cpt-container",),
        ),
    ),
    "f5": (
        Sign(
            about="page with `Request Rejected` and `support ID`",
            source="github.com/datagouv/hydra/issues/460; github.com/Ekultek/WhatWaf/issues/1390",
            body=("Request Rejected", "support ID"),
        ),
    ),
    "sucuri": (
        Sign(
            about="`X-Sucuri-Block`",
            source=_QUOTED,
            fields={"x-sucuri-block": ".+"},
        ),
        Sign(about="page with `sucuri_cloudproxy_js`", source=_QUOTED, body=("sucuri_cloudproxy_js",)),
        Sign(about="page with `Sucuri WebSite Firewall`", source=_DETECTOR, body=("Sucuri WebSite Firewall",)),
    ),
    "siteground": (
        Sign(
            about="`SG-Captcha: challenge`",
            source=_QUOTED,
            fields={"sg-captcha": "challenge"},
        ),
        Sign(
            about="redirect to `/.well-known/sgcaptcha/` or `/.well-known/captcha/`",
            source=_QUOTED,
            target=r"^[^/]*/\.well-known/(sg)?captcha/",
        ),
        Sign(
            about="page with `/.well-known/sgcaptcha/`",
            source=_QUOTED,
            body=("/.well-known/sgcaptcha/",),
        ),
    ),
    "radware": _captcha(
        "redirect to `*.perfdrive.com` or `*.shieldsquare.com`",
        "github.com/adsabs/adsabs-dev-api/issues/64; " + _QUOTED,
        "perfdrive.com",
        "shieldsquare.com",
        "shieldsquare.net",
        body=("perfdrive.com",),
    ),
    "kasada": (
        Sign(
            about="`x-kpsdk-ct`, status 403 or 429",
            source=_QUOTED,
            statuses=_REFUSALS,
            fields={"x-kpsdk-ct": ".*"},
        ),
    ),
    "fastly": (
        Sign(
            about="cookie `_fs_ch_st_…` is set",
            source=f"{_DETECTOR}; {_QUOTED}",
            cookie=r"_fs_ch_st_\w*=.+",
        ),
        Sign(about="page with `/_fs-ch-`", source=_DETECTOR, body=("/_fs-ch-",)),
    ),
    "bunny": (
        Sign(
            about="`CDN-Challenge: true`",
            source=_QUOTED,
            fields={"cdn-challenge": "true|1"},
        ),
        Sign(about="redirect to `/.bunny-shield/`", source=_QUOTED, target=r"^[^/]*/\.bunny-shield/"),
        Sign(about="page with `/.bunny-shield/`", source=_QUOTED, body=("/.bunny-shield/",)),
    ),
    "ddos-guard": (
        Sign(
            about="redirect to `/.well-known/ddos-guard/`",
            source=_QUOTED,
            target=r"^[^/]*/\.well-known/ddos-guard/",
        ),
        Sign(
            about="page with `/.well-known/ddos-guard/`",
            source=_QUOTED,
            body=("/.well-known/ddos-guard/",),
        ),
    ),
    "qrator": (
        Sign(
            about="401 or 403 and a cookie `qrator_jsr`",
            source="qrator.net/storage/01HMGWZ8BB0B8MKEPBAHSB075T.pdf; " + _QUOTED,
            statuses=_REFUSALS,
            cookie=r"qrator_jsr=.+",
        ),
    ),
    "deflect": (
        Sign(
            about="cookie `deflect_challenge…` is set",
            source="github.com/deflect-ca/banjax, internal/http_server.go",
            cookie=r"deflect_challenge\d*=.+",
        ),
    ),
    "basedflare": (
        Sign(
            about="redirect to `/.basedflare/bot-check`",
            source="gitgud.io/fatchan/haproxy-protection, src/lua/scripts/bot-check.lua",
            target=r"^[^/]*/\.basedflare/",
        ),
        Sign(
            about="page with `/.basedflare/`",
            source="gitgud.io/fatchan/haproxy-protection, src/lua/scripts/bot-check.lua",
            body=("/.basedflare/",),
        ),
    ),
    "reblaze": (
        Sign(
            about="247 and a cookie `rbzid`",
            source=_DETECTOR,
            statuses=frozenset({247}),
            cookie=r"rbzid=.*",
        ),
    ),
    "privacy-pass": (
        Sign(
            about="401 with `WWW-Authenticate: PrivateToken` and no other scheme",
            source="RFC 9577, 2.1",
            statuses=frozenset({401}),
            fields={
                "www-authenticate": r"(?!.*(^|,)\s*(basic|bearer|digest|dpop|gnap|hoba|mutual|negotiate|ntlm|oauth)\b)"
                r"\s*PrivateToken\b.*"
            },
        ),
    ),
    "linkedin": (
        Sign(
            about="999 of `linkedin.com`",
            source=_DETECTOR,
            statuses=frozenset({999}),
            host=r"(.*\.)?linkedin\.[a-z]+(:\d+)?",
        ),
    ),
    "silverchair": (
        Sign(
            about="redirect to `/crawlprevention/governor`",
            source=_QUOTED,
            target=r"^[^/]*/crawlprevention/",
        ),
    ),
    "tollbit": (
        Sign(
            about="redirect to a host whose first label is `tollbit`",
            source="docs.tollbit.com; " + _QUOTED,
            target=r"^tollbit\.[^./]+\.[^/]",
        ),
    ),
    "queue-it": (*_captcha("redirect to `*.queue-it.net`", _QUOTED, "queue-it.net"),),
    "google": (
        Sign(
            about="redirect to `google.…/sorry/`",
            source="support.google.com/websearch/answer/86640",
            target=r"^([\w-]+\.)*google(\.[a-z]{2,3}){1,2}/sorry/",
        ),
    ),
    "recaptcha": _captcha(
        "redirect to `google.com/recaptcha/` or `recaptcha.net`",
        _DETECTOR,
        "recaptcha.net",
        "www.google.com/recaptcha",
        body=("/recaptcha/",),
    ),
    "hcaptcha": _captcha("redirect to `*.hcaptcha.com`", _DETECTOR, "hcaptcha.com", body=("hcaptcha.com",)),
    "friendly-captcha": _captcha(
        "redirect to `*.friendlycaptcha.com` or `.eu`",
        _DETECTOR,
        "friendlycaptcha.com",
        "friendlycaptcha.eu",
        body=("frc-captcha",),
    ),
    "geetest": _captcha("redirect to `*.geetest.com`", _DETECTOR, "geetest.com", "geevisit.com", body=("geetest.com",)),
    "arkose": _captcha(
        "redirect to `*.arkoselabs.com` or `*.funcaptcha.com`",
        _DETECTOR,
        "arkoselabs.com",
        "funcaptcha.com",
        body=("arkoselabs.com",),
    ),
    "captcha-eu": _captcha("redirect to `*.captcha.eu`", _DETECTOR, "captcha.eu", body=("captcha.eu",)),
    "tencent-captcha": _captcha(
        "redirect to `*.captcha.qcloud.com` or `captcha.qq.com`",
        _DETECTOR,
        "captcha.qcloud.com",
        "captcha.qq.com",
        body=("TencentCaptcha",),
    ),
    "alibaba": (
        Sign(about="redirect to `/punish?x5secdata=…`", source=_DETECTOR, target=r"^[^?]*/punish\?(.*&)?x5secdata="),
        Sign(about="page with `x5secdata`", source=_DETECTOR, body=("x5secdata",)),
    ),
    "yandex": (
        Sign(
            about="redirect to `/showcaptcha`",
            source=_QUOTED,
            target=r"^[^/]*/showcaptcha(fast)?(\?|$)",
        ),
    ),
    UNNAMED: (
        Sign(
            about="999 of another host",
            source="github.com/tcort/link-check/issues; no standard has this status",
            statuses=frozenset({999}),
        ),
        Sign(
            about="redirect to `/captcha`, `/recaptcha`, `/bot-check` or a name like them, at the root of a host",
            source="github.com/solgenomics/sgn/pull/6190; docs.bunkerweb.io, ANTIBOT_URI",
            target=r"^[^/]*/([\w-]+[-_])?(re|h)?(captcha|bot-?check|bot_check|human-?check|antibot)"
            r"([-_](challenge|check|page|verify))?(\.[a-z]{3,5})?/?(\?|$)",
        ),
        Sign(
            about="redirect to a host whose first label is `captcha`",
            source="github.com/solgenomics/sgn/pull/6190",
            target=r"^captcha\.[^./]+\.[^/]",
        ),
    ),
}


def _with(part: str) -> list[tuple[str, Sign]]:
    return [(product, sign) for product, signs in WALLS.items() for sign in signs if getattr(sign, part)]


_BY_TARGET, _BY_BODY, _BY_COOKIE = _with("target"), _with("body"), _with("cookie")
#: Signs of a head without a cookie, by the first field that they need; those that are told by the status alone apart.
_BY_FIELD: dict[str, list[tuple[str, Sign]]] = {}
_BY_STATUS: list[tuple[str, Sign]] = []
for _product, _signs in WALLS.items():
    for _sign in _signs:
        if not (_sign.target or _sign.body or _sign.cookie):
            _of_field = _BY_FIELD.setdefault(next(iter(_sign.fields)), []) if _sign.fields else _BY_STATUS
            _of_field.append((_product, _sign))
_STATUSES = frozenset(status for _, sign in _BY_STATUS for status in sign.statuses or ())
#: Any cookie of a sign: most cookies are none, and every answer is looked at.
_ANY_COOKIE = "|".join(f"(?:{sign.cookie})" for _, sign in _BY_COOKIE)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """The pattern of a sign, compiled when it is first needed: all of them take a hundredth of a command's start."""
    return re.compile(text, re.IGNORECASE)


def shows(sign: Sign, outcome: Outcome, host: str = "") -> bool:
    """Whether the head of an answer has a sign that is told by status, fields and cookies."""
    if sign.statuses is not None and outcome.status not in sign.statuses:
        return False
    if sign.host is not None and not _pattern(sign.host).fullmatch(host):
        return False
    if any(not _pattern(text).fullmatch(outcome.headers.get(name, "").strip()) for name, text in sign.fields.items()):
        return False
    return sign.cookie is None or any(map(_pattern(sign.cookie).fullmatch, _pairs(outcome.set_cookie)))


def wall_of_answer(outcome: Outcome, host: str = "") -> Wall | None:
    """The wall that the head of an answer shows; None where it shows none, and where no answer came.

    `host`: the one that was asked, where a product is to be named by it.
    """
    if outcome.status is None:
        return None
    signs = [sign for name, of_field in _BY_FIELD.items() if name in outcome.headers for sign in of_field]
    if outcome.status in _STATUSES:
        signs += _BY_STATUS
    if outcome.set_cookie and any(map(_pattern(_ANY_COOKIE).fullmatch, _pairs(outcome.set_cookie))):
        signs += _BY_COOKIE
    return _named(product for product, sign in signs if shows(sign, outcome, host)) if signs else None


def wall_of_redirect(target: Target, status: int) -> Wall | None:
    """The wall that a redirect leads to, by its target alone; None where it leads to none. `status`: of the answer that
    redirects."""
    place = f"{target.host}{target.request_target}"
    return _named(
        product
        for product, sign in _BY_TARGET
        if sign.target is not None
        and _pattern(sign.target).search(place)
        and (sign.statuses is None or status in sign.statuses)
    )


def wall_of_page(body: bytes) -> Wall | None:
    """The wall that an HTML page is; None where it is none. `body`: its first BODY_LIMIT bytes."""
    text = body[:BODY_LIMIT].decode("latin-1")
    bare = len(body) < BODY_LIMIT and len(_visible(text)) < _MOST_VISIBLE
    return _named(
        product for product, sign in _BY_BODY if (bare or not sign.bare) and all(part in text for part in sign.body)
    )


def _visible(text: str) -> str:
    """The text of a page that it shows, white space folded."""
    for opening, closing in _HIDDEN:
        text = _without(text, opening, closing)
    return " ".join(re.sub(r"<[^<>]*>?", " ", text).split())


def _without(text: str, opening: str, closing: str) -> str:
    """The text less what stands between openings and closings; what is never closed goes to the end."""
    kept, at, lower = [], 0, text.lower()
    while (start := lower.find(opening, at)) >= 0:
        kept.append(text[at:start])
        end = lower.find(closing, start)
        if end < 0:
            return " ".join(kept)
        at = end + len(closing)
    return " ".join([*kept, text[at:]])


def _pairs(set_cookie: Sequence[str]) -> Iterator[str]:
    """`name=value` of each Set-Cookie line (RFC 6265, 5.2); no value is left of one that Max-Age clears."""
    for line in set_cookie:
        pair, _, attributes = line.partition(";")
        name, _, value = (part.strip() for part in pair.partition("="))
        cleared = _CLEARED.search(attributes)
        yield f"{name}={'' if cleared else value}"


def _named(products: Iterator[str]) -> Wall | None:
    """The wall of the first product; one that has a name goes before those without."""
    found = sorted(products, key=lambda product: product == UNNAMED)
    return Wall(found[0] or None) if found else None
