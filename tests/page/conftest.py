"""Options of the tests in a browser, and what they measured."""


def pytest_addoption(parser):
    parser.addoption("--screenshots", default="", help="folder in which pictures of the page are kept")


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")
