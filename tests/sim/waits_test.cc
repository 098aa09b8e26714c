/// Leaves out each wait between streams of each builder's plan once: the detector finds it.
#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/sim/sim_test.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::tests {
namespace {

using Reports = std::vector<std::string>;

constexpr int kMicrobatches = 4;

struct Chain {
  explicit Chain(int stages) {
    torch::manual_seed(21);
    inputs = {torch::randn({kMicrobatches, 8})};
    labels = {torch::randn({kMicrobatches, 8})};
    program = compile(testing::Chain(stages),
                      {.inputs = inputs,
                       .labels = labels,
                       .loss = testing::mean_square,
                       .microbatches = kMicrobatches});
  }

  Batch inputs, labels;
  std::optional<Program> program;
};

/// Runs a step on devices of its own, without the wait. Returns what the detector found.
Reports step_without(const std::optional<sim::StreamWait>& left_out,
                     const Schedule& schedule,
                     const Chain& chain,
                     std::vector<sim::StreamWait>* waits = nullptr) {
  const SimDevices devices({.left_out = left_out});
  testing::Pipeline pipeline(*chain.program, schedule, {.device = "sim"});
  const auto outcome = pipeline.step(chain.inputs, chain.labels);
  for (const auto& error : outcome.errors) {
    CHECK_FALSE(error.has_value());
  }
  if (waits != nullptr) {
    *waits = sim::Machine::the().waits();
  }
  return devices.take_reports();
}

TEST_CASE("each wait of each builder's plan is found where it is left out", "[sim][builders]") {
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 2, .microbatches = kMicrobatches};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(request.devices);
    }
    std::optional<Schedule> schedule;
    try {
      schedule = build_schedule(builder.name, request);
    } catch (const Error& error) {
      REQUIRE(error.code() == Errc::ScheduleParameter);
      continue;
    }
    INFO(builder.name);
    const Chain chain(Layout::of(*schedule).model_stages());
    std::vector<sim::StreamWait> waits;
    CHECK(step_without(std::nullopt, *schedule, chain, &waits) == Reports());
    CHECK_FALSE(waits.empty());
    for (const sim::StreamWait& wait : waits) {
      INFO("device " << wait.device << " stream " << wait.stream << " wait " << wait.number);
      CHECK_FALSE(step_without(wait, *schedule, chain).empty());
    }
  }
}

}  // namespace
}  // namespace stagecraft::tests
