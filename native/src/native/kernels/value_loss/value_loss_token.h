// The formula for one token, shared by the backends.
#pragma once
#include "common/inline.h"
#include "kernels/value_loss/value_loss.h"

namespace treeward {

enum ValueSum { kValueLoss, kValueClipped, kValueTokens, kValueTarget, kValueTargetSquares, kValueError, kValueErrorSquares };

template <class Real>
struct ValueTokenResult {
  Real loss, grad, error;
  bool clipped;
};

template <class Real>
TREEWARD_HD ValueTokenResult<Real> valueToken(Real value, Real old, Real target, Real mask, Real clip) {
  ValueTokenResult<Real> r;
  const Real low = old - clip, high = old + clip;
  const Real bounded = value < low ? low : (value > high ? high : value);
  r.error = value - target;
  const Real boundedError = bounded - target;
  const Real plain = r.error * r.error, clippedLoss = boundedError * boundedError;
  r.clipped = clippedLoss > plain;
  r.loss = Real(0.5) * mask * (r.clipped ? clippedLoss : plain);
  // The clipped branch is larger only where it is the constant bound.
  r.grad = r.clipped ? Real(0) : mask * r.error;
  return r;
}

}  // namespace treeward
