#include "stagecraft/scheduler/rules/validate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/causes/order_exchange.h"
#include "stagecraft/scheduler/rules/causes/same_cause.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft {
namespace {

/// Returns all violations, each cell's on its own, including the repairs of deadlocks.
std::vector<Violation> judge(const Schedule& schedule,
                             const StageGraph& graph,
                             const ValidateOptions& options) {
  const int microbatches = options.microbatches.value_or(schedule.microbatches());
  const TaskGraph tasks(schedule.rows(), graph, microbatches);
  const Placement placement = Placement::of(schedule, graph.size());
  const rules::Input in{schedule, graph, options, tasks, placement};
  std::vector<Violation> out;
  rules::check_shape(in, out);
  if (tasks.rows() == 0) {
    return out;  // an empty schedule breaks no other rule
  }
  rules::check_entries(in, out);
  rules::check_placement(in, out);
  rules::check_counts(in, out);
  if (schedule.form() == Schedule::Form::Array) {
    rules::check_columns(in, out);
  }
  rules::check_updates(in, out);
  if (options.microbatch_order) {
    rules::check_microbatch_order(in, out);
  }
  rules::check_groups(in, out);
  if (schedule.form() == Schedule::Form::List) {
    rules::check_deadlock(in, out);
  }
  if (options.memory) {
    rules::check_memory(in, *options.memory, out);
  }
  const bool transfers_listed = std::ranges::any_of(
      options.communication, [](const CommAction& action) { return is_transfer(action.kind); });
  if (!options.communication.empty()) {
    rules::check_sharding(in, out);
  }
  if (transfers_listed) {
    rules::check_listed_transfers(in, out);
  } else if (options.ordered_transfers) {
    rules::check_transfers(in, *options.ordered_transfers, out);
  }
  rules::check_stage_graph(in, out);
  rules::check_tied_parameters(in, out);
  rules::check_microbatch_sizes(in, out);
  std::ranges::stable_sort(out, {}, &Violation::rule);
  return out;
}

}  // namespace

std::vector<Violation> validate(const Schedule& schedule,
                                const StageGraph& graph,
                                const ValidateOptions& options) {
  std::vector<Violation> found = judge(schedule, graph, options);
  const auto again = [&](const Schedule& s) { return judge(s, graph, options); };
  const auto first = std::ranges::find_if(found, rules::about_order);
  if (first != found.end()) {
    first->repair = rules::find_repair(schedule, graph, options, found, again);
    if (first->repair) {
      first->message += "; exchange " + to_string(*first->repair, schedule);
    }
  }
  rules::tell_together(found);
  return found;
}

std::string to_string(const Exchange& exchange, const Schedule& schedule) {
  const Schedule::Row& row = schedule.rows()[static_cast<std::size_t>(exchange.row)];
  const auto called = [&](int column) {
    const Cell& cell = row[static_cast<std::size_t>(column)];
    return cell.idle() ? "the bubble" : to_string(cell);
  };
  return fmt::format("{} and {} of row {} ({} {} and {})",
                     called(exchange.first),
                     called(exchange.second),
                     exchange.row,
                     schedule.form() == Schedule::Form::Array ? "columns" : "positions",
                     exchange.first,
                     exchange.second);
}

Schedule apply(const Schedule& schedule, const Exchange& exchange) {
  std::vector<Schedule::Row> rows = schedule.rows();
  Schedule::Row& row = rows.at(static_cast<std::size_t>(exchange.row));
  std::swap(row.at(static_cast<std::size_t>(exchange.first)),
            row.at(static_cast<std::size_t>(exchange.second)));
  return Schedule(schedule.form(), std::move(rows), schedule.headers());
}

std::string to_string(const Violation& violation) {
  std::string text = violation.rule;
  if (violation.row != Violation::kNowhere) {
    text += fmt::format(" row {}", violation.row);
  }
  if (violation.column != Violation::kNowhere) {
    text += fmt::format(" column {}", violation.column);
  }
  if (violation.task) {
    text += fmt::format(" ({})", to_string(*violation.task));
  }
  return text + ": " + violation.message;
}

}  // namespace stagecraft
