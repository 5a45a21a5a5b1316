def slides(b, c):
  return b * c