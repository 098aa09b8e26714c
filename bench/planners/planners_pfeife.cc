#include "stagecraft/bench/planners/planners_pfeife.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/scheduler/planners/pfeife/cut_search.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife_sets.h"

namespace stagecraft::bench {
namespace {

constexpr int kOperators = 1645;
constexpr int kBlocks = 18;  // nine on the way down, nine on the way up
constexpr double kMemory = 40e9;

/// UnetWriter writes operators one after another.
class UnetWriter {
 public:
  explicit UnetWriter(unsigned seed) : random_(seed) {}

  /// Adds an operator that reads the one before it, and `more`. `heavy`: it is a matrix product;
  /// others copy or add.
  int add(bool heavy, double milliseconds, double megabytes, std::vector<int> more = {}) {
    const int id = static_cast<int>(costs_.operators.size());
    const double time = 1e-3 * milliseconds * (heavy ? uneven(0.5, 1.8) : uneven(0.02, 0.15));
    const double bytes = 1e6 * megabytes * uneven(0.7, 1.3);
    OperatorCost op{.id = id,
                    .forward = time,
                    .backward_input = time * uneven(0.9, 1.2),
                    .backward_weight = heavy ? time * uneven(0.8, 1.1) : 0,
                    .kept = bytes * (heavy ? 1.0 : uneven(0, 1)),
                    .transient = bytes * uneven(0, 1.5),
                    .output = bytes};
    if (id > 0) {
      op.reads.push_back({id - 1, 0, costs_.operators.back().output});
    }
    for (const int producer : more) {
      op.reads.push_back({producer, 0, costs_.operators[index(producer)].output});
    }
    if (heavy) {
      const std::string name = "weight" + std::to_string(id);
      const double weight = 1e6 * uneven(2, 14);
      costs_.parameters.push_back({name, weight, 4 * weight});
      op.parameters = {name};
      op.update = weight / 2e11;
    }
    costs_.operators.push_back(std::move(op));
    return id;
  }

  [[nodiscard]] int size() const { return static_cast<int>(costs_.operators.size()); }
  [[nodiscard]] Costs take() { return std::move(costs_); }

 private:
  static std::size_t index(int op) { return static_cast<std::size_t>(op); }
  double uneven(double low, double high) {
    const auto share = static_cast<double>(random_() - std::minstd_rand::min()) /
                       (std::minstd_rand::max() - std::minstd_rand::min());
    return low + share * (high - low);
  }

  std::minstd_rand random_;
  Costs costs_;
};

std::vector<int> equal_counts(int operators, int stages) {
  std::vector<int> cuts;
  for (int s = 1; s < stages; ++s) {
    cuts.push_back(s * operators / stages);
  }
  return cuts;
}

}  // namespace

Costs unet_costs(unsigned seed) {
  UnetWriter unet(seed);
  const int text = unet.add(false, 0.1, 0.3);
  const int time = unet.add(true, 0.2, 0.01);
  std::vector<int> skips;
  for (int block = 0; block < kBlocks; ++block) {
    const bool up = block >= kBlocks / 2;
    const int depth = up ? kBlocks - 1 - block : block;  // 0: outermost, many pixels
    const double time_of_block = 0.5 + 0.25 * depth;
    const double bytes_of_block = 24.0 / (1 + depth);
    const int end = (kOperators - 2) * (block + 1) / kBlocks + 2;
    for (int i = 0; unet.size() < end; ++i) {
      std::vector<int> more;
      if (i == 0 && up) {
        more.push_back(skips[static_cast<std::size_t>(depth)]);
      }
      if (i % 40 == 5) {
        more.push_back(time);
      }
      if (depth > 2 && i % 20 == 15) {
        more.push_back(text);
      }
      unet.add(i % 4 == 0, time_of_block, bytes_of_block, std::move(more));
    }
    skips.push_back(unet.size() - 1);
  }
  Costs costs = unet.take();
  costs.links.usual = {.latency = 1e-5, .bandwidth = 1e10};
  return costs;
}

namespace {

/// Timed holds the seconds of a search and the step that it found.
struct Timed {
  double seconds = 0;
  double step = std::numeric_limits<double>::infinity();
};

/// Searches the best cut over the sets, by the paper's beam alone, from the best of the set before.
Timed plain_search(const std::vector<PfeifeOptions>& sets,
                   const PlanRequest& request,
                   const OperatorRow& row) {
  Timed plain;
  plain.seconds = seconds_of([&] {
    std::vector<int> last;
    for (const PfeifeOptions& set : sets) {
      CutCost cost(
          row, request.costs.links, pfeife(request.devices, request.batch, set), request.memory);
      if (last.empty()) {
        last = equal_counts(row.size(), cost.stages());
      }
      const ScoredCut found = beam_from(cost, last, {.rounds = std::numeric_limits<int>::max()});
      last = found.cuts;
      plain.step = std::min(
          plain.step,
          found.score.excess > 0 ? std::numeric_limits<double>::infinity() : found.score.time);
    }
  });
  return plain;
}

}  // namespace

PfeifeFigures pfeife_figures(unsigned seed) {
  PfeifeFigures figures;
  const PlanRequest request{.costs = unet_costs(seed),
                            .devices = figures.devices,
                            .batch = figures.microbatches,
                            .memory = kMemory,
                            .microbatch_sizes = {1}};
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  const OperatorRow row(graph);
  figures.operators = row.size();
  std::vector<PfeifeOptions> sets = pfeife_sets({.operators = row.size(),
                                                 .devices = figures.devices,
                                                 .microbatches = figures.microbatches,
                                                 .forward = row.times(0, row.size()).forward});
  std::erase_if(sets, [](const PfeifeOptions& set) { return set.loops != 3; });
  const Timed plain = plain_search(sets, request, row);
  figures.plain_seconds = plain.seconds;
  figures.plain_step = plain.step;
  std::vector<Candidate> found;
  figures.seconds = seconds_of([&] { found = pfeife_candidates(request); });
  const Candidate& best = found.front();
  figures.schedule = best.schedule_name;
  std::vector<int> cuts;
  for (std::size_t s = 1; s < best.stages.size(); ++s) {
    cuts.push_back(best.stages[s].front());
  }
  figures.step = CutCost(row, request.costs.links, best.schedule, request.memory).step_time(cuts);
  return figures;
}

}  // namespace stagecraft::bench
