#include "stagecraft/actors/executor/device/device.h"

#include <chrono>

#include "stagecraft/actors/executor/device/step_memory.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

class Cpu final : public Device {
 public:
  explicit Cpu(std::optional<std::int64_t> memory_limit) : memory_(memory_limit) {}

  [[nodiscard]] c10::Device place() const override { return kProgramDevice; }
  void use(StreamId) override {}
  Event record(StreamId) noexcept override {
    return {std::chrono::steady_clock::now().time_since_epoch().count()};
  }
  void wait(StreamId, Event) override {}
  void keep_for(StreamId, const at::Tensor&) override {}
  [[nodiscard]] at::Tensor hand_over(StreamId, const at::Tensor& tensor) override { return tensor; }
  [[nodiscard]] at::Tensor take_over(StreamId, at::Tensor tensor) override { return tensor; }
  void synchronize() override {}
  [[nodiscard]] std::int64_t time_of(Event event) const override { return event.value; }
  [[nodiscard]] std::unique_ptr<StepScope> begin_step() override {
    return std::make_unique<InThePool>(memory_);
  }
  [[nodiscard]] RankMemory memory_use() const override { return memory_.use(); }

 private:
  class InThePool final : public StepScope {
   public:
    explicit InThePool(StepMemory& memory) : scope_(memory) {}

   private:
    StepMemory::Scope scope_;
  };

  StepMemory memory_;
};

}  // namespace

std::unique_ptr<Device> cpu_device(std::optional<std::int64_t> memory_limit) {
  return std::make_unique<Cpu>(memory_limit);
}

}  // namespace stagecraft
