// Threads of the CPU kernels: as many as TREEWARD_NATIVE_THREADS says, 1 otherwise (on shared cores one is often faster, and
// the learner's own threads compete).
#pragma once
#include <cstddef>
#include <functional>

namespace treeward {

// The cap, at least 1 and at most the processor's.
unsigned threadCap();

// Calls work(begin, end) for pieces that cover [0, count), on up to threadCap() threads; `grain` items are the least worth
// a thread. Pieces are disjoint and fixed by count and cap. An exception of `work` is thrown again here.
void parallelFor(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& work);

}  // namespace treeward
