"""Prices in cents. All rounding is to the nearest cent, halves up."""


def discount(count):
    """Percent off: 11 from 40 pieces on, else 0."""
    return 11 if count > 40 else 0


def shipping(cents):
    """900 cents; nothing for goods of 30000 cents or more."""
    return 0 if cents > 30000 else 900


def total(count, price):
    """Discounted goods plus shipping; shipping depends on the discounted goods."""
    goods = (count * price * (100 - discount(count)) + 50) // 100
    return goods + shipping(count * price)
