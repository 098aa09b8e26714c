#include "stagecraft/tests/simulate/refusing_allocator.h"

#include <cstddef>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "stagecraft/base/process/memory_pool.h"

namespace stagecraft::simulation {
namespace {

std::function<bool(std::size_t)>& refuses() {
  static auto* const asked = new std::function<bool(std::size_t)>;
  return *asked;
}

/// Lives as long as the process, as LibTorch requires.
class Allocator final : public c10::Allocator {
 public:
  explicit Allocator(c10::Allocator& before) : before_(before) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes > 0 && refuses() && refuses()(bytes)) {
      (void)MemoryPool::trim_all();  // else others' caches would decide whether a second try helps
      refuse_memory();
    }
    return before_.allocate(bytes);
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return before_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    before_.copy_data(to, from, bytes);
  }

 private:
  c10::Allocator& before_;
};

}  // namespace

RefusingAllocator::RefusingAllocator(std::function<bool(std::size_t)> asked) {
  refuses() = std::move(asked);
}

RefusingAllocator::~RefusingAllocator() {
  refuses() = nullptr;
}

void RefusingAllocator::install() {
  c10::SetCPUAllocator(new Allocator(*c10::GetCPUAllocator()));
}

void refuse_memory() {
  C10_THROW_ERROR(Error,
                  "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: not enough memory: you "
                  "tried to allocate 4096 bytes.");
}

}  // namespace stagecraft::simulation
