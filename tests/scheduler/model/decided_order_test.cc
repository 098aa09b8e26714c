#include "stagecraft/scheduler/model/decided_order.h"

#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {
// Names of other tests in the same file of the build would meet these.
namespace decided_cases {

using Catch::Matchers::ContainsSubstring;

Task task(CellKind kind, int stage, int microbatch) {
  return {kind, StageId(stage), Microbatch(microbatch)};
}
constexpr CellKind F = CellKind::Forward, B = CellKind::Backward;

/// Two stages, two microbatches.
Schedule two_by_two() {
  return Schedule::parse(
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .");
}

std::vector<Task> column_of(const Schedule& array, std::size_t column) {
  std::vector<Task> tasks;
  for (const Schedule::Row& row : array.rows()) {
    if (column < row.size()) {
      for (const Task& one : row[column].tasks()) {
        if (one.kind != CellKind::Update) {
          tasks.push_back(one);
        }
      }
    }
  }
  return tasks;
}

TEST_CASE("an order that is named column by column is the array", "[model][decided]") {
  const Schedule given = two_by_two();
  DecidedOrder order(given, given.stage_graph());
  for (std::size_t c = 0; c < given.columns(); ++c) {
    CHECK_FALSE(order.done());
    order.add(column_of(given, c));
  }
  CHECK(order.done());
  CHECK(order.so_far() == given);
  CHECK(validate(order.so_far(), given.stage_graph()).empty());
}

TEST_CASE("another order of the same tasks is as good", "[model][decided]") {
  const Schedule given = two_by_two();
  DecidedOrder order(given, given.stage_graph());
  order.add({task(F, 0, 1)});
  order.add({task(F, 1, 1), task(F, 0, 0)});
  order.add({task(B, 1, 1)});
  order.add({task(F, 1, 0), task(B, 0, 1)});
  order.add({task(B, 1, 0)});
  order.add({task(B, 0, 0)});
  CHECK(order.done());
}

TEST_CASE("a column that breaks a rule is refused with the reason", "[model][decided]") {
  const Schedule given = two_by_two();
  DecidedOrder order(given, given.stage_graph());
  order.add({task(F, 0, 0)});
  const auto refused = [&](const std::vector<Task>& column) {
    return refusal([&] { order.add(column); }, Errc::ScheduleInvalid);
  };
  CHECK_THAT(refused({task(F, 1, 1)}),
             ContainsSubstring("column 2 cannot have 1F1: it waits for 0F1"));
  CHECK_THAT(refused({task(F, 0, 1), task(F, 1, 1)}), ContainsSubstring("an earlier column"));
  CHECK_THAT(refused({task(B, 1, 0)}), ContainsSubstring("it waits for 1F0"));
  CHECK_THAT(refused({task(F, 0, 0)}), ContainsSubstring("it has run"));
  CHECK_THAT(refused({task(F, 0, 1), task(F, 0, 1)}), ContainsSubstring("named twice"));
  CHECK_THAT(refused({task(F, 2, 0)}), ContainsSubstring("no such task"));
  CHECK_THAT(refused({task(F, 0, -1)}), ContainsSubstring("no such task"));
  CHECK_THAT(refused({task(CellKind::BackwardInput, 0, 0)}), ContainsSubstring("no such task"));
  CHECK_THAT(refused({task(CellKind::Update, 0, 0)}), ContainsSubstring("updates follow"));
  CHECK_THAT(refused({}), ContainsSubstring("7 have not run: 0F1, 1F0"));
  order.add({task(F, 0, 1), task(F, 1, 0)});  // nothing of the others was added
  order.add({task(B, 1, 0), task(F, 1, 1)});  // a group
  CHECK(to_string(order.so_far().rows()[1].back()) == "1B0|1F1");
}

TEST_CASE("every builder's schedule can be named column by column", "[model][decided]") {
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const Schedule built = schedule_for(builder.name, StageGraph::chain(4), 8);
    const Schedule array = to_array(built.to_list(), built.stage_graph());
    DecidedOrder order(array, array.stage_graph());
    for (std::size_t c = 0; c < array.columns() && !order.done(); ++c) {
      if (const std::vector<Task> column = column_of(array, c); !column.empty()) {
        order.add(column);
      }
    }
    CHECK(order.done());
  }
}

}  // namespace decided_cases
}  // namespace
}  // namespace stagecraft
