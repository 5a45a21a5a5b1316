"""Reading: amounts in cents, the last row of an id."""


def parse_amount(text):
    text = text.replace(",", "")
    return round(float(text) * 100)


def latest(rows):
    found = {}
    for row in rows:
        found.setdefault(row["id"], row)
    return list(found.values())
