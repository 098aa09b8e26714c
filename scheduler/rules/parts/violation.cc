#include "stagecraft/scheduler/rules/parts/violation.h"

#include <cstddef>

#include <fmt/format.h>

namespace stagecraft {

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
