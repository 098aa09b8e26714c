#include "stagecraft/actors/executor/device/step_memory.h"

#include <sys/resource.h>

#include <array>
#include <exception>
#include <mutex>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): of the thread's step
thread_local StepMemory* current = nullptr;

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

void free_block(void* data) {
  c10::profiledCPUMemoryReporter().Delete(data);
  MemoryPool::free(data);
}

}  // namespace

/// LibTorch's allocator of CPU memory from the first rank on. Serves a step from its pool, and all
/// else from the allocator before it. Lives as long as the process, as LibTorch requires.
class PooledAllocator final : public c10::Allocator {
 public:
  explicit PooledAllocator(c10::Allocator* before, c10::DeleterFnPtr raw)
      : before_(before), raw_(raw) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    return current == nullptr || bytes == 0 ? from_before(bytes) : from_pool(*current, bytes);
  }

  [[nodiscard]] bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return data.get_deleter() == &free_block ? data.get() == data.get_context()
                                             : before_->is_simple_data_ptr(data);
  }

  /// LibTorch's own users of raw memory (oneDNN) may free memory with it that they got before.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override {
    return before_->raw_deleter() == nullptr ? nullptr : raw_;
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  void free_raw(void* data) const {
    if (MemoryPool::owns(data)) {
      free_block(data);
    } else {
      before_->raw_deleter()(data);
    }
  }

 private:
  /// Keeps SY-3.
  c10::DataPtr from_before(std::size_t bytes) {
    try {
      return before_->allocate(bytes);
    } catch (...) {
      if (MemoryPool::trim_all() == 0) {
        throw;
      }
    }
    return before_->allocate(bytes);
  }

  static c10::DataPtr from_pool(StepMemory& memory, std::size_t bytes) {
    void* data = memory.pool_.allocate(bytes);
    if (data == nullptr && MemoryPool::trim_all() > 0) {
      data = memory.pool_.allocate(bytes);
    }
    if (data == nullptr) {
      refuse(memory, bytes);
    }
    c10::profiledCPUMemoryReporter().New(data, bytes);  // keeps SY-2
    return {data, data, &free_block, c10::Device(c10::DeviceType::CPU)};
  }

  [[noreturn]] static void refuse(const StepMemory& memory, std::size_t bytes) {
    c10::profiledCPUMemoryReporter().OutOfMemory(bytes);
    const MemoryUse use = memory.pool_.use();
    throw Error(
        Errc::DeviceOutOfMemory,
        fmt::format(
            "memory ran out at {} in one piece: use more stages, smaller microbatches or fewer of "
            "them in flight; this rank's steps hold {} live and {} cached{}",
            bytes_text(static_cast<double>(bytes)),
            bytes_text(static_cast<double>(use.live)),
            bytes_text(static_cast<double>(use.cached)),
            memory.limit_ ? fmt::format(", and its {} is {}",
                                        kOption,
                                        bytes_text(static_cast<double>(*memory.limit_)))
                          : ""))
        .about("memory_limit");
  }

  c10::Allocator* before_;
  c10::DeleterFnPtr raw_;
};

namespace {

// The number of deleters. LibTorch needs a deleter that is a plain function, and each of our
// allocators wraps another deleter.
constexpr std::size_t kMost = 8;

struct Installed {
  std::mutex mutex;  // threads of their own make ranks
  std::array<PooledAllocator*, kMost> all{};
  std::size_t count = 0;

  static Installed& of_process() {
    static Installed* const installed = new Installed;
    return *installed;
  }
};

template <std::size_t N>
void free_raw(void* data) {
  Installed::of_process().all[N]->free_raw(data);
}

template <std::size_t... N>
constexpr std::array<c10::DeleterFnPtr, kMost> raw_deleters(std::index_sequence<N...>) {
  return {&free_raw<N>...};
}

/// Sets it with the priority of the current allocator, so that code that could set one before still
/// can.
void set_over(c10::Allocator* allocator) {
  constexpr int kPriorities = 256;
  for (int p = 0; p < kPriorities && c10::GetCPUAllocator() != allocator; ++p) {
    c10::SetCPUAllocator(allocator, static_cast<std::uint8_t>(p));
  }
}

/// Makes LibTorch use our allocator. After kMost changes by the embedding program, LibTorch uses
/// the one that the program set, which changes speed alone.
void install() {
  static constexpr auto kRaw = raw_deleters(std::make_index_sequence<kMost>());
  Installed& installed = Installed::of_process();
  const std::scoped_lock lock(installed.mutex);
  c10::Allocator* const now = c10::GetCPUAllocator();
  if (dynamic_cast<PooledAllocator*>(now) != nullptr || installed.count == kMost) {
    return;
  }
  const std::size_t n = installed.count++;
  installed.all[n] = new PooledAllocator(now, kRaw[n]);
  set_over(installed.all[n]);
}

}  // namespace

StepMemory::StepMemory(std::optional<std::int64_t> limit) : limit_(limit), pool_(limit) {
  install();
}

StepMemory::Scope::Scope(StepMemory& memory)
    : memory_(memory), outer_(current), errors_(std::uncaught_exceptions()) {
  memory.pool_.begin_step();
  memory.faults_before_ = page_faults();
  current = &memory;
}

StepMemory::Scope::~Scope() {
  current = outer_;
  if (std::uncaught_exceptions() > errors_) {
    memory_.pool_.trim();
  }
}

RankMemory StepMemory::use() const {
  const MemoryUse use = pool_.use();
  return {.live = use.live,
          .cached = use.cached,
          .peak = use.peak,
          .page_faults = page_faults() - faults_before_};
}

}  // namespace stagecraft
