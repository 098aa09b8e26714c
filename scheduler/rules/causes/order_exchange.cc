#include "stagecraft/scheduler/rules/causes/order_exchange.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft::rules {
namespace {

constexpr std::size_t kMaxTried = 2'000'000;   // exchanges weighed by the tasks that they move
constexpr std::size_t kMaxJudged = 4'000'000;  // cells judged over all promising exchanges
constexpr std::size_t kFewestJudged = 2;       // exchanges, even in the largest schedule
constexpr std::array<std::string_view, 8> kOrderRules{
    "V20", "V21", "V22", "V23", "V24", "V25", "V27", "V31"};

bool is_column_rule(std::string_view rule) {
  return rule >= "V20" && rule <= "V23";
}

/// Counts tasks that come too late for another, in the present columns or with two cells of a row
/// exchanged.
class LatePairs {
 public:
  explicit LatePairs(const TaskGraph& tasks);
  /// Returns whether no task is late after `exchange`.
  [[nodiscard]] bool none_after(const Exchange& exchange) const;

 private:
  using Column = int;
  [[nodiscard]] static Column column_of(const Entry& entry, const Exchange& exchange);
  [[nodiscard]] int entry_at(int row, Column column) const;
  /// Returns the late pairs with a task in one of the two cells, each counted once.
  [[nodiscard]] std::size_t touching(const Exchange& exchange, bool exchanged) const;
  template <class Visit>
  void for_each_dependent(const Task& task, Visit&& visit) const;

  const TaskGraph& tasks_;
  std::size_t late_ = 0;
};

LatePairs::LatePairs(const TaskGraph& tasks) : tasks_(tasks) {
  for (const Entry& entry : tasks.entries()) {
    for (const Task& task : entry.cell->tasks()) {
      if (!tasks.in_range(task) || task.kind == CellKind::Update) {
        continue;
      }
      tasks.for_each_prerequisite(task, [&](const Task& prerequisite) {
        const int holder = tasks.find(prerequisite);
        late_ +=
            holder != TaskGraph::kMissing && tasks.entry(holder).column >= entry.column ? 1 : 0;
      });
    }
  }
}

LatePairs::Column LatePairs::column_of(const Entry& entry, const Exchange& exchange) {
  if (entry.row != exchange.row) {
    return entry.column;
  }
  return entry.column == exchange.first    ? exchange.second
         : entry.column == exchange.second ? exchange.first
                                           : entry.column;
}

int LatePairs::entry_at(int row, Column column) const {
  const auto begin = tasks_.entries().begin();
  const auto found = std::ranges::lower_bound(
      begin + tasks_.row_begin(row), begin + tasks_.row_end(row), column, {}, &Entry::column);
  const bool there = found != begin + tasks_.row_end(row) && found->column == column;
  return there ? static_cast<int>(found - begin) : TaskGraph::kMissing;
}

template <class Visit>
void LatePairs::for_each_dependent(const Task& task, Visit&& visit) const {
  const StageGraph& stages = tasks_.stages();
  const auto backward = [&](StageId s, Microbatch m) {
    visit(Task{CellKind::Backward, s, m});
    visit(Task{CellKind::BackwardInput, s, m});
    visit(Task{CellKind::BackwardWeight, s, m});  // if it does the whole backward
  };
  switch (task.kind) {
    case CellKind::Forward:
      for (const StageId c : stages.succs(task.stage)) {
        tasks_.for_each_overlapping(task, c, [&](Microbatch m) {
          visit(Task{CellKind::Forward, c, m});
        });
      }
      backward(task.stage, task.microbatch);
      return;
    case CellKind::BackwardInput:
      visit(Task{CellKind::BackwardWeight, task.stage, task.microbatch});
      [[fallthrough]];
    case CellKind::Backward:
      for (const StageId p : stages.preds(task.stage)) {
        tasks_.for_each_overlapping(task, p, [&](Microbatch m) { backward(p, m); });
      }
      return;
    default:
      return;
  }
}

std::size_t LatePairs::touching(const Exchange& exchange, bool exchanged) const {
  const Exchange as_is{exchange.row, exchange.first, exchange.first};
  const Exchange& columns = exchanged ? exchange : as_is;
  const int cells[] = {entry_at(exchange.row, exchange.first),
                       entry_at(exchange.row, exchange.second)};
  std::size_t late = 0;
  for (const int e : cells) {
    if (e == TaskGraph::kMissing) {
      continue;
    }
    const int here = column_of(tasks_.entry(e), columns);
    for (const Task& task : tasks_.entry(e).cell->tasks()) {
      if (!tasks_.in_range(task)) {
        continue;
      }
      if (task.kind != CellKind::Update) {
        tasks_.for_each_prerequisite(task, [&](const Task& prerequisite) {
          const int holder = tasks_.find(prerequisite);
          late += holder != TaskGraph::kMissing && column_of(tasks_.entry(holder), columns) >= here
                      ? 1
                      : 0;
        });
      }
      if (tasks_.find(task) != e) {
        continue;  // if a task is listed twice, others wait only for the first
      }
      for_each_dependent(task, [&](const Task& dependent) {
        const int waiting =
            tasks_.in_range(dependent) ? tasks_.find(dependent) : TaskGraph::kMissing;
        if (waiting == TaskGraph::kMissing || waiting == cells[0] || waiting == cells[1]) {
          return;  // its own cell has counted it
        }
        tasks_.for_each_prerequisite(dependent, [&](const Task& prerequisite) {
          late += prerequisite == task && here >= column_of(tasks_.entry(waiting), columns) ? 1 : 0;
        });
      });
    }
  }
  return late;
}

bool LatePairs::none_after(const Exchange& exchange) const {
  return late_ == touching(exchange, false) && touching(exchange, true) == 0;
}

/// Tries the exchanges that touch one of `cells`: pairs of them first, then near ones before far
/// ones.
template <class Try>
std::optional<Exchange> first_exchange(const Schedule& schedule,
                                       const std::vector<std::pair<int, int>>& cells,
                                       Try&& succeeds) {
  std::size_t tried = 0;
  const auto attempt = [&](int row, int a, int b) {
    const bool exists =
        a >= 0 && b >= 0 &&
        std::max(a, b) < static_cast<int>(schedule.rows()[static_cast<std::size_t>(row)].size());
    return exists && a != b && ++tried <= kMaxTried &&
           succeeds(Exchange{row, std::min(a, b), std::max(a, b)});
  };
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (std::size_t j = i + 1; j < cells.size(); ++j) {
      if (cells[i].first == cells[j].first &&
          attempt(cells[i].first, cells[i].second, cells[j].second)) {
        return Exchange{cells[i].first,
                        std::min(cells[i].second, cells[j].second),
                        std::max(cells[i].second, cells[j].second)};
      }
    }
  }
  const int width = static_cast<int>(schedule.columns());
  for (int distance = 1; distance < width && tried < kMaxTried; ++distance) {
    for (const auto& [row, column] : cells) {
      for (const int other : {column + distance, column - distance}) {
        if (attempt(row, column, other)) {
          return Exchange{row, std::min(column, other), std::max(column, other)};
        }
      }
    }
  }
  return std::nullopt;
}

bool runs(const Schedule& schedule, const StageGraph& graph, int microbatches) {
  const TaskGraph tasks(schedule.rows(), graph, microbatches);
  return tasks.walk([](int) {}) == tasks.entries().size();
}

}  // namespace

bool about_order(const Violation& v) {
  const bool order = std::ranges::find(kOrderRules, v.rule) != kOrderRules.end();
  return order && (!is_column_rule(v.rule) || v.cells.size() > 1 + v.more.size());
}

std::optional<Exchange> find_order_exchange(const Schedule& schedule,
                                            const StageGraph& graph,
                                            const ValidateOptions& options,
                                            const std::vector<Violation>& found,
                                            const Judge& judge) {
  const auto first = std::ranges::find_if(found, about_order);
  if (first == found.end() || !options.communication.empty()) {
    return std::nullopt;
  }
  const bool array = schedule.form() == Schedule::Form::Array;
  const int microbatches = options.microbatches.value_or(schedule.microbatches());
  const TaskGraph tasks(schedule.rows(), graph, microbatches);
  const std::optional<LatePairs> late = array ? std::optional<LatePairs>(tasks) : std::nullopt;
  const auto over_budget = std::ranges::count(found, "V30", &Violation::rule);
  const std::size_t cells = std::max<std::size_t>(tasks.entries().size(), 1);
  std::size_t judged = 0;
  return first_exchange(schedule, first->cells, [&](const Exchange& exchange) {
    if ((late && !late->none_after(exchange)) ||
        judged >= std::max(kFewestJudged, kMaxJudged / cells)) {
      return false;
    }
    ++judged;
    const Schedule repaired = apply(schedule, exchange);
    if (!array && !runs(repaired, graph, microbatches)) {
      return false;  // skips the search for the reason
    }
    const std::vector<Violation> left = judge(repaired);
    return std::ranges::none_of(left, about_order) &&
           std::ranges::count(left, "V30", &Violation::rule) <= over_budget &&
           std::ranges::count(left, "V35", &Violation::rule) == 0;
  });
}

}  // namespace stagecraft::rules
