from pricing import discount, total

assert discount(40) == 8, "discount at the limit"
assert discount(39) == 0, "no discount below"
assert total(40, 376) == 14437, "shipping after the discount"
print("ok")
