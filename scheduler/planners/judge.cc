#include "stagecraft/scheduler/planners/judge.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/costs/row_devices.h"
#include "stagecraft/scheduler/costs/shared_bytes.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/planners/kept_orders.h"
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
    all.push_back({Bottleneck::Kind::Device,
                   proposal.first_device(static_cast<int>(row)),
                   0,
                   timeline.rows[row].busy});
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
    all.push_back({Bottleneck::Kind::Link,
                   proposal.first_device(ends.first),
                   proposal.first_device(ends.second),
                   seconds});
  }
  all.push_back({Bottleneck::Kind::Update, 0, 0, proposal.update});
  all.push_back({Bottleneck::Kind::Rounds, 0, 0, proposal.rounds});
  Bottleneck most = *std::ranges::max_element(all, {}, &Bottleneck::share);
  most.share = proposal.step > 0 ? most.share / proposal.step : 0;
  return most;
}

/// Returns the devices with a copy of the stage of the cut.
std::set<int> devices_of(const Layout& layout, int stage) {
  std::set<int> devices;
  for (int replica = 0; replica < layout.replicas(); ++replica) {
    for (const Rank rank : layout.ranks_of(layout.stage(StageId(stage), replica))) {
      devices.insert(rank.value);
    }
  }
  return devices;
}

/// Returns the time in which the devices add up gradients: their slowest link decides.
double sum_seconds(const LinkCosts& links, const std::set<int>& devices, double gradients) {
  Link slowest;
  for (const int from : devices) {
    for (const int to : devices) {
      if (from != to) {
        slowest = slower(slowest, links.between(from, to, links.of_sums()));
      }
    }
  }
  return all_reduce_seconds(gradients, slowest, static_cast<int>(devices.size()));
}

/// Stages that share a parameter add up its gradients unit by unit, so they need equally many
/// copies. Errors: UsageArgument if they have not.
void require_equal_ties(const StageGraph& graph, const Layout& layout) {
  for (const TiedParameter& tied : graph.tied()) {
    for (const StageId stage : tied.stages) {
      if (layout.ranks_of(stage).size() != layout.ranks_of(tied.stages.front()).size()) {
        throw Error(Errc::UsageArgument,
                    fmt::format("stages {} and {} share {} and have different numbers of copies",
                                tied.stages.front().value,
                                stage.value,
                                tied.name));
      }
    }
  }
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

double fastest(const PlanRequest& request) {
  double speed = 0;
  for (int device = 0; device < request.devices; ++device) {
    speed = std::max(speed, traits_of(request.costs.devices, device).speed);
  }
  return speed;
}

/// Returns the summed speed of the devices that can compute at the same time.
double at_once(const PlanRequest& request) {
  double speeds = 0;
  for (int device = 0; device < request.devices; ++device) {
    speeds += traits_of(request.costs.devices, device).speed;
  }
  const CostDevice& device = request.costs.device;
  return device.processors == 0
             ? speeds
             : std::min(speeds, fastest(request) * device.processors / std::max(1, device.threads));
}

/// Returns a lower bound of a step of the batch on so many devices: by the total computing time,
/// and by the path of one microbatch through the model.
double bound_of(const PlanRequest& request, WorkGraphs& graphs) {
  double least = 0;
  for (const int samples : request.sizes()) {
    const WorkGraph& graph = graphs.on(samples);
    double total = 0;
    for (int op = 0; op < graph.size(); ++op) {
      total += graph.at(op).time();
    }
    const double work = total * (request.batch / samples) / at_once(request);
    const double bound = std::max(work, longest_path(graph) / fastest(request));
    least = least == 0 ? bound : std::min(least, bound);
  }
  return least;
}

}  // namespace

Judge::Judge(const PlanRequest& request)
    : request_(&request), graphs_(request.costs), bound_(bound_of(request, graphs_)) {}

/// Each stage runs on microbatches of its own size.
Costs Judge::stage_costs(const Candidate& candidate, const Layout& layout) {
  Costs made = costs_of(request_->costs, graphs_.on(candidate.microbatch_size), candidate.stages);
  for (std::size_t s = 0; s < candidate.stages.size(); ++s) {
    const int samples = candidate.size_of(s);
    if (samples != candidate.microbatch_size) {
      const StageWork work = work_of(graphs_.on(samples), candidate.stages[s]);
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
  }
  for (std::size_t s = 0; s < candidate.stages.size(); ++s) {
    if (candidate.sharing != Sharing::Nothing) {
      MemoryModel& memory = made.stages.memory;
      memory.fixed[s] = shared_bytes(
          {.all = memory.fixed[s], .trained = memory.trained[s], .states = memory.states[s]},
          candidate.sharing,
          static_cast<int>(devices_of(layout, static_cast<int>(s)).size()));
      memory.trained[s] = memory.states[s] = 0;  // they are shared already
    }
  }
  // A transfer carries a microbatch of the stage with the smaller microbatches.
  for (auto& [edge, bytes] : made.links.edge_bytes) {
    const int part =
        std::min(candidate.size_of(index(edge.first)), candidate.size_of(index(edge.second)));
    bytes *= static_cast<double>(part) / candidate.microbatch_size;
  }
  made.links = links_of_rows(made.links, layout);
  return costs_of_copies(made, layout);
}

/// Moves every stage to its device, and adds the seconds in which its copies sum gradients.
void Judge::place_costs(const Layout& layout, PlanProposal& made) {
  const WorkGraph& graph = graphs_.on(made.candidate.microbatch_size);
  const std::vector<double> speeds =
      speeds_of_rows(std::exchange(made.costs.devices, {}), made.candidate.schedule);
  for (std::size_t s = 0; s < made.devices.size(); ++s) {
    const int of_cut = made.stage_of_cut[s];
    Durations& durations = made.costs.stages.each[s];
    durations = durations.at_speed(speeds[index(made.devices[s])]);
    if (const std::set<int> copies = devices_of(layout, of_cut); copies.size() > 1) {
      const StageWork work = work_of(graph, made.candidate.stages[index(of_cut)]);
      durations.update += sum_seconds(request_->costs.links, copies, work.trained);
    }
  }
}

/// Returns how long the rounds of sums and gathers of shared copies take beyond the tasks that can
/// hide them. The last round counts in the update, like the sum without rounds.
double Judge::seconds_of_rounds(const Timeline& timeline,
                                const Layout& layout,
                                const PlanProposal& made) {
  const Candidate& candidate = made.candidate;
  if (candidate.sharing < Sharing::Gradients) {
    return 0;
  }
  const double passes = candidate.sharing == Sharing::Weights ? 3 : 1;  // of the two of a sum
  std::vector<double> seconds(timeline.rows.size(), 0);
  for (std::size_t s = 0; s < made.devices.size(); ++s) {
    const std::set<int> copies = devices_of(layout, made.stage_of_cut[s]);
    const StageWork work = work_of(graphs_.on(candidate.microbatch_size),
                                   candidate.stages[index(made.stage_of_cut[s])]);
    const double rounds =
        static_cast<double>(made.microbatches) / static_cast<double>(copies.size()) - 1;
    seconds[index(made.devices[s])] +=
        rounds * passes / 2 * sum_seconds(request_->costs.links, copies, work.trained);
  }
  return std::max(0.0, *std::ranges::max_element(seconds) - timeline.makespan);
}

/// Adds the bytes of the rows: in tasks, or while gradients are summed, as if after all tasks.
void Judge::add_bytes(const Timeline& timeline, const Layout& layout, PlanProposal& made) {
  const Candidate& candidate = made.candidate;
  const WorkGraph& graph = graphs_.on(candidate.microbatch_size);
  UpdateBytes update(static_cast<int>(timeline.rows.size()));
  for (std::size_t stage = 0; stage < candidate.stages.size(); ++stage) {
    std::set<int> rows;
    for (int replica = 0; replica < layout.replicas(); ++replica) {
      rows.insert(made.devices[layout.stage(StageId(stage), replica).index()]);
    }
    const auto devices = static_cast<int>(devices_of(layout, static_cast<int>(stage)).size());
    if (layout.replicas() > 1 || devices > 1) {
      const double trained = work_of(graph, candidate.stages[stage]).trained;
      const bool in_rounds = candidate.sharing >= Sharing::Gradients;
      update.add_copies(std::vector(rows.begin(), rows.end()),
                        devices,
                        in_rounds ? std::min(trained, kSharedBucket) : trained);
    }
  }
  std::vector<int> shards(made.devices.size(), 1);
  for (std::size_t s = 0; candidate.sharing != Sharing::Nothing && s < shards.size(); ++s) {
    shards[s] = static_cast<int>(devices_of(layout, made.stage_of_cut[s]).size());
  }
  update.add_ties(graph, made.graph, made.devices, shards);
  std::vector<double> fixed(timeline.rows.size(), 0);
  std::vector<std::vector<double>> gradients(timeline.rows.size());
  for (std::size_t s = 0; s < made.devices.size(); ++s) {
    fixed[index(made.devices[s])] += made.costs.stages.memory.fixed[s];
    gradients[index(made.devices[s])].push_back(
        work_of(graph, candidate.stages[index(made.stage_of_cut[s])]).trained);
  }
  const std::vector<RowPeak> peaks =
      peaks_with_early_values(timeline, candidate.schedule, made.graph, made.costs.links);
  for (std::size_t row = 0; row < peaks.size(); ++row) {
    const UpdateBytes::Bytes& summing = update.of(static_cast<int>(row));
    const double borrowed = borrowed_bytes(gradients[row], candidate.sharing);
    const double own = borrowed + std::max(peaks[row].own, fixed[row] + summing.held);
    made.bytes.push_back(borrowed + std::max(peaks[row].all, fixed[row] + summing.all()));
    made.early.push_back(made.bytes.back() - own);
  }
}

PlanProposal Judge::propose(const Candidate& candidate) {
  PlanProposal made;
  made.candidate = candidate;
  made.microbatches = request_->batch / candidate.microbatch_size;
  const Layout layout = Layout::of(candidate.schedule);
  for (int row = 0; row < layout.rows(); ++row) {
    const std::span<const Rank> ranks = layout.ranks_of(row);
    std::vector<int>& devices = made.devices_of_row.emplace_back();
    std::ranges::transform(ranks, std::back_inserter(devices), &Rank::value);
  }
  made.graph =
      layout.expand(stage_graph_of(graphs_.on(candidate.microbatch_size), candidate.stages));
  made.costs = stage_costs(candidate, layout);
  if (!candidate.stage_sizes.empty()) {
    made.graph.set_microbatch_sizes(candidate.sizes_in_units());
  }
  const Schedule& schedule = made.candidate.schedule;
  const std::vector<Violation> wrong =
      validate(schedule, made.graph, {.microbatches = made.microbatches / layout.units()});
  if (!wrong.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("planner {} proposes {} which breaks {}",
                            candidate.planner,
                            candidate.schedule_name,
                            to_string(wrong.front())));
  }
  require_equal_ties(made.graph, layout);
  const Placement placement = Placement::of(schedule, made.graph.size());
  for (int s = 0; s < made.graph.size(); ++s) {
    made.stage_of_cut.push_back(layout.replicas() == 1 ? s : layout.model_stage(StageId(s)).value);
    made.devices.push_back(placement.row(StageId(s)).value_or(0));
  }
  place_costs(layout, made);
  made.orders = kept_orders(*request_, schedule, made.graph, made.costs);
  const Timeline timeline = simulate(schedule, made.graph, made.costs, made.orders);
  made.critical_path = timeline.critical_path;
  std::vector<double> update(timeline.rows.size(), 0);
  for (std::size_t s = 0; s < made.devices.size(); ++s) {
    update[index(made.devices[s])] += made.costs.stages.each[s].update;
  }
  made.update = *std::ranges::max_element(update);
  made.rounds = seconds_of_rounds(timeline, layout, made);
  made.step = timeline.makespan + made.update + request_->costs.device.step + made.rounds;
  add_bytes(timeline, layout, made);
  for (const RowTimeline& row : timeline.rows) {
    made.busy.push_back(row.busy);
  }
  made.memory = memory_of_rows(request_->costs.devices, schedule, request_->memory);
  made.fits = made.lacks() <= 0;
  made.binds = bottleneck_of(made, timeline);
  made.bound = bound_;
  return made;
}

}  // namespace stagecraft
