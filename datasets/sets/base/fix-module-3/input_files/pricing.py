"""Prices in cents. All rounding is to the nearest cent, halves up."""


def discount(count):
    """Percent off: 8 from 40 pieces on, else 0."""
    return 8 if count > 40 else 0


def shipping(cents):
    """600 cents; nothing for goods of 15000 cents or more."""
    return 0 if cents > 15000 else 600


def total(count, price):
    """Discounted goods plus shipping; shipping depends on the discounted goods."""
    goods = (count * price * (100 - discount(count)) + 50) // 100
    return goods + shipping(count * price)
