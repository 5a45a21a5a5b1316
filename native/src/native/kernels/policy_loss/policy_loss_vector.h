// The fast path of policyLossCpu.
#pragma once
#include "kernels/policy_loss/policy_loss_token.h"

namespace treeward {

// Whether policyLossPiece computes these options.
bool policyLossIsPlain(const PolicyLossInput& input, const PolicyLossOptions& options);

// Gradients and kPolicySums sums of tokens [start, end). `pastCaches` wants grad_T + start at a multiple of 16 bytes. False when
// the tokens may hold a value that checkPolicyLossValues refuses.
bool policyLossPiece(const PolicyLossInput& input, const PolicyLossTerms<float>& terms, std::size_t start, std::size_t end, bool pastCaches,
                     float* gradLogp_T, double* sums);

}  // namespace treeward
