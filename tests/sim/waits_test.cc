/// Leaves out once each wait between streams that a device needs, of each builder's plan, and each
/// keeping of memory for another stream: the detector finds it.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/sim/chain_plans.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Reports = std::vector<std::string>;

/// The other ranks read from a device on its streams of high priority.
constexpr int kFirstReader = 1 + sim::kPool;

/// Returns the streams of a list as its device numbers them, from 1: as they are used.
std::vector<StreamId> used_streams(const std::vector<Instruction>& list) {
  std::vector<StreamId> used{kCompute};
  for (const Instruction& instruction : list) {
    if (std::ranges::find(used, instruction.stream) == used.end()) {
      used.push_back(instruction.stream);
    }
  }
  return used;
}

/// Runs steps of a schedule, each rank on a device of its own.
class Steps {
 public:
  /// `apart`: as if each rank had a process of its own.
  Steps(const Schedule& schedule, const Chain& chain, bool apart = false)
      : chain_(chain),
        devices_({.at_once = true}),
        pipeline_(*chain.program, schedule, {.device = "sim", .apart = apart}) {
    CHECK(runs());  // makes all streams
  }

  /// Runs a step with these options. Returns what the detector found.
  Reports with(sim::Options options) {
    options.at_once = true;
    SimDevices::restart(options);
    CHECK(runs());
    return SimDevices::take_reports();
  }
  Reports without_wait(const sim::StreamCall& wait) { return with({.left_out_wait = wait}); }
  Reports without_keep(const sim::StreamCall& keep) { return with({.left_out_keep = keep}); }

  /// Returns whether sums start on the call's stream.
  [[nodiscard]] bool adds_on(const sim::StreamCall& call) const {
    const auto& list = pipeline_.plan().list_of(Rank(call.device)).instructions;
    const StreamId stream = used_streams(list).at(static_cast<std::size_t>(call.stream - 1));
    return std::ranges::any_of(list, [&](const Instruction& one) {
      return one.stream == stream && is_collective(one.op);
    });
  }

 private:
  [[nodiscard]] bool runs() {
    const auto outcome = pipeline_.step(chain_.inputs, chain_.labels);
    return std::ranges::none_of(outcome.errors,
                                [](const auto& error) { return error.has_value(); });
  }

  const Chain& chain_;
  SimDevices devices_;
  testing::Pipeline pipeline_;
};

struct PlannedWait {
  sim::StreamCall wait;
  std::string text;
};

/// Returns the waits of the rank's list that its device needs.
std::vector<PlannedWait> waits_of(const Plan& plan, Rank rank, bool apart) {
  const std::vector<Instruction>& list = plan.list_of(rank).instructions;
  std::map<InstructionId, const Instruction*> by_id;
  const std::vector<StreamId> used = used_streams(list);
  std::map<StreamId, int> count;
  std::vector<PlannedWait> waits;
  for (const Instruction& instruction : list) {
    by_id[instruction.id] = &instruction;
    const auto position = std::ranges::find(used, instruction.stream) - used.begin();
    for (const InstructionId earlier : instruction.waits) {
      if (instruction.op == Op::Free || by_id.at(earlier)->op == Op::Free) {
        continue;  // a device does not wait there
      }
      const int number = count[instruction.stream]++;
      if (instruction.overlap >= 0) {
        continue;  // the order of its group is not known before
      }
      const bool sums = is_collective(instruction.op) || is_collective(by_id.at(earlier)->op);
      if (sums && apart && plan.tables.has_overlaps) {
        continue;  // they cross in the host's memory, so the host waits
      }
      waits.push_back({.wait = {.device = rank.value,
                                .stream = 1 + static_cast<int>(position),
                                .number = number},
                       .text = fmt::format("rank {}: {} after {}",
                                           rank.value,
                                           to_string(instruction),
                                           to_string(*by_id.at(earlier)))});
    }
    if (!apart && ((instruction.op == Op::Recv && instruction.peer != kDriverPeer) ||
                   instruction.op == Op::Finish)) {
      ++count[instruction.stream];  // for the sender's device, or for the stream that adds
    }
  }
  return waits;
}

/// Leaves out once each keeping of memory for a stream of its own device. Returns how many these
/// are. One for a stream that reads from another device may not be needed: a sender keeps what it
/// needs for a backward, which comes after the copy. Nor is one for a stream of sums: a stage keeps
/// its gradients.
std::size_t leave_out_each_keep(Steps& steps) {
  CHECK(steps.with({}) == Reports());
  std::size_t left_out = 0;
  for (const sim::StreamCall& keep : sim::Machine::the().kept()) {
    if (keep.stream < kFirstReader && !steps.adds_on(keep)) {
      INFO("device " << keep.device << ", stream " << keep.stream << ", " << keep.number);
      CHECK_FALSE(steps.without_keep(keep).empty());
      ++left_out;
    }
  }
  return left_out;
}

/// Leaves out once each wait that the plan needs. Returns how many these are.
std::size_t leave_out_each(const Schedule& schedule, const Chain& chain, bool apart = false) {
  std::size_t left_out = 0;
  Steps steps(schedule, chain, apart);
  CHECK(steps.with({}) == Reports());
  const testing::Pipeline on_cpu(*chain.program, schedule);
  for (int rank = 0; rank < on_cpu.layout().ranks(); ++rank) {
    for (const PlannedWait& planned : waits_of(on_cpu.plan(), Rank(rank), apart)) {
      INFO(planned.text);
      CHECK_FALSE(steps.without_wait(planned.wait).empty());
      ++left_out;
    }
  }
  return left_out;
}

TEST_CASE("each wait that a plan needs is found where it is left out", "[sim][builders]") {
  std::size_t left_out = 0;
  for (const BuilderInfo& builder : builders()) {
    for (const int devices : {2, 4}) {
      if (const std::optional<Schedule> schedule = schedule_of(builder, devices)) {
        INFO(builder.name << " on " << devices << " devices");
        left_out += leave_out_each(*schedule, Chain(Layout::of(*schedule).model_stages()));
      }
    }
  }
  CHECK(left_out > 1000);
}

TEST_CASE("each wait is found likewise where NCCL moves the tensors", "[sim][builders]") {
  std::size_t left_out = 0;
  for (const BuilderInfo& builder : builders()) {
    for (const int devices : {2, 4}) {
      if (const std::optional<Schedule> schedule = schedule_of(builder, devices)) {
        INFO(builder.name << " on " << devices << " devices");
        left_out += leave_out_each(*schedule, Chain(Layout::of(*schedule).model_stages()), true);
      }
    }
  }
  CHECK(left_out > 1000);
}

TEST_CASE("memory that is not kept for the tasks that use what was received is found",
          "[sim][builders]") {
  std::size_t left_out = 0;
  for (const BuilderInfo& builder : builders()) {
    if (const std::optional<Schedule> schedule = schedule_of(builder, 2)) {
      INFO(builder.name);
      const Chain chain(Layout::of(*schedule).model_stages());
      Steps steps(*schedule, chain);
      left_out += leave_out_each_keep(steps);
    }
  }
  CHECK(left_out > 200);
}

TEST_CASE("each wait of copies of stages, and of stages that recompute, is found likewise",
          "[sim]") {
  const bool recomputes = GENERATE(false, true), apart = GENERATE(false, true);
  CAPTURE(recomputes, apart);
  const Schedule schedule =
      two_copies_of(one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches / 2));
  CHECK(leave_out_each(schedule, Chain(2, recomputes ? Recompute::stages() : Recompute()), apart) >
        10);
}

TEST_CASE("a receive that does not wait for the sender's point is found", "[sim]") {
  const Chain chain(2);
  const Schedule schedule = one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches);
  Steps steps(schedule, chain);
  CHECK(steps.with({}) == Reports());
  for (int sender = 0; sender < 2; ++sender) {
    for (int microbatch = 0; microbatch < Chain::kMicrobatches; ++microbatch) {
      CAPTURE(sender, microbatch);
      // The reader waits twice for each copy: for the point, and for its own device.
      const sim::StreamCall wait{
          .device = sender, .stream = kFirstReader, .number = 2 * microbatch};
      CHECK_FALSE(steps.without_wait(wait).empty());
    }
  }
  for (int microbatch = 0; microbatch < Chain::kMicrobatches; ++microbatch) {
    CAPTURE(microbatch);
    const sim::StreamCall gradient{.device = 1, .stream = kFirstReader, .number = microbatch};
    CHECK_FALSE(steps.without_keep(gradient).empty());
  }
}

TEST_CASE("ranks that share a device hand over in order", "[sim]") {
  const Chain chain(2);
  const Schedule schedule = one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches);
  const SimDevices devices({.most_delay = std::chrono::microseconds(200)});
  testing::Pipeline shared(*chain.program, schedule, {.device = "sim:1"});
  testing::Pipeline on_cpu(*chain.program, schedule);
  for (int step = 0; step < 3; ++step) {
    const std::int64_t waits = SimDevices::host_waits();
    CHECK(shared.step(chain.inputs, chain.labels).losses ==
          on_cpu.step(chain.inputs, chain.labels).losses);
    // Each rank waits for the norms of its stage and, after the vote, for each of its streams.
    constexpr int kRanks = 2, kStreams = 3, kForLosses = 1;
    CHECK(SimDevices::host_waits() - waits == kRanks * (1 + kStreams) + kForLosses);
  }
  SimDevices::finish();
  for (const auto& [name, tensor] : shared.state()) {
    CHECK(torch::equal(tensor.cpu(), on_cpu.state().at(name)));
  }
  CHECK(SimDevices::take_reports() == Reports());
}

}  // namespace
}  // namespace stagecraft::tests
