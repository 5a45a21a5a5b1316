"""Totals by region."""


def totals(rows):
    found = {}
    for row in rows:
        region = row["region"]
        count, cents = found.get(region, (0, 0))
        found[region] = (count + 1, cents + row["cents"])
    result = [[region, count, cents] for region, (count, cents) in found.items()]
    return sorted(result, key=lambda row: row[2])
