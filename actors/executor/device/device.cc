#include "stagecraft/actors/executor/device/device.h"

#include <chrono>

namespace stagecraft {
namespace {

class Cpu final : public Device {
 public:
  void use(Stream) override {}
  Event record(Stream) noexcept override {
    return {std::chrono::steady_clock::now().time_since_epoch().count()};
  }
  void wait(Stream, Event) override {}
  void synchronize() override {}
  [[nodiscard]] std::int64_t time_of(Event event) const override { return event.value; }
};

}  // namespace

std::unique_ptr<Device> cpu_device() {
  return std::make_unique<Cpu>();
}

}  // namespace stagecraft
