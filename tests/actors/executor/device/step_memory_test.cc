/// Tests the seam between LibTorch and a rank's pool.
#include "stagecraft/actors/executor/device/step_memory.h"

#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/libtorch/memory_meter.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Acts as an allocator that an embedding program has set: counts, and refuses while told to.
struct TheirAllocator final : c10::Allocator {
  c10::Allocator* before = c10::GetCPUAllocator();
  int allocations = 0;
  std::function<bool()> refuses = [] { return false; };

  c10::DataPtr allocate(std::size_t bytes) override {
    ++allocations;
    TORCH_CHECK(!refuses(), "not enough memory: you tried to allocate ", bytes, " bytes");
    return before->allocate(bytes);
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return before->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    before->copy_data(to, from, bytes);
  }
};

/// Sets that allocator before the first rank of the test, and keeps it until the test ends.
struct Embedding {
  TheirAllocator* theirs = new TheirAllocator;  // storages name it as long as they live
  Embedding() { c10::SetCPUAllocator(theirs); }
  ~Embedding() { c10::SetCPUAllocator(theirs->before); }
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;
};

bool is_pooled(const at::Tensor& tensor) {
  return MemoryPool::owns(tensor.const_data_ptr());
}

at::Tensor bytes_of(std::int64_t bytes) {
  return at::empty({bytes}, at::TensorOptions(at::kByte));
}

TEST_CASE(
    "only what a step's own thread allocates is the pool's; all else is theirs who were there "
    "(SY-1)",
    "[executor][memory]") {
  Embedding program;
  int& theirs = program.theirs->allocations;
  StepMemory memory({});
  at::Tensor inside, elsewhere;
  int before = theirs;
  const at::Tensor outside = bytes_of(1000);
  CHECK(theirs == before + 1);
  CHECK_FALSE(is_pooled(outside));
  CHECK(outside.storage().data_ptr().get_deleter() == c10::GetDefaultCPUAllocator()->raw_deleter());
  {
    const StepMemory::Scope step(memory);
    before = theirs;
    inside = bytes_of(1000).fill_(3);
    CHECK(theirs == before);
    std::thread([&] { elsewhere = bytes_of(1000); }).join();
    CHECK(theirs == before + 1);
    CHECK(memory.use().live == 1000);
    CHECK(memory.use().peak == 1000);
    CHECK(inside.storage().data_ptr().get() == inside.storage().data_ptr().get_context());
  }
  CHECK(is_pooled(inside));
  CHECK_FALSE(is_pooled(elsewhere));
  before = theirs;
  CHECK_FALSE(is_pooled(bytes_of(1000)));
  inside.resize_({5000});  // uses the allocator of its storage
  CHECK_FALSE(is_pooled(inside));
  CHECK(theirs == before + 2);
  CHECK(inside[999].item<int>() == 3);
  CHECK(memory.use().live == 0);
}

TEST_CASE("raw memory goes back to where it came from, whoever frees it", "[executor][memory]") {
  Embedding program;
  void* const older = c10::GetCPUAllocator()->raw_allocate(64);  // as oneDNN does
  StepMemory memory({});
  c10::Allocator& now = *c10::GetCPUAllocator();
  void *inside = nullptr, *nothing = nullptr;
  {
    const StepMemory::Scope step(memory);
    inside = now.raw_allocate(64);
    nothing = now.raw_allocate(0);
    now.raw_deallocate(older);
    CHECK(memory.use().live == 64);
  }
  CHECK(MemoryPool::owns(inside));
  void* const outside = now.raw_allocate(64);
  CHECK_FALSE(MemoryPool::owns(outside));
  std::thread([&] { now.raw_deallocate(inside); }).join();
  CHECK(memory.use().live == 0);
  now.raw_deallocate(outside);
  now.raw_deallocate(nothing);
}

TEST_CASE("an allocator that was set later is asked outside of the next rank's steps",
          "[executor][memory]") {
  const StepMemory earlier({});
  Embedding program;
  StepMemory memory({});
  const int before = program.theirs->allocations;
  CHECK_FALSE(is_pooled(bytes_of(10)));
  CHECK(program.theirs->allocations == before + 1);
  const StepMemory::Scope step(memory);
  CHECK(is_pooled(bytes_of(10)));
  CHECK(program.theirs->allocations == before + 1);
}

TEST_CASE("LibTorch's profiler hears of a pool's blocks (SY-2)", "[executor][memory]") {
  StepMemory memory({});
  const auto meter = std::make_shared<MemoryMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  at::Tensor kept;
  {
    const StepMemory::Scope step(memory);
    kept = bytes_of(1000);
    (void)bytes_of(500);
    CHECK(meter->live() == 1000);
    CHECK(meter->peak() == 1500);
    CHECK(memory.use().live == meter->live());
    CHECK(memory.use().peak == meter->peak());
  }
  kept.reset();
  CHECK(meter->live() == 0);
}

TEST_CASE("a tensor outlives the memory of its rank, and is freed by anybody (MP-2)",
          "[executor][memory]") {
  at::Tensor kept;
  {
    StepMemory memory({});
    const StepMemory::Scope step(memory);
    kept = at::arange(100'000);
  }
  CHECK(kept.sum().item<std::int64_t>() == 99'999LL * 50'000);
  const void* const where = kept.const_data_ptr();
  CHECK(MemoryPool::owns(where));
  std::thread([&] { kept.reset(); }).join();
  CHECK_FALSE(MemoryPool::owns(where));
}

TEST_CASE("a rank that meets its limit says what it holds, also inside autograd",
          "[executor][memory]") {
  StepMemory memory(8 * kMiB);
  const auto refused = [&](const std::function<void()>& body) {
    try {
      const StepMemory::Scope step(memory);
      body();
    } catch (const Error& error) {
      CHECK(error.code() == Errc::DeviceOutOfMemory);
      return error.message();
    }
    return std::string("was let through");
  };
  const std::string plain = refused([] {
    const at::Tensor live = bytes_of(1000);
    (void)bytes_of(12 * kMiB);
  });
  for (const char* part : {"memory ran out at 12.0 MiB in one piece",
                           "smaller microbatches",
                           "1000 B live and ",
                           " cached, and its memory_limit is 8.0 MiB"}) {
    CHECK_THAT(plain, ContainsSubstring(part));
  }
  CHECK_THAT(refused([] {
               const at::Tensor x = at::ones({}).requires_grad_();
               const at::Tensor y = at::exp(x.expand({kMiB}));  // 4 MiB, and again in the backward
               y.sum().backward();
             }),
             ContainsSubstring("memory_limit is 8.0 MiB"));
  CHECK(memory.use().live == 0);
  CHECK(memory.use().cached == 0);  // a failed step leaves nothing behind
  const StepMemory::Scope step(memory);
  CHECK(is_pooled(bytes_of(7 * kMiB)));
}

TEST_CASE("where memory runs out outside of steps, pools give back theirs first (SY-3)",
          "[executor][memory]") {
  Embedding program;
  StepMemory memory({});
  {
    const StepMemory::Scope step(memory);
    (void)bytes_of(kMiB);
  }
  REQUIRE(memory.use().cached >= kMiB);
  program.theirs->refuses = [&] { return memory.use().cached > 0; };
  CHECK(bytes_of(100).numel() == 100);
  CHECK(memory.use().cached == 0);
  program.theirs->refuses = [] { return true; };
  CHECK_THROWS_AS(bytes_of(100), c10::Error);
}

// ---- ranks --------------------------------------------------------------------------------------

struct Small {
  Program program;
  Batch inputs, labels;
};

Small small_case() {
  torch::manual_seed(7);
  testing::Chain module(2);
  const Batch inputs{torch::randn({64, 8})}, labels{torch::randn({64, 8})};
  return {
      compile(
          module,
          {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = 4}),
      inputs,
      labels};
}

/// Puts all stages on one rank, so that no other thread frees its memory.
const char* const kOneRank =
    "@form list\n0F0 1F0 0F1 1F1 1B0 0B0 1B1 0B1 0F2 1F2 0F3 1F3 1B2 0B2 1B3 0B3\n";

TEST_CASE("a rank's steps repeat in memory: live, cached and peak stay (MP-1, MP-3)",
          "[executor][memory]") {
  const Small c = small_case();
  testing::Pipeline pipeline(
      c.program, Schedule::parse(kOneRank), {.optimizer = AdamW{.lr = 1e-2}});
  std::vector<RankMemory> steps;
  for (int i = 0; i < 6; ++i) {
    steps.push_back(pipeline.step(c.inputs, c.labels).reports[0].times.memory);
  }
  CHECK(steps[1].peak > 0);
  for (const RankMemory& step : steps) {
    CHECK(step.live >= 0);
    CHECK(step.live <= step.peak);
    CHECK(step.peak <= step.live + step.cached);
  }
  for (std::size_t i = 2; i < steps.size(); ++i) {
    CHECK(steps[i].live == steps[1].live);
    CHECK(steps[i].cached == steps[1].cached);
    CHECK(steps[i].peak == steps[1].peak);
  }
}

TEST_CASE("a rank that meets its memory_limit fails its step with the bill, and no weight changes",
          "[executor][memory]") {
  const Small c = small_case();
  testing::Pipeline plain(c.program, Schedule::parse(kOneRank));
  const RankMemory taken = plain.step(c.inputs, c.labels).reports[0].times.memory;
  const std::int64_t enough = taken.live + taken.cached;
  testing::Pipeline just(c.program, Schedule::parse(kOneRank), {.memory_limit = enough});
  CHECK_FALSE(just.step(c.inputs, c.labels).errors[0].has_value());
  CHECK(
      (testing::differing(just.state(), plain.executor(0).state()) == std::vector<std::string>{}));

  testing::Pipeline tight(c.program, Schedule::parse(kOneRank), {.memory_limit = taken.peak / 2});
  const auto before = tight.state();
  const auto outcome = tight.step(c.inputs, c.labels);
  REQUIRE(outcome.errors[0].has_value());
  CHECK(outcome.errors[0]->code() == Errc::DeviceOutOfMemory);
  CHECK(outcome.errors[0]->context().rank == Rank(0));
  CHECK_THAT(outcome.errors[0]->message(),
             ContainsSubstring("B live and ") &&
                 ContainsSubstring(fmt::format("its memory_limit is {}",
                                               bytes_text(static_cast<double>(taken.peak / 2)))));
  CHECK((testing::differing(before, tight.executor(0).state()) == std::vector<std::string>{}));
}

}  // namespace
}  // namespace stagecraft
