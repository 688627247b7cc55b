"""The report in a real Chromium: it shows, sorts, has two themes, fits a phone, and asks the network for nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from linkcrawl.reports.make import make_report
from linkcrawl.reports.page import page
from linkcrawl.stores.opening import open_store
from scripts.programs import path_of
from tests.contract.making import entry
from tests.unit.report_kit import NOW, fill

DESKTOP, PHONE = (1280, 900), (360, 740)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    chromium, driven_by = path_of("chromium"), path_of("chromedriver")
    if chromium is None or driven_by is None:
        pytest.skip("chromium and chromedriver are not both on PATH: `make test` says what would work")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # Whatever the page might ask for has no address: a request would show in the log.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driven_by))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    store = open_store(f"sqlite:///{folder}/links.db")
    fill(store, 500, random.Random(5))
    made = folder / "report.html"
    made.write_bytes(page(make_report(store, NOW, 1.0)))
    store.close()
    return made


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def show(browser: webdriver.Chrome, file: Path, size: tuple[int, int] = DESKTOP, theme: str = "light") -> None:
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size is PHONE}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(file.as_uri())


def requested(browser: webdriver.Chrome) -> list[str]:
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    return [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]


def brightness(browser: webdriver.Chrome, name: str) -> float:
    """Of a colour of the page, 0 to 255."""
    script = f"return getComputedStyle(document.documentElement).{name}.match(/[0-9]+/g).slice(0, 3).map(Number)"
    return sum(browser.execute_script(script)) / 3  # type: ignore[no-any-return]


def column(browser: webdriver.Chrome, table: str, index: int) -> list[Any]:
    script = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.dataset.value ?? cell.textContent)"
    return browser.execute_script(script, f"#{table} tbody tr > :nth-child({index})")  # type: ignore[no-any-return]


def title(browser: webdriver.Chrome, table: str, index: int) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f"#{table} th:nth-child({index}) button")


def click(browser: webdriver.Chrome, element: WebElement) -> None:
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", element)
    element.click()


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_it_shows_without_an_error_and_asks_for_nothing(
    browser: webdriver.Chrome, file: Path, size: tuple[int, int], theme: str
) -> None:
    show(browser, file, size, theme)
    assert browser.find_element(By.TAG_NAME, "h1").text == "Link report"
    charts = browser.find_elements(By.CSS_SELECTOR, "svg.chart")
    assert len(charts) == 2
    assert all(chart.size["width"] > 250 and chart.size["height"] > 100 for chart in charts)
    for table in ("categories", "collections", "providers", "slowest", "moves", "hosts"):
        assert browser.find_element(By.ID, table).is_displayed()
    assert browser.get_log("browser") == []
    assert requested(browser) == [file.as_uri()]


def test_only_tables_are_wider_than_a_phone(browser: webdriver.Chrome, file: Path) -> None:
    show(browser, file, PHONE)
    assert browser.execute_script("return document.documentElement.scrollWidth") == PHONE[0]
    assert browser.execute_script("return document.querySelector('#categories').scrollWidth") <= PHONE[0]
    sizes = "[...document.querySelectorAll('td, p, dt, dd')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    assert browser.execute_script(f"return Math.min(...{sizes})") >= 12
    height = "[...document.querySelectorAll('.chart text')].map(text => text.getBoundingClientRect().height)"
    assert browser.execute_script(f"return Math.min(...{height})") >= 12


def test_it_follows_the_readers_theme_and_can_be_switched(browser: webdriver.Chrome, file: Path, theme: str) -> None:
    show(browser, file, theme=theme)
    for dark in (theme == "dark", theme != "dark", theme == "dark"):
        paper, ink = brightness(browser, "backgroundColor"), brightness(browser, "color")
        assert (paper < 60 < 180 < ink) if dark else (ink < 60 < 180 < paper)
        click(browser, browser.find_element(By.ID, "theme"))


def test_a_click_sorts_numbers_largest_first_and_texts_from_a(browser: webdriver.Chrome, file: Path) -> None:
    show(browser, file)
    before = column(browser, "collections", 1)
    assert len(before) > 10
    click(browser, title(browser, "collections", 4))
    numbers = [float(value) for value in column(browser, "collections", 4)]
    assert numbers == sorted(numbers, reverse=True)
    click(browser, title(browser, "collections", 4))
    assert [float(value) for value in column(browser, "collections", 4)] == sorted(numbers)
    click(browser, title(browser, "collections", 1))
    names = column(browser, "collections", 1)
    assert sorted(names) == sorted(before)
    assert names == sorted(names, key=lambda name: (name.rsplit(" ", 1)[0].lower(), int(name.rsplit(" ", 1)[1])))
    sorted_by = browser.find_elements(By.CSS_SELECTOR, "#collections th[aria-sort]")
    assert [head.get_attribute("aria-sort") for head in sorted_by] == ["ascending"]
    assert browser.get_log("browser") == []


def test_a_number_shows_its_command_to_be_copied(browser: webdriver.Chrome, file: Path) -> None:
    show(browser, file)
    bar = browser.find_element(By.ID, "bar")
    assert not bar.is_displayed()
    button = browser.find_element(By.CSS_SELECTOR, "#collections button.n")
    click(browser, button)
    assert browser.find_element(By.ID, "command").text == button.get_attribute("data-command")
    click(browser, browser.find_element(By.ID, "copy"))
    copied = "return document.getElementById('copy').textContent"
    assert browser.execute_async_script(f"setTimeout(() => arguments[0]((() => {{ {copied} }})()), 200)") == "Copied"
    assert browser.execute_script("return String(getSelection())") == button.get_attribute("data-command")
    click(browser, browser.find_element(By.ID, "close"))
    assert not bar.is_displayed()


def test_texts_are_sorted_as_texts_whatever_they_look_like(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """Numbers among them, or what a program takes for one, must not end in another order for each order before."""
    names = ["1a", "1e1", "2", "9", "10", "Infinity", "b 2", "b 10", "é", "z"]
    store = open_store(f"sqlite:///{tmp_path}/links.db")
    store.add([entry(n, collection=name) for n, name in enumerate(random.Random(2).sample(names, len(names)))])
    (tmp_path / "report.html").write_bytes(page(make_report(store, NOW, 1.0)))
    store.close()
    show(browser, tmp_path / "report.html")
    ordered = []
    for _ in range(3):
        click(browser, title(browser, "collections", 1))
        ordered.append(column(browser, "collections", 1))
    assert ordered == [ordered[0], ordered[0][::-1], ordered[0]]
    at = {name: place for place, name in enumerate(ordered[0])}
    assert at["2"] < at["9"] < at["10"] < at["b 2"] < at["b 10"] < at["é"] < at["Infinity"] < at["z"]


def test_the_keyboard_is_led_to_the_command_and_back(browser: webdriver.Chrome, file: Path) -> None:
    show(browser, file)
    focused = "return document.activeElement"
    button = browser.find_element(By.CSS_SELECTOR, "#collections button.n")
    button.send_keys(Keys.ENTER)
    assert browser.execute_script(focused).get_attribute("id") == "copy"
    browser.execute_script(focused).send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.ID, "bar").is_displayed()
    assert browser.execute_script(focused) == button


def test_each_cell_is_named_by_its_row_and_column(browser: webdriver.Chrome, file: Path) -> None:
    """For those who hear the page."""
    show(browser, file)
    for table in browser.find_elements(By.TAG_NAME, "table"):
        assert table.get_attribute("aria-label")
    unnamed = (
        "return document.querySelectorAll('tbody tr:not(:has(> th[scope=row])), thead th:not([scope=col])').length"
    )
    assert browser.execute_script(unnamed) == 0


def test_text_stands_out_from_what_is_behind_it(browser: webdriver.Chrome, file: Path, theme: str) -> None:
    """WCAG 2.2, 1.4.3: a contrast of at least 4.5."""
    show(browser, file, theme=theme)
    for ink in ("ink", "soft", "accent"):
        for paper in ("paper", "tint"):
            assert contrast(browser, ink, paper) >= 4.5, f"{ink} on {paper}"


def contrast(browser: webdriver.Chrome, *names: str) -> float:
    script = "return getComputedStyle(document.documentElement).getPropertyValue('--' + arguments[0]).trim().slice(1)"
    lights = []
    for name in names:
        digits = str(browser.execute_script(script, name))
        digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
        parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_on_paper_it_is_light_and_nothing_is_cut_off(browser: webdriver.Chrome, file: Path) -> None:
    show(browser, file, theme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert brightness(browser, "backgroundColor") > 180
    assert not browser.find_element(By.ID, "theme").is_displayed()
    overflow = "return getComputedStyle(document.querySelector('#collections').parentNode).overflowY"
    assert browser.execute_script(overflow) == "visible"
    # Chromium leaves buttons away where a table's head comes again on the next page.
    buttons = "return getComputedStyle(document.querySelector('#collections .sort')).display"
    assert browser.execute_script(buttons) == "contents"


def test_without_a_script_it_can_still_be_read(browser: webdriver.Chrome, file: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, file)
        assert browser.find_element(By.ID, "collections").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
