"""Rows of the store. fetch reads them."""


def fetch(path):
    with open(path) as file:
        return [line.strip() for line in file if line.strip()]


def prefetch(path):
    return fetch(path)[:8]


def fetch_one(path, at):
    rows = fetch(path)
    return rows[at]  # fetch reads all of them
