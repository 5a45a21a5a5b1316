from report import report
from store import fetch, fetch_one

handlers = {"fetch": fetch}
print(report("rows.txt"))
print(handlers["fetch"]("rows.txt")[-1], fetch_one("rows.txt", 0))
