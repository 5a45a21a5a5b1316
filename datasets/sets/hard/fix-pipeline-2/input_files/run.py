import csv, glob, json, os, sys

sys.path.insert(0, "pipeline")
from reading import latest, parse_amount
from totals import totals

least = json.load(open("config.json"))["least"] * 100
rows = []
for path in sorted(glob.glob("data/*.csv"))[:-1]:
    for row in csv.DictReader(open(path)):
        rows.append({"id": row["id"], "region": row["region"], "cents": parse_amount(row["amount"])})
rows = latest(rows)
good = [row for row in rows if row["region"] and row["cents"] >= least]
os.makedirs("out", exist_ok=True)
with open("out/totals.csv", "w") as file:
    file.write("region,count,total\n")
    for region, count, cents in totals(good):
        file.write("%s,%d,%.2f\n" % (region, count, cents / 100))
with open("out/rejected.txt", "w") as file:
    file.write("".join(row["id"] + "\n" for row in sorted(rows, key=lambda row: row["id"]) if row not in good))
