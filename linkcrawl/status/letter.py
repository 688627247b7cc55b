"""A letter to the administrator of a host that turns us away: what happened, how we ask, and the rule that would let us
in. Whoever runs the crawl sends it, or not.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from attrs import frozen

from linkcrawl import __version__
from linkcrawl.audit.pace import HostPace
from linkcrawl.check.verdict import sentence
from linkcrawl.config import Config
from linkcrawl.items import iso
from linkcrawl.status.refusals import CHALLENGED, Refusal
from linkcrawl.text import one_line, seconds_text

#: Collections that are named; of more, how many.
NAMED = 5

#: Products that take Cloudflare's rules.
_CLOUDFLARE = frozenset({"cloudflare", "turnstile"})

_NO_CONTACT = "(LINKCRAWL_CONTACT is not set: a URL or an e-mail address)"


@frozen(kw_only=True)
class Letter:
    """What is known of a host that turns us away. `delay`: seconds in force between the end of its answer and our next
    request; `origin`: what requires them. `pace`: out of the audit, None where it has nothing. `user_agent`: as it
    is sent, `product` and `contact` within it; the contact may be empty."""

    host: str
    refusals: tuple[Refusal, ...]
    delay: float
    origin: str
    pace: HostPace | None
    user_agent: str
    product: str
    contact: str

    @property
    def walls(self) -> tuple[str, ...]:
        """The products that were named, most links first."""
        return tuple(dict.fromkeys(refusal.wall for refusal in self.refusals if refusal.wall is not None))

    @property
    def links(self) -> int:
        """Links that the host keeps us from checking."""
        return sum(refusal.links for refusal in self.refusals)

    @property
    def since(self) -> float:
        """Unix seconds of the first refusal of these kinds."""
        return min(refusal.first for refusal in self.refusals)

    def collections(self) -> list[tuple[str, int]]:
        """Links that can't be checked, by collection, most first."""
        counts = Counter[str]()
        for refusal in self.refusals:
            counts.update(dict(refusal.collections))
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def row(self) -> dict[str, Any]:
        """The letter and its facts for JSON."""
        pace = self.pace
        return {
            "host": self.host,
            "walls": list(self.walls),
            "links": self.links,
            "since": iso(self.since),
            "refusals": [
                {
                    "reason": refusal.reason,
                    "status": refusal.status,
                    "wall": refusal.wall,
                    "links": refusal.links,
                    "collections": dict(refusal.collections),
                    "first": iso(refusal.first),
                    "last": iso(refusal.last),
                }
                for refusal in self.refusals
            ],
            "pace": None
            if pace is None
            else {
                "requests": pace.requests,
                "first": iso(pace.first),
                "last": iso(pace.last),
                "busiest_day": pace.busiest_day,
                "shortest_gap": None if pace.shortest_gap is None else round(pace.shortest_gap, 3),
            },
            "delay": round(self.delay, 3),
            "rules": dict(self.rules()),
            "text": self.text(),
        }

    def text(self) -> str:
        """The letter: its first line is the subject."""
        return "\n\n".join(
            [
                f"Subject: Links to {self.host} in a metadata catalogue: our link checker is turned away",
                f"Dear administrator of {self.host},",
                self._why(),
                "\n".join(["What happens:", *(f"- {self._happens(refusal)}" for refusal in self.refusals)]),
                "We take that for your decision and don't try to get past it. It also means that we can't tell our "
                "readers whether these links still lead to your resources. If you didn't mean us, one rule lets us in.",
                "\n".join(["How we ask:", *(f"- {line}" for line in self._manners())]),
                *(f"{title}:\n\n{_indented(rule)}" for title, rule in self.rules()),
                "If we ask too often, put a Crawl-delay for us into your robots.txt, or write to us. If you don't want "
                "us at all, a word is enough.",
                f"Kind regards,\n{self._sender()}",
            ]
        )

    def rules(self) -> list[tuple[str, str]]:
        """Title and text of each rule that would let us in: those of the products that were named, nginx' otherwise."""
        found = []
        if "anubis" in self.walls:
            found.append(("Anubis, in the bots of its policy file, before the rules that challenge", self._anubis()))
        if _CLOUDFLARE & set(self.walls):
            found.append(("Cloudflare, a custom rule with the action Skip (all remaining rules)", self._cloudflare()))
        others = [wall for wall in self.walls if wall != "anubis" and wall not in _CLOUDFLARE]
        if others or not found:
            named = f"; in the settings of {', '.join(others)}, allow the same User-Agent" if others else ""
            found.append((f"nginx, where it denies by User-Agent{named}", self._nginx()))
        return found

    def _why(self) -> str:
        collections = self.collections()
        names = ", ".join(f"{one_line(name)} ({count:,})" for name, count in collections[:NAMED])
        more = f" and {len(collections) - NAMED} more collections" if len(collections) > NAMED else ""
        of = f" They are in: {names}{more}." if names else ""
        return (
            f"we check whether the links of a metadata catalogue still work. {self.links:,} of them lead to your "
            f"server, which has turned us away since {_day(self.since)}.{of}"
        )

    def _happens(self, refusal: Refusal) -> str:
        status = "" if refusal.status is None else f"status {refusal.status}, "
        if refusal.reason == CHALLENGED:
            what = f"a challenge of {refusal.wall}" if refusal.wall else "a challenge for human visitors"
        else:
            what = sentence(refusal.reason).rstrip(".")
        return f"{what}: {status}{refusal.links:,} links, first on {_day(refusal.first)}, last on {_day(refusal.last)}"

    def _manners(self) -> list[str]:
        lines = [
            "one request at a time, by HEAD (GET where HEAD is not enough, without reading the resource); robots.txt "
            "and its Crawl-delay are kept",
            f"now {seconds_text(self.delay)} from the end of your answer to our next request ({self.origin})",
        ]
        pace = self.pace
        if pace is not None:
            gap = "" if pace.shortest_gap is None else f", never sooner than {pace.shortest_gap:.3g} s after an answer"
            lines.append(
                f"by our log {pace.requests:,} requests from {_day(pace.first)} to {_day(pace.last)}, at most "
                f"{pace.busiest_day:,} on one day{gap}"
            )
        return [*lines, f"User-Agent: {self.user_agent}"]

    def _sender(self) -> str:
        return self.contact.removeprefix("mailto:") or _NO_CONTACT

    def _pattern(self) -> str:
        """A regular expression for our User-Agent of every version; RE2 and PCRE read it alike."""
        contact = f".*{re.escape(self.contact)}" if self.contact else ""
        return rf"^{re.escape(self.product)}/[0-9.]+ \(" + contact

    def _anubis(self) -> str:
        quoted = self._pattern().replace("'", "''")
        return f"- name: {self.product}\n  user_agent_regex: '{quoted}'\n  action: ALLOW"

    def _cloudflare(self) -> str:
        terms = [f'starts_with(http.user_agent, "{self.product}/")']
        terms += [f'http.user_agent contains "{self.contact}"'] if self.contact else []
        return f"({' and '.join(terms)})"

    def _nginx(self) -> str:
        return (
            "map $http_user_agent $linkcrawl {\n"
            "    default 0;\n"
            f'    "~{self._pattern()}" 1;\n'
            "}\n"
            "# and right before your own `if ($block)`:\n"
            "if ($linkcrawl) { set $block 0; }"
        )


def write_letter(
    config: Config,
    host: str,
    refusals: tuple[Refusal, ...],
    *,
    delay: float,
    origin: str,
    pace: HostPace | None,
) -> Letter:
    """The letter to a host's administrator. ValueError where the host turns nothing away."""
    if not refusals:
        raise ValueError(f"{host} turns nothing of ours away")
    return Letter(
        host=host,
        refusals=refusals,
        delay=delay,
        origin=origin,
        pace=pace,
        user_agent=config.user_agent if config.contact else f"{config.product}/{__version__}",
        product=config.product,
        contact=config.contact,
    )


def _day(moment: float) -> str:
    return iso(moment)[:10]


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
