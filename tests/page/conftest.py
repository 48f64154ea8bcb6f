"""Options of the tests in a browser."""


def pytest_addoption(parser):
    parser.addoption("--screenshots", default="", help="folder in which pictures of the page are kept")
