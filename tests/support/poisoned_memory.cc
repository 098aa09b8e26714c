#include "stagecraft/tests/support/poisoned_memory.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

namespace stagecraft::testing {
namespace {

constexpr unsigned char kPoisonByte = 0xff;
constexpr std::uint8_t kPoisonPriority = std::numeric_limits<std::uint8_t>::max();

struct PoisonedBlock {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Lives as long as the process, as LibTorch requires. Takes memory from where LibTorch's own
/// allocator does, so that this one and ours may free each other's raw memory.
class PoisoningAllocator final : public c10::Allocator {
 public:
  static PoisoningAllocator& of_process() {
    static auto* const one = new PoisoningAllocator;
    return *one;
  }

  void begin(c10::Allocator* before) {
    const std::scoped_lock lock(mutex_);
    before_ = before;
    handed_out_ = freed_ = written_late_ = 0;
  }

  void end() {
    const std::scoped_lock lock(mutex_);
    shrink_to(0);
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = bytes == 0 ? nullptr : c10::alloc_cpu(bytes);
    if (data != nullptr) {
      std::memset(data, kPoisonByte, bytes);
      const std::scoped_lock lock(mutex_);
      blocks_.insert_or_assign(data, bytes);
      ++handed_out_;
    }
    return {data, data, &delete_block, c10::Device(c10::DeviceType::CPU)};
  }

  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &delete_block; }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  [[nodiscard]] std::int64_t handed_out() {
    const std::scoped_lock lock(mutex_);
    return handed_out_;
  }
  [[nodiscard]] std::int64_t freed() {
    const std::scoped_lock lock(mutex_);
    return freed_;
  }
  [[nodiscard]] std::int64_t written_late() {
    const std::scoped_lock lock(mutex_);
    return written_late_ + std::ranges::count_if(waiting_, &is_written);
  }

 private:
  static void delete_block(void* data) { of_process().free(data); }

  static bool is_written(const PoisonedBlock& block) {
    const auto* const begin = static_cast<const unsigned char*>(block.data);
    return std::any_of(
        begin, begin + block.bytes, [](unsigned char c) { return c != kPoisonByte; });
  }

  void free(void* data) {
    const std::scoped_lock lock(mutex_);
    const auto found = blocks_.find(data);
    if (found == blocks_.end()) {  // raw memory of the allocator before, or null
      if (data != nullptr) {
        before_->raw_deallocate(data);
      }
      return;
    }
    std::memset(data, kPoisonByte, found->second);
    waiting_.push_back({data, found->second});
    waiting_bytes_ += found->second;
    blocks_.erase(found);
    ++freed_;
    shrink_to(PoisonedMemory::kHeld);
  }

  void shrink_to(std::size_t bytes) {
    while (waiting_bytes_ > bytes) {
      written_late_ += is_written(waiting_.front()) ? 1 : 0;
      waiting_bytes_ -= waiting_.front().bytes;
      c10::free_cpu(waiting_.front().data);
      waiting_.pop_front();
    }
  }

  std::mutex mutex_;  // guards all below: any thread allocates and frees
  c10::Allocator* before_ = nullptr;
  std::unordered_map<void*, std::size_t> blocks_;  // in use
  std::deque<PoisonedBlock> waiting_;              // freed, the oldest first
  std::size_t waiting_bytes_ = 0;
  std::int64_t handed_out_ = 0;
  std::int64_t freed_ = 0;
  std::int64_t written_late_ = 0;
};

}  // namespace

PoisonedMemory::PoisonedMemory() : before_(c10::GetCPUAllocator()) {
  PoisoningAllocator::of_process().begin(before_);
  c10::SetCPUAllocator(&PoisoningAllocator::of_process(), kPoisonPriority);
}

PoisonedMemory::~PoisonedMemory() {
  c10::SetCPUAllocator(before_, kPoisonPriority);
  PoisoningAllocator::of_process().end();
}

bool PoisonedMemory::is_in_use() const {
  return c10::GetCPUAllocator() == &PoisoningAllocator::of_process();
}

std::int64_t PoisonedMemory::handed_out() const {
  return PoisoningAllocator::of_process().handed_out();
}

std::int64_t PoisonedMemory::freed() const {
  return PoisoningAllocator::of_process().freed();
}

std::int64_t PoisonedMemory::written_late() const {
  return PoisoningAllocator::of_process().written_late();
}

}  // namespace stagecraft::testing
