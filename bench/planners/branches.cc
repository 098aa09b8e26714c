/// What is the gain of keeping a model's branches parallel? This program repeats GraphPipe's branch
/// sweep, ablation and case study by simulation on cost graphs.
///
/// The paper's sequential way is the same planner on the same operators, each of which also waits
/// for the one before it: a pipeline of a chain. A user need not add that order. Therefore the
/// program also runs other planners on the original operators: `balance`, and `pfeife` up to its
/// largest number of devices. These give every device an operator, so they use fewer devices if
/// there are fewer operators. Memory is that of a device of 16 GB. Stages have no copies, since
/// the comparison is about depth.
///
///   branches
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/examples/costs/cost_models.h"
#include "stagecraft/scheduler/planners/graphpipe/graphpipe.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/planners/registry.h"

namespace stagecraft::bench::branches {
namespace {

constexpr double kDeviceMemory = 16e9;
constexpr int kOrderOnly = 1 << 15;  // no result of an operator has this number

/// Returns the costs with the operators in a chain.
Costs in_a_row(Costs costs) {
  for (std::size_t i = 1; i < costs.operators.size(); ++i) {
    costs.operators[i].reads.push_back({costs.operators[i - 1].id, kOrderOnly, 0});
  }
  return costs;
}

PlanRequest request_of(const Costs& costs, int devices, int batch, const std::vector<int>& sizes) {
  return {.costs = costs,
          .devices = devices,
          .batch = batch,
          .memory = kDeviceMemory,
          .microbatch_sizes = sizes};
}

/// Returns the planner's candidate with the shortest step, by the simulator.
PlanProposal best(const PlanRequest& request) {
  Judge judge(request);
  std::vector<PlanProposal> all;
  for (const Candidate& candidate : graphpipe_candidates(request, {.copies = false})) {
    all.push_back(judge.propose(candidate));
  }
  return *std::ranges::min_element(all, {}, &PlanProposal::step);
}

/// The best plan of other planners, or why there is none.
struct Others {
  std::optional<PlanProposal> best;
  std::vector<std::string> refusals;
};

/// Asks the planners that cut the order of the forward, on the true edges.
Others best_of_others(PlanRequest request) {
  request.devices = std::min(request.devices, request.pieces());
  Judge judge(request);
  Others others;
  std::vector<PlanProposal> all;
  for (const char* name : {"balance", "pfeife"}) {
    const PlannerInfo& planner = find_planner(name);
    if (const auto reason = planner.refuses(request)) {
      others.refusals.push_back(fmt::format("{}: {}", name, *reason));
      continue;
    }
    try {
      for (const Candidate& candidate : planner.search(request)) {
        all.push_back(judge.propose(candidate));
      }
    } catch (const Error& error) {
      others.refusals.push_back(fmt::format("{}: {}", name, error.what()));
    }
  }
  if (!all.empty()) {
    others.best = *std::ranges::min_element(all, {}, &PlanProposal::step);
  }
  return others;
}

std::string text_of(const Others& others, double row_step) {
  if (!others.best) {
    return fmt::format("none: {}", fmt::join(others.refusals, "; "));
  }
  return fmt::format("{:.2f} x ({} by {}, {} devices, depth {}, microbatches of {})",
                     row_step / others.best->step,
                     others.best->candidate.schedule_name,
                     others.best->candidate.planner,
                     others.best->candidate.schedule.rows().size(),
                     others.best->graph.depth(),
                     others.best->candidate.microbatch_size);
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> sizes;
  for (int size = 1; size <= most; size *= 2) {
    sizes.push_back(size);
  }
  return sizes;
}

std::string text_of(const PlanProposal& plan) {
  return fmt::format(
      "depth {:2}, microbatches of {:4}", plan.graph.depth(), plan.candidate.microbatch_size);
}

/// Compares the plans of one model: in a chain; its branches side by side, with microbatches of the
/// same size; with any size; and those of the other planners with any size.
void compare(const std::string& name, const Costs& costs, int devices, int batch) {
  const std::vector<int> sizes = powers_of_two(batch / 2);
  const PlanProposal row = best(request_of(in_a_row(costs), devices, batch, sizes));
  const PlanProposal side =
      best(request_of(costs, devices, batch, {row.candidate.microbatch_size}));
  const PlanProposal any = best(request_of(costs, devices, batch, sizes));
  const Others others = best_of_others(request_of(costs, devices, batch, sizes));
  fmt::print(
      "{:22} {:2} devices  in a row: {}  side by side {:.2f} x ({})  any size {:.2f} x ({})  "
      "others {}\n",
      name,
      devices,
      text_of(row),
      row.step / side.step,
      text_of(side),
      row.step / any.step,
      text_of(any),
      text_of(others, row.step));
  std::fflush(stdout);
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  fmt::print("{}\n", hardware());
  fmt::print("\nbranches of a feed-forward model, as many devices as branches, 512 samples each\n");
  for (const int branches : {2, 4, 8, 16}) {
    compare(fmt::format("{} branches", branches),
            examples::feed_forward_branches({.branches = branches}),
            branches,
            512 * branches);
  }
  fmt::print("\nparallel stages alone, and larger microbatches too\n");
  compare("mmt", examples::find_cost_model("mmt").costs(), 32, 512);
  compare("dlrm", examples::find_cost_model("dlrm").costs(), 32, 2048);
  compare("candle-uno", examples::find_cost_model("candle-uno").costs(), 32, 32768);
  fmt::print("\ncase study\n");
  compare("2 branches of 4 layers", examples::find_cost_model("case-study").costs(), 8, 64);
  return 0;
}

}  // namespace stagecraft::bench::branches
