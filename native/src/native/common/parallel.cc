#include "common/parallel.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace treeward {

unsigned threadCap() {
  static const unsigned cap = [] {
    const char* text = std::getenv("TREEWARD_NATIVE_THREADS");
    const unsigned long wanted = text ? std::strtoul(text, nullptr, 10) : 1;
    const unsigned long most = std::max(1u, std::thread::hardware_concurrency());
    return static_cast<unsigned>(std::clamp(wanted, 1ul, most));
  }();
  return cap;
}

void parallelFor(std::size_t count, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& work) {
  const std::size_t pieces = std::min<std::size_t>(threadCap(), std::max<std::size_t>(1, count / std::max<std::size_t>(1, grain)));
  if (pieces <= 1) {
    if (count) work(0, count);
    return;
  }
  std::vector<std::exception_ptr> failures(pieces);
  const auto piece = [&](std::size_t p) {
    try {
      work(count * p / pieces, count * (p + 1) / pieces);
    } catch (...) {
      failures[p] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t p = 1; p < pieces; ++p) threads.emplace_back(piece, p);
  piece(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace treeward
