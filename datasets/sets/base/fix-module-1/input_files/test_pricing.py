from pricing import discount, total

assert discount(50) == 12, "discount at the limit"
assert discount(49) == 0, "no discount below"
assert total(50, 501) == 22644, "shipping after the discount"
print("ok")
