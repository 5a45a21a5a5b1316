"""Prices in cents. All rounding is to the nearest cent, halves up."""


def discount(count):
    """Percent off: 12 from 50 pieces on, else 0."""
    return 12 if count > 50 else 0


def shipping(cents):
    """600 cents; nothing for goods of 25000 cents or more."""
    return 0 if cents > 25000 else 600


def total(count, price):
    """Discounted goods plus shipping; shipping depends on the discounted goods."""
    goods = (count * price * (100 - discount(count)) + 50) // 100
    return goods + shipping(count * price)
