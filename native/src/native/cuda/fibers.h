// CUDA threads as fibers on a CPU: what a `.cu` file needs to be compiled by g++ and run under sanitizers.
//
// A block's threads are fibers on one OS thread; blocks of a plain launch are spread over OS threads. A fiber runs until it
// meets a barrier or a warp collective, then another one does: in order for seed 0, in a random, reproducible order
// otherwise. Mistakes end the process with a line on stderr that names block, thread and lane:
//   - a barrier or collective that some threads never reach (deadlock report), a lane outside its own mask,
//   - lanes of one mask in different collectives, a shuffle from a lane that does not take part.
// Out of bounds and uninitialised reads are found by ASan/UBSan (dynamic shared memory and device memory are heap blocks,
// filled with NaN), data races by TSan, to which every fiber is a thread that only barriers order.
//
// Rules for kernels: launch with `launch(...)`, dynamic shared memory with CU_DYNAMIC_SHARED, no textures, tensor-core and
// asynchronous-copy steps through matrix.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

namespace treeward::fibers {

constexpr unsigned kWarp = 32;
constexpr std::size_t kSlotBytes = 32;

// What one lane hands to the others in a warp collective.
struct alignas(8) Slot {
  unsigned char bytes[kSlotBytes];
};

struct Place {
  uint3 thread;
  uint3 block;
  dim3 blockSize;
  dim3 gridSize;
  unsigned lane;
  unsigned char* dynamicShared;
};

struct Shape {
  dim3 grid;
  dim3 block;
  std::size_t sharedBytes;
  bool cooperative;  // all blocks alive at once, gridBarrier allowed
};

extern thread_local const Place* place;  // of the running fiber

// Runs `body` once per CUDA thread; returns when all are done.
void run(const Shape& shape, const std::function<void()>& body);

// Schedules of the launches that follow: 0 = in order. The environment variable TREEWARD_FIBERS_SEED sets the first one.
void setSeed(std::uint64_t seed);

// `line` tells barriers apart: threads of one block that meet at different ones are a mistake.
void blockBarrier(int line);
int blockBarrierReduce(int predicate, char operation, int line);  // '|', '&', '+'
void gridBarrier();
// Memory-ordering meeting point of the lanes in `mask`.
void warpBarrier(unsigned mask);
// Hands `bytes` bytes to the other lanes of `mask` and returns everyone's slots, valid until this lane's next collective.
// `tag` names the operation: lanes that meet in different ones are a mistake. `*active` gets the lanes that took part.
const Slot* exchange(unsigned mask, int tag, const void* data, std::size_t bytes, unsigned* active);
// The tensor cores' products, c += a b (fiber_matrix.cc): 16 x 16 of bf16 pairs or 16 x 8 of floats by 8 columns, this lane's part of each.
void multiplyBf16(float* c, const unsigned* a, const unsigned* b);
void multiplyTf32(float* c, const unsigned* a, const unsigned* b);
// Lets other fibers run (a spinning wait).
void yield();
[[noreturn]] void fail(const char* what);

}  // namespace treeward::fibers
