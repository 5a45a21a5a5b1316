#include "cuda/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TREEWARD_FIBERS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// Under TSan this file is compiled without instrumentation (its own state is no race of the kernel) and with this macro.
#ifndef __x86_64__
#error "the fiber switch is written for x86-64"
#endif

// Saves the callee-saved registers and the stack pointer, takes over the other's. What ucontext does without its system call.
extern "C" void treeward_fiber_switch(void** save, void* to);
asm(R"(.text
.globl treeward_fiber_switch
.hidden treeward_fiber_switch
.type treeward_fiber_switch,@function
treeward_fiber_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  pop %rcx
  jmp *%rcx
.size treeward_fiber_switch,.-treeward_fiber_switch
)");

namespace treeward::fibers {

thread_local const Place* place = nullptr;

namespace {

enum class Wait : std::uint8_t { none, block, grid, warp, done };

// Lanes of one mask that meet. Slots alternate by generation: a lane may enter the next meeting while others still read this
// one, but not the one after.
struct Meeting {
  unsigned mask = 0, arrived = 0, generation = 0, active[2] = {0, 0};
  int tag = 0;
  Slot slots[2][kWarp];
};

// Meetings are part of the warp rather than allocated by the lane that comes first: TSan would take that for a write.
constexpr unsigned kMasks = 8;
struct Warp {
  unsigned exited = 0, masks = 0;
  Meeting meetings[kMasks];
};

struct Fiber {
  Place place;
  void* stackPointer;
  char* stack;
  Warp* warp;
  Wait wait;
  unsigned generation;  // of the barrier or meeting waited for
  Meeting* meeting;
#if defined(TREEWARD_FIBERS_TSAN)
  void* tsan;
#endif
};

struct Block {
  unsigned alive = 0, arrived = 0, generation = 0;
  int any = 0, count = 0, resultAny = 0, resultCount = 0, resultOf = 0, line = 0;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::unique_ptr<unsigned char[]> shared;
  char* stacks = nullptr;
};

struct Worker {
  Shape shape;
  const std::function<void()>* body;
  Block* block = nullptr;
  Fiber* fiber = nullptr;
  void* stackPointer = nullptr;
  unsigned gridGeneration = 0;
  std::mt19937_64 random;
  bool shuffled = false;
#if defined(__SANITIZE_ADDRESS__)
  const void* stackBottom = nullptr;
  std::size_t stackSize = 0;
#endif
#if defined(TREEWARD_FIBERS_TSAN)
  void* tsan = nullptr;
#endif
};

thread_local Worker* worker = nullptr;

#if defined(__SANITIZE_ADDRESS__) || defined(TREEWARD_FIBERS_TSAN)
constexpr std::size_t kStackBytes = 256 << 10;
#else
// Not a power of two, so that the hot lines of different stacks fall into different cache sets.
constexpr std::size_t kStackBytes = (64 << 10) + 320;
#endif

std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::atomic<std::uint64_t>& seed() {
  static std::atomic<std::uint64_t> value{environment("TREEWARD_FIBERS_SEED", 0)};
  return value;
}

// Memory written before `publish` by one fiber is seen after `observe` by another.
void publish(void* where) {
#if defined(TREEWARD_FIBERS_TSAN)
  __tsan_release(where);
#else
  (void)where;
#endif
}
void observe(void* where) {
#if defined(TREEWARD_FIBERS_TSAN)
  __tsan_acquire(where);
#else
  (void)where;
#endif
}

void switchToWorker() {
  Worker* w = worker;
  Fiber* f = w->fiber;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(f->wait == Wait::done ? nullptr : &fake, w->stackBottom, w->stackSize);
#endif
#if defined(TREEWARD_FIBERS_TSAN)
  __tsan_switch_to_fiber(w->tsan, __tsan_switch_to_fiber_no_sync);
#endif
  treeward_fiber_switch(&f->stackPointer, w->stackPointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, &w->stackBottom, &w->stackSize);
#endif
}

void switchToFiber(Worker* w, Fiber* f) {
  w->fiber = f;
  place = &f->place;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, f->stack, kStackBytes);
#endif
#if defined(TREEWARD_FIBERS_TSAN)
  __tsan_switch_to_fiber(f->tsan, __tsan_switch_to_fiber_no_sync);
#endif
  treeward_fiber_switch(&w->stackPointer, f->stackPointer);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  w->fiber = nullptr;
  place = nullptr;
}

void settleBarrier(Block& b) {
  if (b.alive == 0 || b.arrived != b.alive) return;
  b.resultAny = b.any;
  b.resultCount = b.count;
  b.resultOf = static_cast<int>(b.arrived);
  b.any = b.count = 0;
  b.arrived = 0;
  ++b.generation;
}

void settleMeeting(Warp& warp, Meeting& m) {
  if (m.arrived == 0 || m.arrived != (m.mask & ~warp.exited)) return;
  m.active[m.generation & 1] = m.arrived;
  m.arrived = 0;
  ++m.generation;
}

void leave() {
  Worker* w = worker;
  Fiber* f = w->fiber;
  publish(w->block);
  f->wait = Wait::done;
  --w->block->alive;
  f->warp->exited |= 1u << f->place.lane;
  for (unsigned i = 0; i < f->warp->masks; ++i) settleMeeting(*f->warp, f->warp->meetings[i]);
  settleBarrier(*w->block);
  switchToWorker();
}

void entry() {
  Worker* w = worker;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &w->stackBottom, &w->stackSize);
#endif
  observe(w);
  (*w->body)();
  leave();
  std::abort();
}

void prepareStack(Fiber& f) {
  auto top = reinterpret_cast<std::uintptr_t>(f.stack + kStackBytes) & ~std::uintptr_t{15};
  void** sp = reinterpret_cast<void**>(top);
  *--sp = nullptr;  // where a return address would lie: keeps the alignment a called function expects
  *--sp = reinterpret_cast<void*>(&entry);
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
  f.stackPointer = sp;
}

void prepareBlock(Worker& w, Block& b, uint3 index) {
  const dim3& size = w.shape.block;
  const unsigned n = size.x * size.y * size.z;
  b.alive = n;
  b.arrived = b.generation = 0;
  b.any = b.count = 0;
  b.fibers.resize(n);
  b.warps.resize((n + kWarp - 1) / kWarp);
  for (Warp& warp : b.warps) warp.exited = warp.masks = 0;
  // A new block of exactly this size every time, so that ASan knows its end.
  b.shared.reset(w.shape.sharedBytes ? new unsigned char[w.shape.sharedBytes] : nullptr);
  if (b.shared) std::memset(b.shared.get(), 0xFF, w.shape.sharedBytes);
  for (unsigned i = 0; i < n; ++i) {
    Fiber& f = b.fibers[i];
    f.place = {{i % size.x, i / size.x % size.y, i / (size.x * size.y)}, index, size, w.shape.grid, i % kWarp, b.shared.get()};
    f.stack = b.stacks + i * kStackBytes;
    f.warp = &b.warps[i / kWarp];
    f.wait = Wait::none;
#if defined(TREEWARD_FIBERS_TSAN)
    f.tsan = __tsan_create_fiber(0);
#endif
    prepareStack(f);
  }
  if (n % kWarp) b.warps.back().exited = ~0u << (n % kWarp);
  publish(&w);
}

void retire([[maybe_unused]] Block& b) {
#if defined(TREEWARD_FIBERS_TSAN)
  for (Fiber& f : b.fibers) __tsan_destroy_fiber(f.tsan);
#endif
  observe(&b);
}

bool canRun(const Worker& w, const Block& b, const Fiber& f) {
  switch (f.wait) {
    case Wait::none: return true;
    case Wait::block: return b.generation != f.generation;
    case Wait::grid: return w.gridGeneration != f.generation;
    case Wait::warp: return f.meeting->generation != f.generation;
    case Wait::done: return false;
  }
  return false;
}

[[noreturn]] void reportDeadlock(const Block& b) {
  unsigned atBarrier = 0, atGrid = 0, inWarp = 0;
  const Fiber* sample = nullptr;
  for (const Fiber& f : b.fibers) {
    atBarrier += f.wait == Wait::block;
    atGrid += f.wait == Wait::grid;
    inWarp += f.wait == Wait::warp;
    if (f.wait == Wait::warp) sample = &f;
  }
  const Place& p = (sample ? *sample : b.fibers[0]).place;
  std::fprintf(stderr,
               "fibers: deadlock in block %u,%u,%u: %u threads alive, %u at __syncthreads, %u in a warp collective (e.g. "
               "thread %u,%u,%u), %u at a grid barrier\n",
               p.block.x, p.block.y, p.block.z, b.alive, atBarrier, inWarp, p.thread.x, p.thread.y, p.thread.z, atGrid);
  std::abort();
}

// Runs until every fiber is done (true) or waits for the grid (false).
bool runBlock(Worker& w, Block& b) {
  w.block = &b;
  const unsigned n = static_cast<unsigned>(b.fibers.size());
  std::vector<unsigned> warps(b.warps.size()), lanes(kWarp);
  std::iota(warps.begin(), warps.end(), 0u);
  std::iota(lanes.begin(), lanes.end(), 0u);
  for (;;) {
    bool ran = false;
    if (w.shuffled) std::shuffle(warps.begin(), warps.end(), w.random);
    for (const unsigned warp : warps) {
      // How far this warp runs ahead of the others before they get a turn.
      std::uint64_t turns = w.shuffled ? 1 + w.random() % 3 : 64;
      for (bool again = true; again && turns; --turns) {
        again = false;
        if (w.shuffled) std::shuffle(lanes.begin(), lanes.end(), w.random);
        for (const unsigned lane : lanes) {
          const unsigned i = warp * kWarp + lane;
          if (i >= n || !canRun(w, b, b.fibers[i])) continue;
          again = ran = true;
          b.fibers[i].wait = Wait::none;
          switchToFiber(&w, &b.fibers[i]);
        }
      }
    }
    if (ran) continue;
    if (b.alive == 0) return true;
    const auto waiting = std::count_if(b.fibers.begin(), b.fibers.end(), [](const Fiber& f) { return f.wait == Wait::grid; });
    if (static_cast<unsigned>(waiting) == b.alive) return false;
    reportDeadlock(b);
  }
}

void runCooperative(Worker& w, std::vector<Block>& blocks) {
  for (;;) {
    std::size_t finished = 0;
    for (Block& b : blocks) finished += b.alive == 0 || runBlock(w, b);
    if (finished == blocks.size()) return;
    if (finished) fail("a block ended while others wait at a grid barrier");
    ++w.gridGeneration;
  }
}

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "fibers: %s", what);
  if (place) {
    std::fprintf(stderr, " [block %u,%u,%u thread %u,%u,%u lane %u]", place->block.x, place->block.y, place->block.z,
                 place->thread.x, place->thread.y, place->thread.z, place->lane);
  }
  std::fputc('\n', stderr);
  std::abort();
}

void setSeed(std::uint64_t value) { seed() = value; }

void run(const Shape& shape, const std::function<void()>& body) {
  const std::size_t threads = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  const std::size_t blocks = std::size_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  if (threads == 0 || threads > 1024) fail("a block has 1 to 1024 threads");
  if (blocks == 0 || shape.grid.y > 65535 || shape.grid.z > 65535) fail("a grid has at least one block, at most 65535 in y and z");
  const std::uint64_t schedule = seed();

  std::atomic<std::size_t> next{0};
  const auto index = [&](std::size_t i) {
    return uint3{static_cast<unsigned>(i % shape.grid.x), static_cast<unsigned>(i / shape.grid.x % shape.grid.y),
                 static_cast<unsigned>(i / (std::size_t{shape.grid.x} * shape.grid.y))};
  };
  const auto work = [&](unsigned number) {
    Worker w;
    w.shape = shape;
    w.body = &body;
    w.shuffled = schedule != 0;
    w.random.seed(schedule * 7919 + number);
#if defined(TREEWARD_FIBERS_TSAN)
    w.tsan = __tsan_get_current_fiber();
#endif
    Worker* outer = worker;
    worker = &w;
    const std::size_t resident = shape.cooperative ? blocks : 1;
    const std::size_t bytes = resident * threads * kStackBytes;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail("no memory for stacks");
    std::vector<Block> slots(resident);
    for (std::size_t i = 0; i < resident; ++i) slots[i].stacks = static_cast<char*>(memory) + i * threads * kStackBytes;
    if (shape.cooperative) {
      for (std::size_t i = 0; i < blocks; ++i) prepareBlock(w, slots[i], index(i));
      runCooperative(w, slots);
      for (Block& b : slots) retire(b);
    } else {
      for (std::size_t i; (i = next++) < blocks;) {
        prepareBlock(w, slots[0], index(i));
        if (!runBlock(w, slots[0])) fail("a grid barrier in a launch that is not cooperative");
        retire(slots[0]);
      }
    }
#if defined(__SANITIZE_ADDRESS__)
    // A fiber's outermost frame never returns, so its red zones stay marked in the shadow, which outlives the mapping: whoever is
    // given this address next (V8 was) would be accused of writing into a stack.
    for (std::size_t top = kStackBytes; top <= bytes; top += kStackBytes)
      ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(memory) + top - 4096, 4096);
#endif
    munmap(memory, bytes);
    worker = outer;
  };

  const std::uint64_t wanted = shape.cooperative ? 1 : environment("TREEWARD_FIBERS_THREADS", 1);
  const unsigned count = static_cast<unsigned>(std::min<std::uint64_t>(blocks, wanted ? wanted : 1));
  if (count == 1) return work(0);
  std::vector<std::thread> pool;
  for (unsigned i = 0; i < count; ++i) pool.emplace_back(work, i);
  for (std::thread& thread : pool) thread.join();
}

void yield() { switchToWorker(); }

void blockBarrier(int line) {
  Worker* w = worker;
  Block* b = w->block;
  Fiber* f = w->fiber;
  f->generation = b->generation;
  f->wait = Wait::block;
  publish(b);
  if (b->arrived == 0) b->line = line;
  if (b->line != line) {
    std::fprintf(stderr, "fibers: divergent barrier, lines %d and %d\n", b->line, line);
    fail("threads of one block meet at different barriers");
  }
  ++b->arrived;
  settleBarrier(*b);
  switchToWorker();
  observe(b);
}

int blockBarrierReduce(int predicate, char operation, int line) {
  Block* b = worker->block;
  b->any |= predicate != 0;
  b->count += predicate != 0;
  blockBarrier(line);
  if (operation == '|') return b->resultAny;
  if (operation == '&') return b->resultCount == b->resultOf;
  return b->resultCount;
}

void gridBarrier() {
  Worker* w = worker;
  w->fiber->generation = w->gridGeneration;
  w->fiber->wait = Wait::grid;
  publish(&w->gridGeneration);
  switchToWorker();
  observe(&w->gridGeneration);
}

const Slot* exchange(unsigned mask, int tag, const void* data, std::size_t bytes, unsigned* active) {
  Fiber* f = worker->fiber;
  Warp& warp = *f->warp;
  const unsigned lane = f->place.lane;
  if (!(mask >> lane & 1)) fail("a lane calls a warp collective whose mask leaves it out");
  Meeting* m = nullptr;
  for (unsigned i = 0; i < warp.masks; ++i) {
    if (warp.meetings[i].mask == mask) m = &warp.meetings[i];
  }
  if (!m) {
    if (warp.masks == kMasks) fail("more different masks in one warp than the layer keeps");
    m = &warp.meetings[warp.masks++];
    m->mask = mask;
    m->arrived = m->generation = 0;
  }
  if (m->arrived == 0) m->tag = tag;
  if (m->tag != tag) fail("lanes of one mask meet in different warp collectives");
  const unsigned generation = m->generation;
  // Byte by byte: TSan would see a call of memcpy, which is no access of the kernel's.
  volatile unsigned char* slot = m->slots[generation & 1][lane].bytes;
  for (std::size_t i = 0; i < bytes; ++i) slot[i] = static_cast<const unsigned char*>(data)[i];
  m->arrived |= 1u << lane;
  settleMeeting(warp, *m);
  if (m->generation == generation) {
    f->meeting = m;
    f->generation = generation;
    f->wait = Wait::warp;
    switchToWorker();
  }
  *active = m->active[generation & 1];
  return m->slots[generation & 1];
}

void warpBarrier(unsigned mask) {
  Warp* warp = worker->fiber->warp;
  publish(warp);
  const unsigned char none = 0;
  unsigned active;
  exchange(mask, 1, &none, 1, &active);
  observe(warp);
}

}  // namespace treeward::fibers
