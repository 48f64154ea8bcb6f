"""The page of `pdofm studio` in a real browser: `make test-page`, which needs Chromium and its driver.

Run with `--screenshots FOLDER` to keep pictures of the page.
"""

import shutil
import statistics
import threading
import time

import pytest

import pdofm as pf
from pdofm.studio import Studio
from pdofm.studio.work import Session

webdriver = pytest.importorskip("selenium.webdriver", reason="the page is tested by make test-page")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

pytestmark = [pytest.mark.page, pytest.mark.filterwarnings("ignore")]

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]


def opened(url, width=1280, height=900, *more):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    for flag in [*FLAGS, f"--window-size={width},{height}", *more]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver") or "/usr/bin/chromedriver")
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_window_size(width, height)
    browser.get(url)
    Page(browser).wait_for("Ready")
    return browser


class Page:
    """What a user sees and does."""

    def __init__(self, browser):
        self.browser = browser

    def __getitem__(self, css):
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def wait(self, condition, seconds=90):
        return WebDriverWait(self.browser, seconds, poll_frequency=0.05).until(lambda _: condition())

    def wait_for(self, word):
        self.wait(lambda: word in self["#status"].text)

    def type(self, css, text):
        self[css].clear()
        self[css].send_keys(text)

    def solve(self):
        self.wait(self["#solve"].is_enabled)
        self["#solve"].click()
        self.wait(lambda: any(word in self["#status"].text for word in ("Solved", "Not converged", "error")))

    def to_pixels(self, x, y):
        """The pixel of a point of the domain, from the middle of the canvas, as ActionChains wants it."""
        return self.browser.execute_script(
            "const c = document.getElementById('picture');"
            "const b = JSON.parse(c.dataset.bounds), s = Number(c.dataset.scale);"
            "return [(arguments[0] - (b[0][0] + b[0][1]) / 2) * s, ((b[1][0] + b[1][1]) / 2 - arguments[1]) * s]"
            ".map(Math.round);",
            x, y,
        )  # fmt: skip

    @property
    def followed(self):
        """How often the picture has followed a handle."""
        return int(self["#dragged"].get_attribute("data-count") or 0)

    def drag(self, start, end, steps=10):
        """Press, move in steps and release; returns how long the page took to follow each move, in seconds."""
        chain = ActionChains(self.browser, duration=0)
        chain.move_to_element_with_offset(self["#picture"], *self.to_pixels(*start)).click_and_hold().perform()
        times, here = [], self.to_pixels(*start)
        for i in range(1, steps + 1):
            there = self.to_pixels(*(a + (b - a) * i / steps for a, b in zip(start, end, strict=True)))
            before = self.followed
            ActionChains(self.browser, duration=0).move_by_offset(there[0] - here[0], there[1] - here[1]).perform()
            here = there
            if self["#result"].is_displayed():
                self.wait(lambda before=before: self.followed > before)
                times.append(float(self["#dragged"].get_attribute("data-milliseconds")) / 1000)
        ActionChains(self.browser, duration=0).release().perform()
        return times

    def complaints(self):
        """What the browser has reported: errors of scripts, refused or missing files."""
        return [entry["message"] for entry in self.browser.get_log("browser")]


@pytest.fixture(scope="module")
def server():
    with Studio() as studio:
        threading.Thread(target=studio.serve_forever, daemon=True).start()
        yield studio
        studio.shutdown()


@pytest.fixture(scope="module")
def browser(server):
    found = opened(server.url)
    yield found
    found.quit()


@pytest.fixture
def page(browser, server):
    browser.get("about:blank")  # ends the requests of the page before
    server.session = Session()  # as if it had just been started
    browser.get(server.url)
    page = Page(browser)
    page.wait_for("Ready")
    browser.execute_script("scrollTo(0, 0)")
    page.type("#tol", "1e-3")
    yield page
    assert page.complaints() == []


def test_a_problem_is_solved_and_a_dragged_source_is_followed(page, record_property):
    page.solve()
    assert "✓" in page["#verdict"].text
    assert page["#attempts"].find_elements(By.TAG_NAME, "tr")
    assert "estimated relative error" in page["#numbers"].text
    times = page.drag((-0.5, -0.3), (-0.6, 0.5), steps=15)
    assert len(times) == 15
    record_property("seconds to follow a dragged source, median of 15", round(statistics.median(times), 3))
    numbers = page['[data-field="handle.p"]'].get_attribute("value").split(",")
    assert [float(each) for each in numbers] == pytest.approx([-0.6, 0.5], abs=0.01)  # a pixel


def test_a_wrong_formula_is_refused_at_its_field_and_a_right_one_accepted(page):
    field = '[data-field="equations.0.right"]'
    page.type(field, "alert(1)")
    page.wait(lambda: page[field].get_attribute("aria-invalid") == "true")
    page.wait(lambda: "not a function of formulas" in page['[data-error="equations.0.right"]'].text)
    assert not page["#solve"].is_enabled()
    page.type(field, "1")
    page.wait(lambda: page[field].get_attribute("aria-invalid") is None)
    page.solve()
    assert "source=lambda x: 1," in page["#code"].get_attribute("textContent")


def test_shapes_are_drawn_with_the_mouse_and_typed_as_numbers(page):
    shapes = lambda: len(page.browser.find_elements(By.CSS_SELECTOR, "#shapes li"))
    page['[data-tool="disk"]'].click()
    page["#cut"].click()
    page.drag((-0.4, 0.5), (-0.2, 0.5))
    page.wait(lambda: shapes() == 3)
    radius = float(page['[data-field="shapes.2"]'].get_attribute("value").split(", ")[2])
    assert radius == pytest.approx(0.2, abs=0.01)  # a pixel
    page.wait(lambda: page.browser.execute_script("return JSON.parse(picture.dataset.parts)").count("circle#2") == 1)
    page['[data-tool="polygon"]'].click()
    for corner in ((0.8, 0.8), (1.0, 1.0), (0.6, 1.0)):
        place = page.to_pixels(*corner)
        ActionChains(page.browser, duration=0).move_to_element_with_offset(page["#picture"], *place).click().perform()
    page["#picture"].send_keys(Keys.ENTER)
    page.wait(lambda: shapes() == 4)
    page.type('[data-field="shapes.2"]', "0, 0, nonsense")
    page.wait(lambda: "numbers between" in page['[data-error="shapes"]'].text)


def test_everything_works_with_the_keyboard(page):
    page["#picture"].send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page['[data-field="handle.p"]'].get_attribute("value").startswith("-0.48"))
    page['[data-field="handle.p"]'].send_keys(Keys.ENTER)  # Enter in a form solves
    page.wait(lambda: "✓" in page["#verdict"].text or "!" in page["#verdict"].text)
    reached = set()
    page["h1"].click()
    for _ in range(60):
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        reached.add(page.browser.switch_to.active_element.get_attribute("id"))
    assert {"solve", "preset", "parameters", "picture", "tol", "compare"} <= reached


@pytest.mark.parametrize("preset", ["Helmholtz", "heat", "elasticity"])
def test_equations_of_other_kinds_are_solved(page, preset):
    Select(page["#preset"]).select_by_visible_text(preset)
    page['[aria-label="remove shape 2"]'].click()
    page.type("#tol", "1e-2")
    page.solve()
    assert page["#result"].is_displayed()
    assert page["#time-label"].is_displayed() == (preset == "heat")
    assert page["#component-label"].is_displayed() == (preset == "elasticity")
    if preset == "elasticity":
        Select(page["#component"]).select_by_visible_text("v")
    if preset == "heat":
        page["#time"].send_keys(Keys.HOME)
        page.wait(lambda: abs(float(page["#high"].text)) < 0.08)  # it begins at zero, up to 1 % of what follows


def test_learned_features_are_compared_with_untrained_ones(page):
    page.solve()
    page.type("#size", "40")
    page.type("#steps", "5")
    page["#compare"].click()
    page.wait(lambda: len(page.browser.find_elements(By.CSS_SELECTOR, "#compared tbody tr")) == 2)
    assert "trained for this problem, 5 steps" in page["#compared"].text


def test_files_and_python_are_what_the_page_shows(page, server, tmp_path):
    page.browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page['[aria-label="remove shape 2"]'].click()
    page.solve()
    for link in page.browser.find_elements(By.CSS_SELECTOR, "a.button"):
        link.click()
    for name in ("picture.png", "solution.vtu", "solution.pdofm"):
        page.wait(lambda name=name: (tmp_path / name).exists(), 30)
    page.wait(lambda: not list(tmp_path.glob("*.crdownload")), 30)
    assert pf.load(tmp_path / "solution.pdofm").converged
    page["#python summary"].click()
    assert page["#code"].text.startswith("import jax.numpy as jnp")


def test_a_page_that_is_loaded_again_shows_what_it_showed(page, server):
    page.type("#parameters", "k = 7")
    page.wait(lambda: "k = 7" in page["#code"].get_attribute("textContent"))
    page.browser.refresh()
    page.wait_for("Ready")
    assert page["#parameters"].get_attribute("value") == "k = 7"


@pytest.mark.parametrize("size", [(1280, 900), (390, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_small_windows_and_dark_mode_and_asks_no_other_host(server, size, scheme, request):
    server.session.__init__()
    browser = opened(server.url, *size)
    try:
        page = Page(browser)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        page.type("#tol", "1e-3")
        page.solve()
        time.sleep(0.3)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        brightness = sum(int(each) for each in colour[4:-1].split(",")) / 3
        assert (brightness < 60) == (scheme == "dark")
        asked = browser.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)")
        assert asked
        assert all(name.startswith((server.url, "data:")) for name in asked), asked
        folder = request.config.getoption("--screenshots")
        if folder:
            browser.execute_script("scrollTo(0, 0)")
            browser.save_screenshot(f"{folder}/studio-{scheme}-{size[0]}.png")
        assert page.complaints() == []
    finally:
        browser.quit()


def test_the_address_without_its_token_shows_nothing(browser, server):
    browser.get(f"http://127.0.0.1:{server.server_port}/")
    assert "pdofm studio" in browser.page_source
    assert "<form" not in browser.page_source
    browser.get_log("browser")  # it reports the refusal
