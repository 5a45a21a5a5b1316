import store
from store import prescan


def report(path):
    rows = store.scan(path)
    first = prescan(path)
    return "scan: %d rows, %d first" % (len(rows), len(first))
