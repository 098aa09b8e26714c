#include "stagecraft/scheduler/dag/directives/match.h"

#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Two stages and two microbatches, from the last to the first. Stage 0 does whole backwards, stage
/// 1 halves; stage 1 is the region EP:1. The last node is a transfer.
TrainingDag two_kinds_of_stages() {
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(2));
  dag.source.chunks[1][0].regions = {{"EP", 1}};
  dag.microbatches = 2;
  for (const int m : {1, 0}) {
    for (const DagKind kind : {DagKind::Forward, DagKind::Input, DagKind::Weight}) {
      dag.add({.kind = kind, .stage = StageId(1), .chunk = 0, .microbatch = Microbatch(m)});
    }
    for (const DagKind kind : {DagKind::Forward, DagKind::Backward}) {
      dag.add({.kind = kind, .stage = StageId(0), .chunk = 0, .microbatch = Microbatch(m)});
    }
  }
  dag.add({.kind = DagKind::Send, .stage = StageId(0), .chunk = 0, .microbatch = Microbatch(0)});
  return dag;
}

std::vector<int> matched(const Filter& filter) {
  const TrainingDag dag = two_kinds_of_stages();
  const Strategy strategy;
  StrategyFaults faults(strategy);
  std::vector<int> nodes = DagMatcher(dag).match(0, filter, faults);
  CHECK(faults.none());
  return nodes;
}

/// Returns the fault of a directive with this filter.
std::string fault_of(const Filter& filter) {
  const TrainingDag dag = two_kinds_of_stages();
  const Strategy strategy = Strategy{}.place(filter, {Rank(0)});
  StrategyFaults faults(strategy);
  CHECK(DagMatcher(dag).match(0, filter, faults).empty());
  try {
    faults.refuse_if_any();
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ScheduleInvalid);
    return error.message();
  }
  return "";
}

TEST_CASE("FLT-1: a filter matches the computing nodes that have its tags and its pass",
          "[scheduler][dag]") {
  CHECK(matched({}) == std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(matched(filters::stage(0)) == std::vector{3, 4, 8, 9});
  CHECK(matched(filters::forward(1, 0)) == std::vector{5});
  CHECK(matched(filters::backward(0, 1)) == std::vector{4});
  CHECK(matched(filters::backward(1, 1)) == std::vector{1, 2});
  CHECK(matched(filters::backward_input(1, 1)) == std::vector{1});
  CHECK(matched(filters::backward_weight(1, 0)) == std::vector{7});
  CHECK(matched({.tags = {{"MB", 1}}, .pass = Pass::F}) == std::vector{0, 3});
}

TEST_CASE("FLT-1: a tag without a number matches any number", "[scheduler][dag]") {
  CHECK(matched({.tags = {{"PP", std::nullopt}, {"MB", 0}}, .pass = Pass::F}) == std::vector{5, 8});
  CHECK(matched({.tags = {{"EP", std::nullopt}}, .pass = Pass::F}) == std::vector{0, 5});
  CHECK(matched({.tags = {{"EP", 1}, {"PP", 1}, {"MB", 1}}, .pass = std::nullopt}) ==
        std::vector{0, 1, 2});
}

TEST_CASE("a filter that matches nothing is a fault with the numbers that there are",
          "[scheduler][dag][bad-input]") {
  const auto none = ContainsSubstring("matches nothing: there are 2 stages and 2 microbatches");
  CHECK_THAT(fault_of(filters::stage(2)), none && ContainsSubstring("{PP:2}"));
  CHECK_THAT(fault_of(filters::stage(-1)), none);
  CHECK_THAT(fault_of(filters::forward(0, 2)), none);
  CHECK_THAT(fault_of(filters::backward_input(0, 0)), none);  // stage 0 has no halves
  CHECK_THAT(fault_of({.tags = {{"EP", 2}}, .pass = std::nullopt}), none);
  CHECK_THAT(fault_of({.tags = {{"EP", 1}, {"PP", 0}}, .pass = std::nullopt}), none);
}

TEST_CASE("a tag that the model does not have is named, with those it has",
          "[scheduler][dag][bad-input]") {
  CHECK_THAT(fault_of({.tags = {{"TP", 0}}, .pass = std::nullopt}),
             ContainsSubstring("names the tag TP, and the model has EP, MB, PP"));
}

}  // namespace
}  // namespace stagecraft
