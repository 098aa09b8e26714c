#include "stagecraft/scheduler/rules/parts/rule_input.h"

#include "stagecraft/scheduler/model/place_text.h"

namespace stagecraft::rules {

std::string where(const RuleInput& in, int row, int column) {
  return place_text(in.schedule, row, column);
}

std::string where(const RuleInput& in, const Entry& entry) {
  return where(in, entry.row, entry.column);
}

Violation at(const char* rule, const Entry& entry, const Task& task) {
  Violation violation;
  violation.rule = rule;
  violation.row = entry.row;
  violation.column = entry.column;
  violation.task = task;
  violation.cells = {{entry.row, entry.column}};
  return violation;
}

}  // namespace stagecraft::rules
