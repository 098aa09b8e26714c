#include "stagecraft/scheduler/costs/memory_model.h"

#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Task task_of(CellKind kind, int stage, int microbatch = 0) {
  return {kind, StageId(stage), Microbatch(microbatch)};
}

double run_one(RowMemory& row, CellKind kind, int stage, int microbatch = 0) {
  return row.run(std::vector{task_of(kind, stage, microbatch)});
}

TEST_CASE("activations are held from a forward to its backward, transients while a task runs",
          "[scheduler][memory]") {
  const StageGraph chain = StageGraph::chain(2);
  const MemoryModel model{.fixed = {100, 50}, .activations = {10}, .transient = {3}};
  RowMemory row(model, chain);
  row.hold_fixed(StageId(0));
  CHECK(run_one(row, CellKind::Forward, 0, 0) == 113);
  CHECK(run_one(row, CellKind::Forward, 0, 1) == 123);
  CHECK(row.held() == 120);
  CHECK(run_one(row, CellKind::Backward, 0, 0) == 123);
  CHECK(row.held() == 110);
  // A list that is too short has no bytes for the stage.
  row.hold_fixed(StageId(1));
  CHECK(run_one(row, CellKind::Forward, 1) == 160);
  CHECK(row.held() == 160);
}

TEST_CASE("the input half of a backward frees a share, the weight half the rest",
          "[scheduler][memory]") {
  const StageGraph chain = StageGraph::chain(2);
  MemoryModel model{.fixed = {}, .activations = {0, 10}, .transient = {0, 3}};
  const auto held_between = [&](double while_input, double while_weight) {
    RowMemory row(model, chain);
    CHECK(run_one(row, CellKind::Forward, 1) == 13);
    CHECK(run_one(row, CellKind::BackwardInput, 1) == while_input);
    const double between = row.held();
    CHECK(run_one(row, CellKind::BackwardWeight, 1) == while_weight);
    CHECK(row.held() == 0);
    return between;
  };
  SECTION("none unless stated") {
    CHECK(held_between(13, 13) == 10);
  }
  SECTION("the share that is released") {
    model.input_release = 0.25;
    CHECK(held_between(13, 10.5) == 7.5);
  }
  SECTION("gradients that wait for the weight half add bytes") {
    model.input_release = -0.5;
    CHECK(held_between(13, 18) == 15);
  }
  SECTION("bytes that are stated for the stage replace the share") {
    model.input_release = 0.25;
    model.waiting = {0, 4};
    CHECK(held_between(13, 7) == 4);
  }
  SECTION("each half may need its own bytes while it runs") {
    model.input_transient = {0, 6};
    model.weight_transient = {0, 1};
    CHECK(held_between(16, 11) == 10);
  }
  SECTION("what the input half recomputes is kept until the weight half") {
    model.replayed = {0, 20};
    CHECK(held_between(30, 33) == 30);
  }
}

TEST_CASE("a half that does nothing keeps and frees nothing", "[scheduler][memory]") {
  StageGraph chain = StageGraph::chain(3);
  chain.freeze({0, 2});
  const MemoryModel model{.fixed = {}, .activations = {10, 10, 10}, .transient = {3, 3, 3}};
  RowMemory row(model, chain);
  SECTION("a stage without a backward keeps nothing") {
    CHECK(run_one(row, CellKind::Forward, 0) == 3);
    CHECK(row.held() == 0);
    CHECK(run_one(row, CellKind::Backward, 0) == 0);
    CHECK(row.held() == 0);
  }
  SECTION("without weights the input half frees all") {
    CHECK(run_one(row, CellKind::Forward, 2) == 13);
    CHECK(run_one(row, CellKind::BackwardInput, 2) == 13);
    CHECK(row.held() == 0);
    CHECK(run_one(row, CellKind::BackwardWeight, 2) == 0);
  }
  SECTION("without an input half that works the weight half frees all") {
    CHECK(run_one(row, CellKind::Forward, 1) == 13);
    CHECK(run_one(row, CellKind::BackwardInput, 1) == 10);
    CHECK(row.held() == 10);
    CHECK(run_one(row, CellKind::BackwardWeight, 1) == 13);
  }
  CHECK(row.held() == 0);
}

TEST_CASE("a group keeps its forwards before its backwards release", "[scheduler][memory]") {
  const StageGraph chain = StageGraph::chain(1);
  const MemoryModel model{.fixed = {}, .activations = {10}, .transient = {3}};
  RowMemory row(model, chain);
  CHECK(run_one(row, CellKind::Forward, 0) == 13);
  CHECK(row.run(std::vector{task_of(CellKind::Backward, 0, 0), task_of(CellKind::Forward, 0, 1)}) ==
        26);
  CHECK(row.held() == 10);
}

TEST_CASE("LA-3: a rank keeps the activations of each of its units, and runs one at a time",
          "[scheduler][memory]") {
  const StageGraph chain = StageGraph::chain(1);
  const MemoryModel model{.fixed = {100}, .activations = {10}, .transient = {3}};
  RowMemory row(model, chain, /*units=*/2);
  row.hold_fixed(StageId(0));
  CHECK(run_one(row, CellKind::Forward, 0) == 123);
  CHECK(run_one(row, CellKind::Backward, 0) == 123);
  CHECK(row.held() == 100);
}

}  // namespace
}  // namespace stagecraft
