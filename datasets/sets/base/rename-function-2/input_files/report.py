import store
from store import prefetch


def report(path):
    rows = store.fetch(path)
    first = prefetch(path)
    return "fetch: %d rows, %d first" % (len(rows), len(first))
