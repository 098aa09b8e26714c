/// Tests what CUDA graphs need of a step: if its shapes are fixed and it draws no random numbers,
/// the host makes the same calls as in the step before, and waits for a device only in the vote and
/// at the end. Numbers that the host gives an operator, such as a learning rate, are not compared.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/sim/chain_plans.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Calls = sim::Machine::Calls;
using Texts = std::vector<std::string>;

/// Returns how often the host has waited for streams of the rank's device.
std::ptrdiff_t host_waits(const Calls& calls, Rank rank) {
  std::ptrdiff_t waits = 0;
  for (const auto& [stream, of_stream] : calls) {
    if (stream.starts_with(fmt::format("sim:{} ", rank.value))) {
      waits += std::ranges::count(of_stream, sim::kHostWaits);
    }
  }
  return waits;
}

/// Returns the calls without their order.
Calls sorted(Calls calls) {
  for (auto& [stream, of_stream] : calls) {
    std::ranges::sort(of_stream);
  }
  return calls;
}

/// Returns the first call of each stream that differs.
Texts differences(Calls one, Calls other) {
  for (const auto& [stream, calls] : one) {
    (void)other[stream];
  }
  Texts found;
  for (const auto& [stream, calls] : other) {
    const Texts& before = one[stream];
    const auto [a, b] = std::ranges::mismatch(before, calls);
    if (a != before.end() || b != calls.end()) {
      found.push_back(fmt::format("{}, call {}: {}, then {}",
                                  stream,
                                  a - before.begin(),
                                  a == before.end() ? "nothing" : *a,
                                  b == calls.end() ? "nothing" : *b));
    }
  }
  return found;
}

/// Runs steps of a schedule, each rank on a device of its own.
class NotedSteps {
 public:
  using Hook = std::function<void(Rank, const Instruction&)>;

  /// `hook`: is called before each instruction.
  NotedSteps(const Chain& chain, const Schedule& schedule, bool apart = false, Hook hook = {})
      : chain_(chain),
        hook_(std::move(hook)),
        begun_(static_cast<std::size_t>(Layout::of(schedule).ranks())),
        pipeline_(*chain.program,
                  schedule,
                  {.faults = notes_of_ranks(), .device = "sim", .apart = apart}) {
    (void)run();  // makes streams and the optimizer's state
  }

  Calls run() {
    SimDevices::restart({.at_once = true, .keeps_calls = true});
    std::ranges::fill(begun_, std::vector<Begun>());
    const std::int64_t copies = SimDevices::pageable_copies();
    const auto outcome = pipeline_.step(chain_.inputs, chain_.labels);
    CHECK(std::ranges::none_of(outcome.errors, [](const auto& e) { return e.has_value(); }));
    pageable_copies_ = SimDevices::pageable_copies() - copies;
    return calls_ = SimDevices::calls();
  }

  // These two are about the last step.

  [[nodiscard]] std::int64_t pageable_copies() const { return pageable_copies_; }

  /// Returns the instructions, but for votes, in which the host waited for the rank's device. At
  /// its end a step waits once for each stream.
  [[nodiscard]] Texts waiting() const {
    Texts found;
    for (std::size_t r = 0; r < begun_.size(); ++r) {
      const Rank rank(r);
      const std::vector<Begun>& begun = begun_[r];
      for (std::size_t i = 0; i < begun.size(); ++i) {
        const std::ptrdiff_t after =
            i + 1 < begun.size()
                ? begun[i + 1].waits
                : host_waits(calls_, rank) - std::ssize(plan().list_of(rank).streams);
        if (after != begun[i].waits && begun[i].instruction.op != Op::Vote) {
          found.push_back(fmt::format("rank {}: {}", r, to_string(begun[i].instruction)));
        }
      }
    }
    return found;
  }

  [[nodiscard]] const Plan& plan() const { return pipeline_.plan(); }

 private:
  struct Begun {
    Instruction instruction;
    std::ptrdiff_t waits = 0;  ///< of the host for the rank's device until then
  };

  std::map<Rank, std::function<void(const Instruction&)>> notes_of_ranks() {
    std::map<Rank, std::function<void(const Instruction&)>> notes;
    for (std::size_t r = 0; r < begun_.size(); ++r) {
      notes[Rank(r)] = [this, r](const Instruction& next) {
        begun_[r].push_back({next, host_waits(SimDevices::calls(), Rank(r))});
        if (hook_) {
          hook_(Rank(r), next);
        }
      };
    }
    return notes;
  }

  const Chain& chain_;
  const Hook hook_;
  SimDevices devices_{{.at_once = true}};
  std::vector<std::vector<Begun>> begun_;  ///< by rank, each written by its thread
  testing::Pipeline pipeline_;
  Calls calls_;
  std::int64_t pageable_copies_ = 0;
};

void check_same_calls(const Schedule& schedule, bool apart) {
  const Chain chain(Layout::of(schedule).model_stages());
  NotedSteps steps(chain, schedule, apart);
  const Calls before = steps.run(), calls = steps.run();
  const PlanTables& tables = steps.plan().tables;
  if (tables.has_overlaps || (!tables.groups.empty() && !apart)) {
    // Ranks choose the order of tasks, or that of parts of sums, as tensors arrive.
    CHECK(differences(sorted(before), sorted(calls)) == Texts());
  } else {
    CHECK(differences(before, calls) == Texts());
  }
  CHECK(steps.pageable_copies() == 0);
  if (!tables.has_overlaps || !apart) {  // otherwise tensors cross in the host's memory
    CHECK(steps.waiting() == Texts());
  }
}

TEST_CASE("each step of each builder's plan makes the calls of the step before",
          "[sim][builders]") {
  const bool apart = GENERATE(false, true);
  int plans = 0;
  for (const BuilderInfo& builder : builders()) {
    for (const int devices : {2, 4}) {
      if (const std::optional<Schedule> schedule = schedule_of(builder, devices)) {
        INFO(builder.name << " on " << devices << " devices, apart: " << apart);
        check_same_calls(*schedule, apart);
        ++plans;
      }
    }
  }
  CHECK(plans > 20);
}

TEST_CASE("a step of other shapes, or by another plan, makes other calls", "[sim]") {
  const auto calls_of = [](const Chain& chain, const Schedule& schedule) {
    return NotedSteps(chain, schedule).run();
  };
  const StageGraph stages = StageGraph::chain(2);
  const Schedule usual = one_f_one_b(stages, Chain::kMicrobatches);
  const Calls calls = calls_of(Chain(2), usual);
  CHECK(differences(calls, calls_of(Chain(2), usual)) == Texts());
  CHECK_FALSE(differences(calls, calls_of(Chain(2, {}, /*rows=*/2), usual)).empty());
  CHECK_FALSE(differences(calls, calls_of(Chain(2), gpipe(stages, Chain::kMicrobatches))).empty());
}

TEST_CASE("a task in which the host waits for its device is found", "[sim]") {
  const Chain chain(2);
  NotedSteps steps(chain,
                   one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches),
                   /*apart=*/false,
                   [](Rank rank, const Instruction& next) {
                     if (rank == Rank(1) && next.op == Op::Run) {
                       sim::Machine::the().synchronize(rank.value);
                     }
                   });
  CHECK_FALSE(steps.waiting().empty());
}

}  // namespace
}  // namespace stagecraft::tests
