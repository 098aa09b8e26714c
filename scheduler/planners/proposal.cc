#include "stagecraft/scheduler/planners/proposal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/planners/constrained_search.h"
#include "stagecraft/scheduler/planners/device_order.h"
#include "stagecraft/scheduler/planners/kept_orders.h"
#include "stagecraft/scheduler/planners/least_memory.h"
#include "stagecraft/scheduler/planners/pfeife/given_schedule.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife.h"
#include "stagecraft/scheduler/planners/registry.h"
#include "stagecraft/scheduler/planners/request/costs_of_copies.h"
#include "stagecraft/scheduler/planners/request/early_values.h"
#include "stagecraft/scheduler/planners/request/update_bytes.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

std::size_t index(int number) {
  return static_cast<std::size_t>(number);
}

/// Returns the row to which the awaited result was on its way: the entry's own row, unless an order
/// makes the entry wait for another row's transfer.
int receiving_row(const PlanProposal& proposal, const EntryTime& entry, int row) {
  for (const EventOrder& order : proposal.orders) {
    if (order.before.is_transfer() && order.before.task == entry.waited_for &&
        !order.after.is_transfer() &&
        std::ranges::find(entry.cell->tasks(), order.after.task) != entry.cell->tasks().end()) {
      return proposal.devices[order.before.receiver.index()];
    }
  }
  return row;
}

Bottleneck bottleneck_of(const PlanProposal& proposal, const Timeline& timeline) {
  std::vector<Bottleneck> all;
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    all.push_back({Bottleneck::Kind::Device, static_cast<int>(row), 0, timeline.rows[row].busy});
  }
  std::map<std::pair<int, int>, double> transfers;
  for (const Task& task : proposal.critical_path) {
    const int row = proposal.devices[task.stage.index()];
    const auto& entries = timeline.rows[index(row)].entries;
    const auto entry = std::ranges::find_if(entries, [&](const EntryTime& e) {
      return std::ranges::find(e.cell->tasks(), task) != e.cell->tasks().end();
    });
    if (entry != entries.end() && entry->waited_for && entry->in_transfer > 0) {
      const int from = proposal.devices[entry->waited_for->stage.index()];
      const int to = receiving_row(proposal, *entry, row);
      transfers[{std::min(from, to), std::max(from, to)}] += entry->in_transfer;
    }
  }
  for (const auto& [ends, seconds] : transfers) {
    all.push_back({Bottleneck::Kind::Link, ends.first, ends.second, seconds});
  }
  all.push_back({Bottleneck::Kind::Update, 0, 0, proposal.update});
  Bottleneck most = *std::ranges::max_element(all, {}, &Bottleneck::share);
  most.share = proposal.step > 0 ? most.share / proposal.step : 0;
  return most;
}

/// Returns the longest path through the model, forward and back.
double longest_path(const WorkGraph& graph) {
  const auto time = [](const OperatorCost& op) { return op.forward + op.backward_input; };
  const std::vector<double> before = longest_before(graph, time);
  double longest = 0;
  for (int op = 0; op < graph.size(); ++op) {
    longest = std::max(longest, before[index(op)] + time(graph.at(op)));
  }
  return longest;
}

/// Returns how many devices can compute at the same time.
double at_once(const PlanRequest& request) {
  const CostDevice& device = request.costs.device;
  const double devices = request.devices;
  return device.processors == 0
             ? devices
             : std::min(devices,
                        static_cast<double>(device.processors) / std::max(1, device.threads));
}

double bound_of(const PlanRequest& request, WorkGraphs& graphs) {
  double least = 0;
  for (const int samples : request.sizes()) {
    const WorkGraph& graph = graphs.on(samples);
    double total = 0;
    for (int op = 0; op < graph.size(); ++op) {
      total += graph.at(op).time();
    }
    const double work = total * (request.batch / samples) / at_once(request);
    const double bound = std::max(work, longest_path(graph));
    least = least == 0 ? bound : std::min(least, bound);
  }
  return least;
}

/// Keeps PO-1.
void sort_best_first(std::vector<PlanProposal>& all) {
  std::ranges::stable_sort(
      all, {}, [](const PlanProposal& p) { return std::tuple(!p.fits, p.step, p.most_bytes()); });
  if (all.empty()) {
    return;
  }
  const double alike = all.front().step * (1 + kAlike);
  const bool fits = all.front().fits;
  const auto end = std::ranges::find_if(
      all, [&](const PlanProposal& p) { return p.fits != fits || p.step > alike; });
  const auto simplest = std::min_element(all.begin(), end, [](const auto& a, const auto& b) {
    return std::pair(a.candidate.stages.size(), a.most_bytes()) <
           std::pair(b.candidate.stages.size(), b.most_bytes());
  });
  std::rotate(all.begin(), simplest, simplest + 1);
}

}  // namespace

int PlanProposal::fullest() const {
  return static_cast<int>(std::ranges::max_element(bytes) - bytes.begin());
}

double PlanProposal::needs() const {
  return most_bytes() * (1 + kMemoryMargin);
}

Judge::Judge(const PlanRequest& request)
    : request_(&request), graphs_(request.costs), bound_(bound_of(request, graphs_)) {}

/// Each stage runs on microbatches of its own size, shared by its replicas, whose gradients are
/// summed.
Costs Judge::stage_costs(const Candidate& candidate, const Layout& layout) {
  Costs made = costs_of(request_->costs, graphs_.on(candidate.microbatch_size), candidate.stages);
  for (std::size_t s = 0; s < candidate.stages.size(); ++s) {
    const int replicas = candidate.replicas_of(s);
    const int samples = std::max(1, candidate.size_of(s) / replicas);
    const StageWork work = work_of(graphs_.on(samples), candidate.stages[s]);
    if (samples != candidate.microbatch_size) {
      made.stages.each[s] = durations_of(work, request_->costs.device);
      MemoryModel& memory = made.stages.memory;
      const double share = static_cast<double>(samples) / candidate.microbatch_size;
      memory.activations[s] *= share;
      memory.transient[s] = work.transient;
      if (s < memory.waiting.size()) {
        memory.waiting[s] *= share;
        memory.input_transient[s] = work.input_transient;
        memory.weight_transient[s] = work.weight_transient;
      }
    }
    made.stages.each[s].update += all_reduce_seconds(
        work.parameters, request_->costs.links.usual, replicas * layout.replicas());
  }
  // A transfer carries a microbatch of the stage with the smaller microbatches.
  for (auto& [edge, bytes] : made.links.edge_bytes) {
    const int part =
        std::min(candidate.size_of(index(edge.first)), candidate.size_of(index(edge.second)));
    bytes *= static_cast<double>(part) / candidate.microbatch_size;
  }
  return costs_of_copies(made, layout);
}

/// Adds the bytes of the rows: in tasks, or at the end of the step while gradients are summed.
void Judge::add_bytes(const Timeline& timeline, const Layout& layout, PlanProposal& made) {
  const Candidate& candidate = made.candidate;
  const WorkGraph& graph = graphs_.on(candidate.microbatch_size);
  UpdateBytes update(static_cast<int>(timeline.rows.size()));
  for (std::size_t stage = 0; stage < candidate.stages.size(); ++stage) {
    std::set<int> rows;
    for (int replica = 0; replica < layout.replicas(); ++replica) {
      rows.insert(made.devices[layout.stage(StageId(stage), replica).index()]);
    }
    const int devices = static_cast<int>(rows.size()) * candidate.replicas_of(stage);
    if (layout.replicas() > 1 || devices > 1) {
      update.add_copies(std::vector(rows.begin(), rows.end()),
                        devices,
                        work_of(graph, candidate.stages[stage]).trained);
    }
  }
  update.add_ties(graph, made.graph, made.devices);
  std::vector<double> fixed(timeline.rows.size(), 0);
  for (std::size_t s = 0; s < made.devices.size(); ++s) {
    fixed[index(made.devices[s])] += made.costs.stages.memory.fixed[s];
  }
  const std::vector<RowPeak> peaks =
      peaks_with_early_values(timeline, candidate.schedule, made.graph, made.costs.links);
  for (std::size_t row = 0; row < peaks.size(); ++row) {
    const UpdateBytes::Bytes& summing = update.of(static_cast<int>(row));
    const double own = std::max(peaks[row].own, fixed[row] + summing.held);
    made.bytes.push_back(std::max(peaks[row].all, fixed[row] + summing.all()));
    made.early.push_back(made.bytes.back() - own);
  }
}

PlanProposal Judge::propose(const Candidate& candidate) {
  PlanProposal made;
  made.candidate = candidate;
  made.microbatches = request_->batch / candidate.microbatch_size;
  const Layout layout = Layout::of(candidate.schedule);
  made.graph =
      layout.expand(stage_graph_of(graphs_.on(candidate.microbatch_size), candidate.stages));
  made.costs = stage_costs(candidate, layout);
  if (!candidate.stage_sizes.empty()) {
    made.graph.set_microbatch_sizes(candidate.sizes_in_units());
  }
  const Schedule& schedule = made.candidate.schedule;
  const std::vector<Violation> wrong =
      validate(schedule, made.graph, {.microbatches = made.microbatches});
  if (!wrong.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("planner {} proposes {} which breaks {}: {}",
                            candidate.planner,
                            candidate.schedule_name,
                            wrong.front().rule,
                            wrong.front().message));
  }
  const Placement placement = Placement::of(schedule, made.graph.size());
  for (int s = 0; s < made.graph.size(); ++s) {
    made.stage_of_cut.push_back(layout.replicas() == 1 ? s : layout.model_stage(StageId(s)).value);
    made.devices.push_back(placement.row(StageId(s)).value_or(0));
  }
  made.orders = kept_orders(*request_, schedule, made.graph, made.costs);
  const Timeline timeline = simulate(schedule, made.graph, made.costs, made.orders);
  made.critical_path = timeline.critical_path;
  std::vector<double> update(timeline.rows.size(), 0);
  for (std::size_t s = 0; s < made.devices.size(); ++s) {
    update[index(made.devices[s])] += made.costs.stages.each[s].update;
  }
  made.update = *std::ranges::max_element(update);
  made.step = timeline.makespan + made.update + request_->costs.device.step;
  add_bytes(timeline, layout, made);
  for (const RowTimeline& row : timeline.rows) {
    made.busy.push_back(row.busy);
  }
  made.fits = made.needs() <= request_->memory;
  made.binds = bottleneck_of(made, timeline);
  made.bound = bound_;
  return made;
}

bool leads(const PlanProposal& one, const PlanProposal& other) {
  if (one.fits != other.fits) {
    return one.fits;
  }
  if (std::max(one.step, other.step) > std::min(one.step, other.step) * (1 + kAlike)) {
    return one.step < other.step;
  }
  const auto rank = [](const PlanProposal& p) {
    return std::tuple(p.candidate.stages.size(), p.most_bytes(), p.step);
  };
  return rank(one) <= rank(other);
}

double lower_bound(const PlanRequest& request) {
  WorkGraphs graphs(request.costs);
  return bound_of(request, graphs);
}

namespace {

/// Judges the candidates that can keep the request's orders. Returns why the first of the others
/// cannot.
std::optional<std::string> add_judged(Judge& judge,
                                      const std::vector<Candidate>& candidates,
                                      std::vector<PlanProposal>& all) {
  std::optional<std::string> reason;
  for (const Candidate& candidate : candidates) {
    try {
      all.push_back(judge.propose(candidate));
    } catch (const Error& error) {
      if (error.code() != Errc::UsageArgument) {
        throw;
      }
      reason = reason.value_or(fmt::format("{}: {}", candidate.schedule_name, error.what()));
    }
  }
  return reason;
}

bool is_constrained(const PlanRequest& request) {
  return request.most_stages > 0 || !request.pinned.empty();
}

/// Looks for a better order of devices for the best proposals, if links differ.
void order_devices(Judge& judge, const PlanRequest& request, std::vector<PlanProposal>& all) {
  constexpr std::size_t kOrdered = 8;
  constexpr int kMostTries = 400;
  if (request.schedule || !links_differ(request.costs.links, request.devices)) {
    return;
  }
  int tries = kMostTries;
  for (std::size_t i = 0; i < std::min(kOrdered, all.size()); ++i) {
    if (!request.proceeds(
            fmt::format("the order of devices for {}", all[i].candidate.schedule_name), true)) {
      break;
    }
    all[i] = best_device_order(judge, request, std::move(all[i]), tries);
  }
  sort_best_first(all);
}

/// Collects the results of all planners for one request.
class Proposals {
 public:
  Proposals(const PlanRequest& request, std::string_view planner)
      : request_(request), judge_(request), searched_(request), planner_(planner) {
    searched_.memory = usable(request.memory);
  }

  void ask_planners() {
    for (const PlannerInfo& info : planners()) {
      if (planner_ != "auto" && info.name != find_planner(planner_).name) {
        continue;
      }
      if (const auto reason = info.refuses(searched_)) {
        reasons_.push_back(fmt::format("{}: {}", info.name, *reason));
        continue;
      }
      if (!searched_.proceeds(fmt::format("{} begins", info.name), !all_.empty())) {
        return;
      }
      add(info.name, [&] { return constrained_search(info.search, searched_); });
    }
  }

  /// Searches cuts for builders as if each were named: for the most promising ones, or for all if
  /// nothing fits. If still nothing fits, searches stages that hold little, whatever time they
  /// take.
  void look_closer() {
    if (planner_ != "auto" || request_.schedule) {
      return;
    }
    if (!request_.builder && !pfeife_refuses(searched_) &&
        searched_.proceeds("further cuts for builders", !all_.empty())) {
      const CutEffort effort = lacks_all() ? CutEffort::most() : CutEffort{};
      try_further("builders", [&] {
        return constrained_search(
            [&](const PlanRequest& seen) { return best_cuts_of_builders(seen, effort); },
            searched_);
      });
    }
    if (lacks_all() && takes_builder(request_, "1f1b") && request_.devices <= request_.pieces() &&
        searched_.proceeds("the least memory", !all_.empty())) {
      try_further("least memory",
                  [&] { return constrained_search(least_memory_candidates, searched_); });
    }
  }

  [[nodiscard]] std::vector<PlanProposal> take() && {
    sort_best_first(all_);
    order_devices(judge_, request_, all_);
    if (!any_fits()) {
      refuse();
    }
    return std::move(all_);
  }

 private:
  template <class Search>
  void add(std::string_view whose, Search&& search) {
    try {
      if (const auto reason = add_judged(judge_, search(), all_)) {
        reasons_.push_back(fmt::format("{}: {}", whose, *reason));
      }
    } catch (const Error& error) {
      if (error.code() != Errc::PlanInfeasible) {
        throw;
      }
      lacks_memory_ = true;
      reasons_.push_back(fmt::format("{}: {}", whose, error.what()));
    }
  }

  /// Runs a further search. Its refusal does not affect the planners' results.
  template <class Search>
  void try_further(std::string_view whose, Search&& search) {
    try {
      add(whose, search);
    } catch (const Error& error) {
      if (error.code() == Errc::Internal || error.code() == Errc::ScheduleInvalid) {
        throw;
      }
      reasons_.push_back(fmt::format("{}: {}", whose, error.what()));
    }
  }

  [[nodiscard]] bool lacks_all() const { return std::isfinite(request_.memory) && !any_fits(); }
  [[nodiscard]] bool any_fits() const {
    return std::ranges::any_of(all_, [](const PlanProposal& p) { return p.fits; });
  }

  [[noreturn]] void refuse() {
    if (!all_.empty()) {
      const PlanProposal& least = *std::ranges::min_element(all_, {}, &PlanProposal::needs);
      lacks_memory_ = true;
      reasons_.push_back(
          fmt::format("of all cuts found, the one that needs least needs {:.0f} bytes, on device "
                      "{} of {}: {:.0f} more than there are",
                      least.needs(),
                      least.fullest(),
                      least.candidate.schedule_name,
                      least.needs() - request_.memory));
    }
    const std::string whose = planner_ == "auto" ? "" : fmt::format(" of {}", planner_);
    if (lacks_memory_) {
      throw Error(
          Errc::PlanInfeasible,
          fmt::format("no plan{} fits the devices{} with a margin of {:.0f} %:\n  {}\n{}use "
                      "more devices, devices with more memory, or smaller microbatches",
                      whose,
                      is_constrained(request_) ? " and the constraints on stages" : "",
                      100 * kMemoryMargin,
                      fmt::join(reasons_, "\n  "),
                      whose.empty() ? "" : "ask planner auto, which tries more, or "));
    }
    throw Error(Errc::UsageArgument,
                fmt::format("no plan{} was made:\n  {}\n{}",
                            whose,
                            fmt::join(reasons_, "\n  "),
                            request_.orders.empty() ? "ask another planner, or --planner auto"
                                                    : "give orders that their schedules can keep"));
  }

  const PlanRequest& request_;
  Judge judge_;
  PlanRequest searched_;  // with the memory that predictions may fill
  std::string_view planner_;
  std::vector<PlanProposal> all_;
  std::vector<std::string> reasons_;
  bool lacks_memory_ = false;
};

}  // namespace

std::vector<PlanProposal> propose(const PlanRequest& request, std::string_view planner) {
  Proposals proposals(request, planner);
  proposals.ask_planners();
  proposals.look_closer();
  return std::move(proposals).take();
}

std::string to_string(const Bottleneck& bottleneck) {
  const double percent = 100 * bottleneck.share;
  switch (bottleneck.kind) {
    case Bottleneck::Kind::Device:
      return fmt::format("device {} computes {:.0f} % of the step", bottleneck.from, percent);
    case Bottleneck::Kind::Link:
      return fmt::format(
          "the link {}-{} carries {:.0f} % of the step", bottleneck.from, bottleneck.to, percent);
    case Bottleneck::Kind::Update:
      break;
  }
  return fmt::format("the update takes {:.0f} % of the step", percent);
}

}  // namespace stagecraft
