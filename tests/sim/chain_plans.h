/// Makes small programs, and the schedules of all builders for them.
#pragma once

#include <optional>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::tests {

struct Chain {
  static constexpr int kMicrobatches = 4;

  /// `rows`: of each microbatch.
  explicit Chain(int stages, const Recompute& recompute = {}, int rows = 1) {
    torch::manual_seed(21);
    inputs = {torch::randn({kMicrobatches * rows, 8})};
    labels = {torch::randn({kMicrobatches * rows, 8})};
    program = compile(testing::Chain(stages),
                      {.inputs = inputs,
                       .labels = labels,
                       .loss = testing::mean_square,
                       .microbatches = kMicrobatches,
                       .recompute = recompute});
  }

  Batch inputs, labels;
  std::optional<Program> program;
};

/// Returns two copies of a schedule of two rows, each row of them on a rank of its own.
inline Schedule two_copies_of(const Schedule& schedule) {
  return Schedule::parse("@place 0=0,2 1=1,3\n" + to_string(schedule));
}

/// Returns the builder's schedule; nothing if its constraints forbid one of this size.
inline std::optional<Schedule> schedule_of(const BuilderInfo& builder, int devices) {
  BuildRequest request{.devices = devices, .microbatches = Chain::kMicrobatches};
  if (builder.takes_graph) {
    request.graph = StageGraph::chain(devices);
  }
  try {
    return build_schedule(builder.name, request);
  } catch (const Error& error) {
    REQUIRE(error.code() == Errc::ScheduleParameter);
    return std::nullopt;
  }
}

}  // namespace stagecraft::tests
