/// Tests the device a rank computes on, and the times of its events.
#include "stagecraft/actors/executor/device/device.h"

#include <ATen/ops/empty.h>

#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Is a device that works later than the host: its time passes apart from the host's, and is known
/// after a wait for it.
class LateDevice final : public Device {
 public:
  [[nodiscard]] c10::Device place() const override { return kProgramDevice; }
  void use(StreamId) override {}
  Event record(StreamId) noexcept override { return {issued_++}; }
  void wait(StreamId, Event) override {}
  void keep_for(StreamId, const at::Tensor&) override {}
  [[nodiscard]] at::Tensor hand_over(StreamId, const at::Tensor& tensor) override { return tensor; }
  [[nodiscard]] at::Tensor take_over(StreamId, at::Tensor tensor) override { return tensor; }
  void synchronize() override { synchronized_ = true; }
  [[nodiscard]] std::int64_t time_of(Event event) const override {
    REQUIRE(synchronized_);
    return event.value * 1'000'000'000;  // a second between two points
  }
  [[nodiscard]] std::unique_ptr<StepScope> begin_step() override { return nullptr; }
  [[nodiscard]] RankMemory memory_use() const override { return {}; }

 private:
  std::int64_t issued_ = 0;
  bool synchronized_ = false;
};

TEST_CASE("the processor's events follow each other as the host does", "[executor][device]") {
  const std::unique_ptr<Device> cpu = cpu_device();
  const Device::Event first = cpu->record(kCompute);
  const Device::Event second = cpu->record(StreamId(1));
  cpu->wait(kCompute, second);
  cpu->synchronize();
  CHECK(cpu->time_of(first) <= cpu->time_of(second));
}

TEST_CASE("the processor gives a step memory of the rank, and bounds it", "[executor][device]") {
  constexpr std::int64_t kMiB = 1024 * 1024;
  const std::unique_ptr<Device> cpu = cpu_device(8 * kMiB);
  const auto step = cpu->begin_step();
  const at::Tensor inside = at::empty({kMiB}, at::kByte);
  CHECK(cpu->memory_use().live >= kMiB);
  CHECK_THROWS(at::empty({16 * kMiB}, at::kByte));
}

TEST_CASE("DV-2: compute is the device's time, not that of giving work away",
          "[executor][device]") {
  LateDevice device;
  StepTimes times(device, 8);
  times.begin_step();
  { const auto computing = times.compute(&RankTimes::forward); }
  for (int i = 0; i < 3; ++i) {
    const auto computing = times.compute(&RankTimes::backward);
  }
  device.synchronize();
  const RankTimes taken = times.take();
  CHECK(taken.forward == 1.0);
  CHECK(taken.backward == 3.0);
  CHECK(taken.update == 0.0);
  times.begin_step();
  CHECK(times.take().backward == 0.0);
}

TEST_CASE("a timeline shows when the device ran what it was given", "[executor][device]") {
  LateDevice device;
  TimelineRecorder recorder(2, device);
  recorder.begin_step();
  for (const std::size_t position : {0, 1}) {
    const Device::Event start = device.record(kCompute);
    recorder.record(position, start, device.record(kCompute), 0, 0, 0);
  }
  device.synchronize();
  const std::vector<InstructionTime> times = recorder.take();
  CHECK(times[0].start == 0);
  CHECK(times[0].end == 1'000'000'000);
  CHECK(times[1].start == 2'000'000'000);
}

}  // namespace
}  // namespace stagecraft
