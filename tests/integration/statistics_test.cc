/// Tests running statistics: the values that a stage's forwards write depend on their order alone.
#include <algorithm>
#include <map>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Names = std::vector<std::string>;

constexpr int kStatisticsSteps = 2;

/// Returns the buffers of a pipelined run whose bits differ from those of one process.
Names differing_buffers(const Program& program, const Schedule& schedule) {
  Cluster cluster = Cluster::local(Layout::of(schedule).ranks());
  const Optimizer optimizer = AdamW{.lr = 1e-2};
  Trainer trainer(cluster, program, schedule, optimizer, {.seed = 5});
  Reference reference(program, optimizer, {.seed = 5, .threads = 1});
  for (int i = 0; i < kStatisticsSteps; ++i) {
    const Data batch = data(i);
    const StepResult pipelined = trainer.step(batch.inputs, batch.labels).get();
    CHECK(pipelined.losses == reference.step(batch.inputs, batch.labels).losses);
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
  std::map<std::string, at::Tensor> expected;
  for (const StateTensor& state : reference.state()) {
    expected.emplace(state.name, state.tensor);
  }
  Names differing;
  for (const auto& [name, tensor] : buffers_of(trainer)) {
    if (!same_bits({{name, tensor}}, {{name, expected.at("buffer:" + name)}})) {
      differing.push_back(name);
    }
  }
  std::ranges::sort(differing);
  return differing;
}

TEST_CASE("forwards in order leave the running statistics of one process",
          "[integration][statistics]") {
  const Program program = make_program({.stages = 4});
  for (const char* builder : {"1f1b", "gpipe", "zb-h1", "zb-v", "interleaved", "hanayo"}) {
    CAPTURE(builder);
    const bool two_stages_each = std::string_view(builder) != "1f1b" &&
                                 std::string_view(builder) != "gpipe" &&
                                 std::string_view(builder) != "zb-h1";
    const Schedule schedule = build_schedule(
        builder, {.devices = two_stages_each ? 2 : 4, .microbatches = kMicrobatches});
    const CheckResult checked = check(program, schedule);
    CHECK(checked.ok());
    CHECK(checked.notes.empty());
    CHECK(differing_buffers(program, schedule).empty());
  }
}

TEST_CASE("forwards out of order leave others, and whoever checks is told",
          "[integration][statistics]") {
  const Program program = make_program({.stages = 2});
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "0F0 0F2 0F1 0F3 0B0 0B1 0B2 0B3\n"
      "1F0 1F2 1F1 1F3 1B0 1B1 1B2 1B3\n");
  const CheckResult checked = check(program, schedule);
  CHECK(checked.ok());
  Names buffers = checked.reordered_buffers;
  std::ranges::sort(buffers);
  CHECK(buffers == Names{"norm.num_batches_tracked", "norm.running_mean", "norm.running_var"});
  REQUIRE(checked.notes.size() == 1);  // stage 0 writes no buffer
  CHECK_THAT(checked.notes[0],
             ContainsSubstring("stage 1 (\"part1\")") && ContainsSubstring("norm.running_mean") &&
                 ContainsSubstring("runs microbatch 1 after microbatch 2"));
  // The number of batches is the same in any order, and so are losses and weights.
  CHECK(differing_buffers(program, schedule) == Names{"norm.running_mean", "norm.running_var"});
}

TEST_CASE("only a stage that writes buffers must keep the order of its forwards",
          "[integration][statistics]") {
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "0F0 0F2 0F1 0F3 0B0 0B1 0B2 0B3\n"
      "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3\n");
  CHECK(late_forwards(schedule).size() == 1);
  const Program program = make_program({.stages = 2});
  CHECK(check(program, schedule).notes.empty());
  CHECK(differing_buffers(program, schedule).empty());
  CHECK(check(make_program({.stages = 2, .statistics = false}), schedule).notes.empty());
}

}  // namespace
}  // namespace stagecraft::tests
