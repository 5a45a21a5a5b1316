from report import report
from store import scan, scan_one

handlers = {"scan": scan}
print(report("rows.txt"))
print(handlers["scan"]("rows.txt")[-1], scan_one("rows.txt", 0))
