#include "stagecraft/scheduler/planners/pfeife/step_graph.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr int kNoDelay = 0;

[[noreturn]] void refuse(const std::string& text) {
  throw Error(Errc::ScheduleInvalid, text);
}

/// The places of waits, grouped by the vertex at one of their ends.
struct ByEnd {
  std::vector<int> first;  // by vertex, and one more
  std::vector<int> places;

  [[nodiscard]] std::span<const int> of(std::size_t vertex) const {
    return std::span(places).subspan(static_cast<std::size_t>(first[vertex]),
                                     static_cast<std::size_t>(first[vertex + 1] - first[vertex]));
  }
};

template <class Wait>
ByEnd by_end(const std::vector<Wait>& waits, int Wait::*end, std::size_t vertices) {
  ByEnd groups{std::vector<int>(vertices + 1, 0), std::vector<int>(waits.size())};
  for (const Wait& wait : waits) {
    ++groups.first[static_cast<std::size_t>(wait.*end) + 1];
  }
  std::partial_sum(groups.first.begin(), groups.first.end(), groups.first.begin());
  std::vector<int> next = groups.first;
  for (std::size_t w = 0; w < waits.size(); ++w) {
    const auto vertex = static_cast<std::size_t>(waits[w].*end);
    groups.places[static_cast<std::size_t>(next[vertex]++)] = static_cast<int>(w);
  }
  return groups;
}

}  // namespace

StepGraph::StepGraph(const Schedule& schedule,
                     const StageGraph& stages,
                     std::span<const EventOrder> orders,
                     StepTransfers transfers)
    : edges_(stages.edges()) {
  const TaskGraph tasks(schedule.rows(), stages, schedule.microbatches());
  number_weights(tasks);
  add_entries(tasks, orders, transfers == StepTransfers::Vertices);
  for (const EventOrder& order : orders) {
    waits_.push_back({require(order.before, order), require(order.after, order), kNoDelay});
  }
  if (!sort()) {
    refuse_circle(orders);
  }
}

/// Throws with the first order that conflicts with the schedule and the orders before it.
void StepGraph::refuse_circle(std::span<const EventOrder> orders) {
  const std::vector<Wait> all = waits_;
  const auto allows = [&](std::size_t kept) {
    waits_.assign(all.begin(), all.end() - static_cast<std::ptrdiff_t>(orders.size() - kept));
    return sort();
  };
  if (!allows(0)) {
    refuse("the schedule's tasks wait for each other; run validate() for all faults");
  }
  std::size_t good = 0;
  for (std::size_t bad = orders.size(); bad - good > 1;) {
    const std::size_t middle = good + (bad - good) / 2;
    (allows(middle) ? good : bad) = middle;
  }
  refuse(fmt::format("the order {} cannot be kept: {} waits for {}; leave the order out",
                     to_string(orders[good]),
                     to_string(orders[good].before),
                     to_string(orders[good].after)));
}

void StepGraph::number_weights(const TaskGraph& tasks) {
  for (const Edge& edge : edges_) {
    edge_places_.emplace(edge, static_cast<int>(edge_places_.size()));
  }
  first_row_ = static_cast<std::size_t>(duration_weight(StageId(tasks.stages().size()), {}));
  first_edge_ = first_row_ + static_cast<std::size_t>(tasks.rows());
  weights_.assign(first_edge_ + 2 * edges_.size(), 0.0);
}

/// Works like StageCosts::duration: tasks that do nothing take no time, and a W may do all the
/// work.
int StepGraph::weight_of(const Cell& cell, const StageGraph& stages) {
  std::vector<int> parts;
  for (const Task& task : cell.tasks()) {
    if (stages.is_surplus(task)) {
      continue;
    }
    parts.push_back(duration_weight(task.stage, task.kind));
    if (task.kind == CellKind::BackwardWeight &&
        stages.is_surplus({CellKind::BackwardInput, task.stage, task.microbatch})) {
      parts.push_back(duration_weight(task.stage, CellKind::BackwardInput));
    }
  }
  if (parts.size() < 2) {
    return parts.empty() ? kNoDelay : parts.front();
  }
  const auto [found, added] = sum_weights_.emplace(parts, static_cast<int>(weights_.size()));
  if (added) {
    weights_.push_back(0);
    sums_.push_back({found->second, std::move(parts)});
  }
  return found->second;
}

int StepGraph::vertex_for(const StepEvent& event, int weight) {
  const auto [found, added] = numbers_.emplace(event, vertices());
  if (added) {
    events_.push_back(event);
    vertex_weights_.push_back(weight);
  }
  return found->second;
}

void StepGraph::add_entries(const TaskGraph& tasks,
                            std::span<const EventOrder> orders,
                            bool apart) {
  for (const EventOrder& order : orders) {
    ordered_[order.before] = true;
    ordered_[order.after] = true;
  }
  for (const Entry& entry : tasks.entries()) {
    const int vertex = vertices();
    events_.push_back({entry.cell->tasks().front()});
    vertex_weights_.push_back(weight_of(*entry.cell, tasks.stages()));
    for (const Task& task : entry.cell->tasks()) {
      if (!tasks.in_range(task)) {
        refuse(
            fmt::format("{} names a stage or microbatch that does not exist; run validate() for "
                        "all faults",
                        to_string(task)));
      }
      numbers_.emplace(StepEvent{task}, vertex);
    }
  }
  for (int row = 0; row < tasks.rows(); ++row) {
    const int update = vertices();
    events_.push_back({Task{CellKind::Update, kNoStage, Microbatch(row)}});
    vertex_weights_.push_back(static_cast<int>(first_row_) + row);
    for (int entry = tasks.row_begin(row); entry < tasks.row_end(row); ++entry) {
      const bool last = entry + 1 == tasks.row_end(row);
      waits_.push_back({entry, last ? update : entry + 1, kNoDelay});
    }
  }
  for (int entry = 0; entry < static_cast<int>(tasks.entries().size()); ++entry) {
    for (const Task& task : tasks.entry(entry).cell->tasks()) {
      tasks.for_each_prerequisite(
          task, [&](const Task& needed) { add_wait(tasks, entry, task, needed, apart); });
    }
  }
}

void StepGraph::add_wait(
    const TaskGraph& tasks, int entry, const Task& task, const Task& needed, bool apart) {
  const int holder = tasks.find(needed);
  if (holder == TaskGraph::kMissing) {
    refuse(fmt::format("{} waits for {}, which the schedule lacks; run validate() for all faults",
                       to_string(task),
                       to_string(needed)));
  }
  if (tasks.entry(holder).row == tasks.entry(entry).row) {
    if (holder != entry) {  // a forward and its own backward form no valid group (V28)
      waits_.push_back({holder, entry, kNoDelay});
    }
    return;
  }
  const bool gradient = needed.kind != CellKind::Forward;
  const Edge edge = gradient ? Edge{task.stage.value, needed.stage.value}
                             : Edge{needed.stage.value, task.stage.value};
  const auto place = edge_places_.find(edge);
  const int delay = place == edge_places_.end()
                        ? kNoDelay
                        : static_cast<int>(first_edge_) + 2 * place->second + (gradient ? 1 : 0);
  const StepEvent transfer{needed, task.stage};
  if (!apart && !ordered_.contains(transfer)) {
    waits_.push_back({holder, entry, delay});
    return;
  }
  const int vertex = vertex_for(transfer, delay);
  waits_.push_back({holder, vertex, kNoDelay});
  waits_.push_back({vertex, entry, kNoDelay});
}

int StepGraph::find(const StepEvent& event) const {
  const auto found = numbers_.find(event);
  return found == numbers_.end() ? kMissing : found->second;
}

int StepGraph::require(const StepEvent& event, const EventOrder& order) const {
  const int vertex = find(event);
  if (vertex == kMissing) {
    refuse(
        fmt::format("the order {} names {}, which this schedule does not have; give tasks, and "
                    "transfers between rows, that it has",
                    to_string(order),
                    to_string(event)));
  }
  return vertex;
}

/// Orders the vertices so that each comes after those it waits for. Changes nothing if there is no
/// such order.
bool StepGraph::sort() {
  const std::size_t count = events_.size();
  const ByEnd leaving = by_end(waits_, &Wait::from, count);
  const ByEnd entering = by_end(waits_, &Wait::to, count);
  std::vector<int> unmet(count);
  std::vector<int> order;
  order.reserve(count);
  for (std::size_t v = 0; v < count; ++v) {
    unmet[v] = static_cast<int>(entering.of(v).size());
    if (unmet[v] == 0) {
      order.push_back(static_cast<int>(v));
    }
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const int wait : leaving.of(static_cast<std::size_t>(order[at]))) {
      const int to = waits_[static_cast<std::size_t>(wait)].to;
      if (--unmet[static_cast<std::size_t>(to)] == 0) {
        order.push_back(to);
      }
    }
  }
  if (order.size() < count) {
    return false;
  }
  vertex_at_ = std::move(order);
  place_.resize(count);
  for (std::size_t at = 0; at < count; ++at) {
    place_[static_cast<std::size_t>(vertex_at_[at])] = static_cast<int>(at);
  }
  weight_at_.clear();
  first_pred_.assign(1, 0);
  preds_.clear();
  for (const int vertex : vertex_at_) {
    const auto v = static_cast<std::size_t>(vertex);
    weight_at_.push_back(vertex_weights_[v]);
    for (const int w : entering.of(v)) {
      const Wait& wait = waits_[static_cast<std::size_t>(w)];
      preds_.push_back({place_[static_cast<std::size_t>(wait.from)], wait.delay});
    }
    first_pred_.push_back(static_cast<int>(preds_.size()));
  }
  ends_.assign(count, 0.0);
  return true;
}

/// Leaves the order of the vertices as it is if it already fits.
void StepGraph::add_order(int before, int after) {
  waits_.push_back({before, after, kNoDelay});
  const int from = place_[static_cast<std::size_t>(before)];
  const int to = place_[static_cast<std::size_t>(after)];
  if (from < to) {
    preds_.insert(preds_.begin() + first_pred_[static_cast<std::size_t>(to) + 1], {from, kNoDelay});
    std::for_each(first_pred_.begin() + to + 1, first_pred_.end(), [](int& first) { ++first; });
  } else if (!sort()) {
    waits_.pop_back();
    refuse(fmt::format("{} cannot come before {}, which it waits for",
                       to_string(event(before)),
                       to_string(event(after))));
  }
}

void StepGraph::add_orders(std::span<const std::pair<int, int>> before_and_after) {
  const std::size_t known = waits_.size();
  for (const auto& [before, after] : before_and_after) {
    waits_.push_back({before, after, kNoDelay});
  }
  if (!sort()) {
    waits_.resize(known);
    refuse("tasks and transfers that are ordered wait for each other");
  }
}

/// The order is the last that its vertex waits for, whether it was inserted or sorted.
void StepGraph::remove_last_order() {
  const int to = place_[static_cast<std::size_t>(waits_.back().to)];
  waits_.pop_back();
  preds_.erase(preds_.begin() + first_pred_[static_cast<std::size_t>(to) + 1] - 1);
  std::for_each(first_pred_.begin() + to + 1, first_pred_.end(), [](int& first) { --first; });
}

double StepGraph::run() {
  for (const Sum& sum : sums_) {
    double total = 0;
    for (const int part : sum.parts) {
      total += weights_[static_cast<std::size_t>(part)];
    }
    weights_[static_cast<std::size_t>(sum.weight)] = total;
  }
  const double* const weights = weights_.data();
  const Pred* pred = preds_.data();
  double* const ends = ends_.data();
  double last = 0;
  for (std::size_t at = 0; at < ends_.size(); ++at) {
    const Pred* const behind = preds_.data() + first_pred_[at + 1];
    double start = 0;
    for (; pred != behind; ++pred) {
      start = std::max(start, ends[pred->place] + weights[pred->delay]);
    }
    ends[at] = start + weights[weight_at_[at]];
    last = std::max(last, ends[at]);
  }
  return last;
}

double StepGraph::start(int vertex) const {
  const auto at = static_cast<std::size_t>(place_[static_cast<std::size_t>(vertex)]);
  double start = 0;
  for (int p = first_pred_[at]; p < first_pred_[at + 1]; ++p) {
    const Pred& pred = preds_[static_cast<std::size_t>(p)];
    start = std::max(start,
                     ends_[static_cast<std::size_t>(pred.place)] +
                         weights_[static_cast<std::size_t>(pred.delay)]);
  }
  return start;
}

std::vector<StepEvent> StepGraph::critical_path() const {
  std::vector<StepEvent> path;
  auto at = static_cast<int>(std::ranges::max_element(ends_) - ends_.begin());
  while (at != kMissing) {
    const int vertex = vertex_at_[static_cast<std::size_t>(at)];
    path.push_back(event(vertex));
    const double begun = start(vertex);
    const auto first = preds_.begin() + first_pred_[static_cast<std::size_t>(at)];
    const auto last = preds_.begin() + first_pred_[static_cast<std::size_t>(at) + 1];
    const auto cause = std::find_if(first, last, [&](const Pred& pred) {
      return ends_[static_cast<std::size_t>(pred.place)] +
                 weights_[static_cast<std::size_t>(pred.delay)] ==
             begun;
    });
    at = begun > 0 && cause != last ? cause->place : kMissing;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace stagecraft
