from pricing import discount, total

assert discount(40) == 11, "discount at the limit"
assert discount(39) == 0, "no discount below"
assert total(40, 751) == 27636, "shipping after the discount"
print("ok")
