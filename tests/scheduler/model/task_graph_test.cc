#include "stagecraft/scheduler/model/task_graph.h"

#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace cells;
using Texts = std::vector<std::string>;

/// Returns the prerequisites of a task, in order.
Texts needed_by(const TaskGraph& tasks, const Task& task) {
  Texts needed;
  tasks.for_each_prerequisite(task, [&](const Task& one) { needed.push_back(to_string(one)); });
  return needed;
}

/// Returns the entries that can start, in the order of a walk.
Texts walked(const TaskGraph& tasks) {
  Texts order;
  const std::size_t count = tasks.walk(
      [&](int entry) { order.push_back(to_string(tasks.entry(entry).cell->tasks().front())); });
  CHECK(count == order.size());
  return order;
}

Task task(CellKind kind, int stage, int microbatch = 0) {
  return {kind, StageId(stage), Microbatch(microbatch)};
}

TEST_CASE("a task waits for its own forward, and for those who feed it", "[scheduler][tasks]") {
  // 0 feeds 1 and 2, which both feed 3; stage 2 divides its backward.
  const StageGraph graph = StageGraph::from_edges(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const std::vector<Schedule::Row> rows{{I(2, 0), W(2, 0), B(1, 0)}, {U(2)}};
  const TaskGraph tasks(rows, graph, 1);
  CHECK(needed_by(tasks, task(CellKind::Forward, 0)).empty());
  CHECK(needed_by(tasks, task(CellKind::Forward, 3)) == Texts{"1F0", "2F0"});
  CHECK(needed_by(tasks, task(CellKind::Backward, 0)) == Texts{"0F0", "1B0", "2I0"});
  CHECK(needed_by(tasks, task(CellKind::BackwardInput, 2)) == Texts{"2F0", "3B0"});
  CHECK(needed_by(tasks, task(CellKind::BackwardWeight, 2)) == Texts{"2I0"});
  CHECK(needed_by(tasks, task(CellKind::Update, 2)) == Texts{"2W0"});
  CHECK(needed_by(tasks, task(CellKind::Update, 1)).empty());  // it is in no row
}

TEST_CASE("a task that does nothing waits for no other stage", "[scheduler][tasks]") {
  StageGraph graph = StageGraph::chain(3);
  graph.freeze({0});
  const TaskGraph tasks({}, graph, 1);
  CHECK(needed_by(tasks, task(CellKind::Backward, 0)) == Texts{"0F0"});
  // The input half of stage 1 does nothing, so the weight half takes the gradient.
  CHECK(needed_by(tasks, task(CellKind::BackwardInput, 1)) == Texts{"1F0"});
  CHECK(needed_by(tasks, task(CellKind::BackwardWeight, 1)) == Texts{"1I0", "2B0"});
}

TEST_CASE("microbatches of different sizes wait for all that share a sample",
          "[scheduler][tasks]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_microbatch_sizes({2, 3});
  const TaskGraph tasks({}, graph, 6);
  CHECK(tasks.microbatches(StageId(0)) == 3);
  CHECK(tasks.microbatches(StageId(1)) == 2);
  CHECK(needed_by(tasks, task(CellKind::Forward, 1, 0)) == Texts{"0F0", "0F1"});
  CHECK(needed_by(tasks, task(CellKind::Forward, 1, 1)) == Texts{"0F1", "0F2"});
  CHECK(needed_by(tasks, task(CellKind::Backward, 0, 1)) == Texts{"0F1", "1B0", "1B1"});
  CHECK_FALSE(tasks.in_range(task(CellKind::Forward, 1, 2)));
}

TEST_CASE("TK-1: what is outside the grammar is not in the graph", "[scheduler][tasks]") {
  const StageGraph graph = StageGraph::chain(2);
  const std::vector<Schedule::Row> rows{{F(5, 0), F(0, 9), F(0, 0), idle, F(-1, 0)}};
  const TaskGraph tasks(rows, graph, 2);
  CHECK(tasks.entries().size() == 4);
  CHECK(tasks.entry(3).column == 4);
  CHECK_FALSE(tasks.in_range(task(CellKind::Forward, 5)));
  CHECK_FALSE(tasks.in_range(task(CellKind::Forward, 0, 9)));
  CHECK_FALSE(tasks.in_range(task(CellKind::Forward, -1)));
  CHECK_FALSE(tasks.in_range(task(CellKind::Idle, 0)));
  CHECK_FALSE(tasks.in_range(task(CellKind::Update, 0, 2)));
  CHECK(tasks.in_range(task(CellKind::Update, 0)));
  CHECK(tasks.find(task(CellKind::Forward, 0, 0)) == 2);
  CHECK(tasks.find(task(CellKind::Forward, 0, 1)) == TaskGraph::kMissing);
}

TEST_CASE("TK-2: of a task that is listed twice the first counts", "[scheduler][tasks]") {
  const StageGraph graph = StageGraph::chain(1);
  const std::vector<Schedule::Row> rows{{F(0, 0)}, {F(0, 0), B(0, 0), B(0, 0), U(0)}};
  const TaskGraph tasks(rows, graph, 1);
  CHECK(tasks.find(task(CellKind::Forward, 0)) == 0);
  CHECK(tasks.find(task(CellKind::Backward, 0)) == 2);
  CHECK(needed_by(tasks, task(CellKind::Update, 0)) == Texts{"0B0"});
}

TEST_CASE("a table that numbers would make too large finds the same tasks", "[scheduler][tasks]") {
  const StageGraph graph = StageGraph::chain(2);
  const std::vector<Schedule::Row> rows{{F(0, 0), F(0, 999'999), F(0, 999'999)}, {F(1, 999'999)}};
  const TaskGraph tasks(rows, graph, 1'000'000);
  CHECK(tasks.find(task(CellKind::Forward, 0, 999'999)) == 1);
  CHECK(tasks.find(task(CellKind::Forward, 1, 999'999)) == 3);
  CHECK(tasks.find(task(CellKind::Forward, 1, 0)) == TaskGraph::kMissing);
  CHECK(walked(tasks).size() == 4);
}

TEST_CASE("a walk runs each entry after those for which it waits", "[scheduler][tasks]") {
  const StageGraph graph = StageGraph::chain(2);
  // Row 1 comes first in the list, and waits for row 0.
  const std::vector<Schedule::Row> rows{{F(1, 0), B(1, 0)}, {F(0, 0), B(0, 0)}};
  CHECK(walked(TaskGraph(rows, graph, 1)) == Texts{"0F0", "1F0", "1B0", "0B0"});
}

TEST_CASE("a walk ends before entries that wait for each other", "[scheduler][tasks]") {
  const StageGraph graph = StageGraph::chain(2);
  const std::vector<Schedule::Row> rows{{F(0, 0), B(0, 0), F(0, 1)}, {F(1, 0), F(1, 1), B(1, 0)}};
  CHECK(walked(TaskGraph(rows, graph, 2)) == Texts{"0F0", "1F0"});
  SECTION("but not before those whose prerequisite is missing") {
    const std::vector<Schedule::Row> missing{{B(0, 0)}, {F(1, 0)}};
    CHECK(walked(TaskGraph(missing, graph, 2)).size() == 2);
  }
}

}  // namespace
}  // namespace stagecraft
