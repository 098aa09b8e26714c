#include "stagecraft/fuzz/exercise.h"

#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/scheduler/rules/causes/order_exchange.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft::fuzz {
namespace {

constexpr std::size_t kMostCells = 300;
constexpr int kMostStages = 100;

std::size_t cells(const Schedule& schedule) {
  std::size_t count = 0;
  for (const Schedule::Row& row : schedule.rows()) {
    count += row.size();
  }
  return count;
}

bool breaks(const std::vector<Violation>& found, std::string_view rule) {
  return std::ranges::find(found, rule, &Violation::rule) != found.end();
}

void check_reports(const Schedule& schedule, const std::vector<Violation>& found) {
  for (const Violation& v : found) {
    require(v.rule.size() == 3 && !v.message.empty(), "a violation has a rule and a message");
    require(v.row < static_cast<int>(schedule.rows().size()),
            "a violation names a row that exists");
  }
}

}  // namespace

bool same_headers(const Schedule& a, const Schedule& b) {
  const Schedule::Headers& x = a.headers();
  const Schedule::Headers& y = b.headers();
  if (x.rows != y.rows || x.stages != y.stages || x.microbatches != y.microbatches) {
    return false;
  }
  const StageGraph left = a.stage_graph();
  const StageGraph right = b.stage_graph();
  return left.size() == right.size() && left.edges() == right.edges() &&
         left.replica_pairs() == right.replica_pairs() && left.frozen() == right.frozen() &&
         left.microbatch_sizes() == right.microbatch_sizes();
}

void exercise(const Schedule& schedule, std::span<const CommAction> communication) {
  if (cells(schedule) > kMostCells || schedule.stages() > kMostStages) {
    return;
  }
  const StageGraph graph = schedule.stage_graph();
  check_reports(schedule,
                validate(schedule,
                         graph,
                         {.microbatch_order = true,
                          .memory = MemoryModel{.activations = {1, 2}, .budget = 3},
                          .ordered_transfers = TransferStreams::OnePerRank,
                          .communication = communication}));
  const std::vector<Violation> found = validate(schedule, graph);
  check_reports(schedule, found);
  if (found.empty()) {
    require(simulate(schedule, graph).makespan > 0, "a valid schedule takes time");
    const Schedule array = to_array(schedule, graph);
    require(array.to_list() == schedule.to_list(), "an array has the entries of its list");
    require(validate(array, graph).empty(), "the earliest array of a valid schedule is valid");
    return;
  }
  for (const Violation& v : found) {
    if (v.repair) {
      const std::vector<Violation> left = validate(apply(schedule, *v.repair), graph);
      require(
          v.rule == "V29" ? !breaks(left, "V29") : std::ranges::none_of(left, rules::about_order),
          "a repair repairs");
    }
  }
  const Schedule list = schedule.to_list();
  const bool runs = !breaks(validate(list, graph), "V29");
  if (breaks(found, "V29")) {
    require(!runs, "a deadlock stays one in the list form");
  }
}

}  // namespace stagecraft::fuzz
