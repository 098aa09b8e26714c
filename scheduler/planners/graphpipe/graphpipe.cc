#include "stagecraft/scheduler/planners/graphpipe/graphpipe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/graphpipe/search.h"

namespace stagecraft {
namespace {

using graphpipe::at;
using graphpipe::Partition;
using graphpipe::PartitionProblem;
using graphpipe::PartitionStage;
using graphpipe::SearchMode;
using graphpipe::SearchOptions;
using graphpipe::Variant;

/// The number of candidates that get more than the quick search.
constexpr std::size_t kPromising = 2;

/// Further candidates are not worth a look.
constexpr std::size_t kMostCandidates = 8;

/// Returns the work of a stage with this operator alone.
StageWork work_of(const WorkGraph& graph, int op) {
  return work_of(graph, std::span(&op, 1));
}

/// Returns, by operator, the seconds to send its results to readers; each result counts once.
std::vector<double> sending(const WorkGraph& graph, const Link& link) {
  std::vector<double> made(at(graph.size()));
  for (const WorkGraph::Result& result : graph.results()) {
    made[at(result.producer)] += link.time_of(result.bytes);
  }
  return made;
}

Variant variant_of(const PlanRequest& request,
                   const WorkGraph& graph,
                   StagePace turns,
                   int devices) {
  Variant made{.turns = turns, .devices = devices, .time = {}, .send = {}, .kept = {}};
  const Link& link = request.costs.links.usual;
  const Link& sums = request.costs.links.of_sums();
  made.send = sending(graph, link);
  for (int op = 0; op < graph.size(); ++op) {
    const OperatorCost& cost = graph.at(op);
    const double step = cost.update + all_reduce_seconds(work_of(graph, op).trained, sums, devices);
    made.time.push_back(cost.time() / turns.size + step / request.batch);
    made.kept.push_back(cost.kept / turns.size);
    made.send[at(op)] /= turns.size;
  }
  return made;
}

/// Returns the bytes of the fullest device, including the values that stages receive and keep until
/// their backward.
double peak_with_inputs(WorkGraphs& graphs,
                        const PartitionProblem& problem,
                        const Partition& found) {
  double peak = 0;
  for (const PartitionStage& stage : found.stages) {
    const Variant& variant = problem.variants[at(stage.variant)];
    const WorkGraph& graph = graphs.on(variant.turns.size / variant.devices);
    const StageWork work = work_of(graph, stage.operators);
    const auto holds = [&](int op) { return std::ranges::binary_search(stage.operators, op); };
    double kept = work.kept + work.input;
    for (const WorkGraph::Result& result : graph.results()) {
      const bool received = !holds(result.producer) && std::ranges::any_of(result.consumers, holds);
      kept += received ? result.bytes : 0;
    }
    const double microbatches = static_cast<double>(stage.in_flight) / variant.turns.size;
    peak = std::max(peak, work.held + work.transient + kept * microbatches);
  }
  return peak;
}

/// Repeats the search with less memory if the received values do not fit, because the search
/// ignores them.
std::optional<Partition> partition_within(const PlanRequest& request,
                                          WorkGraphs& graphs,
                                          PartitionProblem problem,
                                          const SearchOptions& options) {
  constexpr int kAttempts = 4;
  for (int attempt = 0; attempt < kAttempts && problem.memory > 0; ++attempt) {
    auto found = graphpipe::partition_graph(problem, options);
    if (!found || std::isinf(request.memory)) {
      return found;
    }
    const double lacking = peak_with_inputs(graphs, problem, *found) - request.memory;
    if (lacking <= 0) {
      return found;
    }
    problem.memory -= lacking;
  }
  return std::nullopt;
}

/// A kind of candidates: the sizes of microbatches, and whether stages may have copies.
struct Kind {
  std::vector<int> sizes;
  bool copies = false;  ///< the result is useless if no stage has them
};

std::string part_of(const Kind& kind) {
  return fmt::format("graphpipe: microbatches of {}", fmt::join(kind.sizes, ", "));
}

std::vector<Kind> kinds_of(const PlanRequest& request, const GraphpipeOptions& options) {
  const std::vector<int> sizes = request.sizes();
  std::vector<Kind> kinds;
  for (const int size : sizes) {
    kinds.push_back({.sizes = {size}});
    if (options.copies && request.devices > 1 && size > 1) {
      kinds.push_back({.sizes = {size}, .copies = true});
    }
  }
  if (options.stage_sizes && sizes.size() > 1) {
    kinds.push_back({.sizes = sizes});
  }
  return kinds;
}

/// A candidate with its time by the planner's own model: a step takes as many turns of the slowest
/// stage as there are microbatches, plus those that fill the pipeline.
struct Rated {
  const Kind* kind = nullptr;
  double seconds = 0;
  Candidate candidate;
  std::vector<int> copies;  // by stage; empty: one each
};

Rated rate(const PlanRequest& request, const PartitionProblem& problem, const Partition& found) {
  Rated made;
  Candidate& candidate = made.candidate;
  candidate.planner = "graphpipe";
  std::set<int> sizes;
  bool shares = false;
  for (const PartitionStage& stage : found.stages) {
    const Variant& variant = problem.variants[at(stage.variant)];
    candidate.stages.push_back(stage.operators);
    made.copies.push_back(variant.devices);
    candidate.stage_sizes.push_back(variant.turns.size);
    sizes.insert(variant.turns.size);
    shares = shares || variant.devices > 1;
  }
  candidate.microbatch_size = *sizes.begin();
  made.seconds = found.time * (request.batch + found.in_flight - candidate.microbatch_size);
  if (!shares) {
    made.copies.clear();
  }
  if (sizes.size() == 1) {
    candidate.stage_sizes.clear();
  }
  return made;
}

/// Returns the ranks of each row, one row after the other.
std::vector<std::vector<Rank>> places_of(const std::vector<int>& copies) {
  std::vector<std::vector<Rank>> places;
  int next = 0;
  for (const int count : copies) {
    std::vector<Rank>& ranks = places.emplace_back();
    for (int i = 0; i < count; ++i) {
      ranks.emplace_back(next++);
    }
  }
  return places;
}

Candidate with_schedule(const PlanRequest& request, WorkGraphs& graphs, Rated rated) {
  Candidate made = std::move(rated.candidate);
  const int microbatches = request.batch / made.microbatch_size;
  if (!rated.copies.empty()) {
    made.microbatch_size /= std::ranges::max(rated.copies);  // powers of 2, so all divide it
  }
  StageGraph graph = stage_graph_of(graphs.on(made.microbatch_size), made.stages);
  if (made.stage_sizes.empty()) {
    const Schedule one = one_f_one_b(graph, microbatches);
    Schedule::Headers headers = one.headers();
    headers.places = places_of(rated.copies);
    made.schedule = Schedule(one.form(), one.rows(), std::move(headers));
    made.schedule_name = graph.is_chain() ? "1f1b" : "dag-1f1b";
    if (!rated.copies.empty()) {
      made.schedule_name += fmt::format(" copies={}", fmt::join(rated.copies, ","));
    }
    return made;
  }
  const std::vector<int> units = made.sizes_in_units();
  graph.set_microbatch_sizes(units);
  made.schedule = kfkb(graph, microbatches, {1});
  made.schedule_name = fmt::format("kfkb sizes={}", fmt::join(units, ","));
  return made;
}

[[noreturn]] void refuse(const PlanRequest& request,
                         WorkGraphs& graphs,
                         const PartitionProblem& problem) {
  PartitionProblem unlimited = problem;
  unlimited.memory = std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();
  if (const auto found = graphpipe::partition_graph(unlimited)) {
    least = peak_with_inputs(graphs, unlimited, *found);
  }
  throw Error(Errc::PlanInfeasible,
              fmt::format("graphpipe finds no stages that fit {} devices of {}: the fastest "
                          "stages hold {}, {} more; use more devices, devices with more memory, "
                          "or smaller microbatches",
                          request.devices,
                          bytes_text(request.memory),
                          bytes_text(least),
                          enough_bytes_text(least - request.memory)));
}

/// Makes the problem: times are of forward, backward and update of a sample; transfers use the
/// usual link.
PartitionProblem problem_of(const PlanRequest& request, WorkGraphs& graphs, const Kind& kind) {
  PartitionProblem problem{.devices = request.devices, .memory = request.memory};
  const std::vector<int> allowed = request.sizes();
  for (const int size : kind.sizes) {
    for (int d = 1; d <= (kind.copies ? request.devices : 1) && size % d == 0; d *= 2) {
      if (std::ranges::find(allowed, size / d) != allowed.end()) {
        problem.variants.push_back(variant_of(request, graphs.on(size / d), {.size = size}, d));
      }
    }
  }
  const WorkGraph& graph = graphs.on(kind.sizes.front());
  problem.operators = graph.size();
  for (int op = 0; op < graph.size(); ++op) {
    problem.fixed.push_back(work_of(graph, op).held);
    for (const int pred : graph.preds(op)) {
      problem.edges.emplace_back(pred, op);
    }
  }
  return problem;
}

}  // namespace

std::optional<std::string> graphpipe_refuses(const PlanRequest& request) {
  if (request.schedule) {
    return "graphpipe makes the schedule of the stages that it finds; leave the schedule out, or "
           "ask pfeife for the best cut for it";
  }
  if (!takes_builder(request, "1f1b")) {
    return fmt::format(
        "graphpipe plans for 1f1b and dag-1f1b, found {}; ask pfeife for the best cut for it",
        *request.builder);
  }
  return std::nullopt;
}

std::vector<Candidate> graphpipe_candidates(const PlanRequest& request,
                                            const GraphpipeOptions& options) {
  const std::vector<Kind> kinds = kinds_of(request, options);
  WorkGraphs graphs(request.costs);
  std::vector<Rated> found;
  bool is_cut_short = false;
  const auto search = [&](const Kind& kind, SearchMode mode) -> std::optional<Rated> {
    const PartitionProblem problem = problem_of(request, graphs, kind);
    const auto is_over = request.is_over(part_of(kind));
    const auto partition =
        partition_within(request, graphs, problem, {.mode = mode, .is_over = is_over});
    return partition ? std::optional(rate(request, problem, *partition)) : std::nullopt;
  };
  for (const Kind& kind : kinds) {
    if (!request.proceeds(part_of(kind), !found.empty())) {
      is_cut_short = true;
      break;
    }
    if (auto rated = search(kind, SearchMode::Absorbing)) {
      rated->kind = &kind;
      found.push_back(std::move(*rated));
    }
  }
  std::ranges::stable_sort(found, {}, &Rated::seconds);
  // The exact search is slow, so only likely answers get it.
  for (std::size_t i = 0; i < std::min(kPromising, found.size()); ++i) {
    if (!request.proceeds("graphpipe: all sets of operators", true)) {
      break;
    }
    if (auto rated = search(*found[i].kind, SearchMode::Auto)) {
      rated->kind = found[i].kind;
      found[i] = std::move(*rated);
    }
  }
  std::erase_if(found, [&](const Rated& rated) {
    return !is_cut_short && rated.kind->copies && rated.copies.empty();
  });
  if (found.empty()) {
    refuse(request, graphs, problem_of(request, graphs, kinds.front()));
  }
  std::ranges::stable_sort(found, {}, &Rated::seconds);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < std::min(kMostCandidates, found.size()); ++i) {
    candidates.push_back(with_schedule(request, graphs, std::move(found[i])));
  }
  return candidates;
}

std::vector<Candidate> graphpipe_candidates(const PlanRequest& request) {
  return graphpipe_candidates(
      request, {.copies = request.copies_of_stages, .stage_sizes = request.stage_sizes});
}

}  // namespace stagecraft
