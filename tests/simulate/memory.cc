#include "stagecraft/tests/simulate/memory.h"

#include <limits>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace stagecraft::simulation {
namespace {

/// Stands before the allocator that Stagecraft has set, so that memory of steps is refused too.
class RefusingAllocator final : public c10::Allocator {
 public:
  explicit RefusingAllocator(c10::Allocator* granting) : granting_(*granting) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (Memory::of_program().is_refused()) {
      C10_THROW_ERROR(Error,
                      fmt::format("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: not "
                                  "enough memory: you tried to allocate {} bytes.",
                                  bytes));
    }
    return granting_.allocate(bytes);
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return granting_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    granting_.copy_data(to, from, bytes);
  }

 private:
  c10::Allocator& granting_;
};

/// A rank that was made since has set its own allocator over ours.
void stand_before_others() {
  static auto* const ours = new RefusingAllocator(c10::GetCPUAllocator());
  if (c10::GetCPUAllocator() != ours) {
    c10::SetCPUAllocator(ours, std::numeric_limits<std::uint8_t>::max());
  }
}

}  // namespace

Memory& Memory::of_program() {
  static Memory memory;
  return memory;
}

void Memory::refuse(ProcessNumber process, std::int64_t granted) {
  stand_before_others();
  left_[process] = granted;
}

bool Memory::is_refused() {
  const std::optional<ProcessNumber> process = Strands::running();
  const auto found = process ? left_.find(*process) : left_.end();
  if (found == left_.end() || found->second-- > 0) {
    return false;
  }
  left_.erase(found);
  return true;
}

}  // namespace stagecraft::simulation
