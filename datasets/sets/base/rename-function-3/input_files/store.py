"""Rows of the store. scan reads them."""


def scan(path):
    with open(path) as file:
        return [line.strip() for line in file if line.strip()]


def prescan(path):
    return scan(path)[:8]


def scan_one(path, at):
    rows = scan(path)
    return rows[at]  # scan reads all of them
