#include "stagecraft/scheduler/rules/causes/same_cause.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/model/number_range.h"

namespace stagecraft::rules {
namespace {

constexpr std::size_t kNamed = 4;  // more are summarized by their stages and microbatches

std::vector<NumberRange> ranges_of_set(const std::set<int>& numbers) {
  return ranges_of(std::vector<int>(numbers.begin(), numbers.end()));
}

/// Returns "; likewise 0F5, 0F6", to extend a message about the first alone.
std::string likewise(const std::vector<Violation::SameCause>& more) {
  std::vector<std::string> names;
  std::set<int> stages, microbatches;
  for (const Violation::SameCause& alike : more) {
    if (alike.task) {
      stages.insert(alike.task->stage.value);
      microbatches.insert(alike.task->microbatch.value);
    }
    if (names.size() < kNamed) {
      names.push_back(alike.task ? to_string(*alike.task) : alike.missing);
    }
  }
  if (more.size() <= kNamed) {
    return fmt::format("; likewise {}", fmt::join(names, ", "));
  }
  if (stages.empty()) {
    return fmt::format("; likewise {} more: {}, ...", more.size(), fmt::join(names, ", "));
  }
  return fmt::format("; likewise {} more, of {} and {}",
                     more.size(),
                     counted("stage", ranges_of_set(stages)),
                     counted("microbatch", ranges_of_set(microbatches)));
}

}  // namespace

void tell_together(Violations& violations) {
  std::map<std::pair<std::string, std::string>, std::size_t> first_of;  // by rule and cause
  Violations told;
  for (Violation& v : violations) {
    const auto [first, is_first] = v.cause.empty()
                                       ? std::pair(first_of.end(), true)
                                       : first_of.try_emplace({v.rule, v.cause}, told.size());
    if (is_first) {
      told.push_back(std::move(v));
      continue;
    }
    Violation& fault = told[first->second];
    fault.more.push_back({v.row, v.column, v.task, std::move(v.missing)});
    std::ranges::move(v.cells, std::back_inserter(fault.cells));
  }
  for (Violation& fault : told) {
    if (!fault.cause.empty() && !fault.more.empty()) {
      fault.message += likewise(fault.more);
    }
  }
  violations = std::move(told);
}

}  // namespace stagecraft::rules
