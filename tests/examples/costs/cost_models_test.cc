/// Tests the cost graphs of examples/costs: the sizes that the paper states, the files that
/// write_costs makes of them, and how `stagecraft plan` reads these.
#include "stagecraft/examples/costs/cost_models.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/plan/plan.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

constexpr double kNumber = 4;  // bytes

// Counts the parameters of a transformer layer of width 1024: attention with four projections, 4096
// and back.
constexpr double kAttention = 4.0 * 1024 * 1024;
constexpr double kUp = 1024.0 * 4096 + 4096;
constexpr double kDown = 4096.0 * 1024 + 1024;
constexpr double kLayer = kAttention + kUp + kDown;

// Counts those of a feed-forward layer of width 4096, and of an embedding of 100,000 rows of 64.
constexpr double kDense = 4096.0 * 4096 + 4096;
constexpr double kTable = 100'000.0 * 64;

/// Holds the figures that the paper gives for a model.
struct Expected {
  const char* name;
  std::vector<int> branches;  ///< operators of each, until they join
  int behind;                 ///< operators after they join
  int trained;                ///< operators with parameters
  double parameters;          ///< numbers
};

std::vector<Expected> expected_models() {
  return {
      {"mmt", std::vector(4, 24), 2, 97, 32 * kLayer + 4096.0 * 1024 + 1024},
      {"dlrm",
       {4, 4, 4, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 1},
       3,
       37,
       28 * kDense + 7 * kTable + (7 * 4096 + 7 * 64) * 1024.0 + 1024 + 1024 + 1},
      {"candle-uno", std::vector(7, 4), 3, 30, 28 * kDense + 7 * 4096.0 * 1024 + 1024 + 1024 + 1},
      {"case-study", std::vector(2, 12), 2, 25, 8 * kLayer + 2048.0 * 1024 + 1024},
      {"transformer", {97}, 0, 97, 32 * kLayer + 1024.0 * 1024 + 1024}};
}

/// Returns the number of operators from each source up to one that reads several, or to the end.
std::vector<int> branches_of(const WorkGraph& graph) {
  std::vector<int> lengths;
  for (int source = 0; source < graph.size(); ++source) {
    if (!graph.preds(source).empty()) {
      continue;
    }
    int length = 1;
    for (int at = source; graph.succs(at).size() == 1; ++length) {
      at = graph.succs(at).front();
      if (graph.preds(at).size() > 1) {
        break;
      }
    }
    lengths.push_back(length);
  }
  return lengths;
}

const OperatorCost& operator_called(const Costs& costs, const std::string& name) {
  const auto found = std::ranges::find(costs.operators, name, &OperatorCost::name);
  REQUIRE(found != costs.operators.end());
  return *found;
}

nlohmann::json plan_of(const std::string& costs, std::vector<std::string> more) {
  std::vector<std::string> words{"-", "--planner", "graphpipe", "--json", "--top", "1"};
  words.insert(words.end(), more.begin(), more.end());
  const CommandResult result = run_in_test(&tools::plan, words, costs);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out).at("plans").at(0);
}

}  // namespace

TEST_CASE("cost graphs have the branches and parameters of their papers", "[tools][costs]") {
  const Expected expected = GENERATE(from_range(expected_models()));
  CAPTURE(expected.name);
  const Costs costs = examples::find_cost_model(expected.name).costs();
  const WorkGraph graph = WorkGraph::of(costs, 1);
  CHECK(branches_of(graph) == expected.branches);
  CHECK(graph.size() ==
        std::accumulate(expected.branches.begin(), expected.branches.end(), expected.behind));
  for (int op = 0; op + 1 < graph.size(); ++op) {  // there is one end, and no result is read twice
    CHECK(graph.succs(op).size() == 1);
  }
  CHECK(graph.succs(graph.size() - 1).empty());

  CHECK(std::ssize(costs.parameters) == expected.trained);
  double bytes = 0, held = 0;
  for (const ParameterCost& parameter : costs.parameters) {
    bytes += parameter.bytes;
    held += parameter.held;
  }
  CHECK(bytes == expected.parameters * kNumber);
  CHECK(held == 4 * bytes);  // with one gradient and two moments
}

TEST_CASE("there are cost graphs for all that are expected, and for no others", "[tools][costs]") {
  std::set<std::string_view> known, expected;
  for (const examples::CostModel& model : examples::cost_models()) {
    known.insert(model.name);
    CHECK_FALSE(model.summary.empty());
  }
  for (const Expected& model : expected_models()) {
    expected.insert(model.name);
  }
  expected.insert("skips");  // has no branches
  CHECK(known == expected);
  CHECK_THAT(refusal([] { (void)examples::find_cost_model("mtm"); }, Errc::UsageArgument),
             ContainsSubstring("no cost graph is called mtm") &&
                 ContainsSubstring("mmt, dlrm, candle-uno"));
}

TEST_CASE("a chain with skips has some that are further back, and is made again as it was",
          "[tools][costs]") {
  const Costs costs = examples::skip_chain();
  CHECK(to_json(costs) == to_json(examples::find_cost_model("skips").costs()));
  CHECK(to_json(costs) != to_json(examples::skip_chain({.seed = 2})));
  CHECK(costs.operators.size() == 2000);
  CHECK_FALSE(WorkGraph::of(costs, 1).succs(0).empty());
  const auto skips = std::ranges::count_if(
      costs.operators, [](const OperatorCost& op) { return op.reads.size() == 2; });
  CHECK(skips > 150);
  CHECK(skips < 250);
}

TEST_CASE("an operator takes what its shape and the device's rates make", "[tools][costs]") {
  const examples::CostDeviceModel device{
      .rate = 1e12, .half_rows = 100, .launch = 1e-5, .memory_rate = 1e11, .link = {}};
  const Costs costs = examples::transformer_branches(
      {.branches = 2, .layers = 1, .tokens = 10, .width = 8, .hidden = 32, .heads = 2}, device);
  const OperatorCost& up = operator_called(costs, "branch0.0.up");
  CHECK_THAT(up.forward, WithinRel(110 * 2.0 * 8 * 32 / 1e12 + 1e-5, 1e-12));
  CHECK(up.backward_input == up.forward);
  CHECK(up.backward_weight == up.forward);
  CHECK(up.kept == 10 * 8 * kNumber);
  CHECK(up.output == 10 * 32 * kNumber);
  const OperatorCost& attention = operator_called(costs, "branch1.0.attention");
  CHECK_THAT(attention.forward, WithinRel(110 * (8.0 * 8 * 8 + 4.0 * 10 * 8) / 1e12 + 1e-5, 1e-12));
  CHECK(attention.backward_input == 0);  // no operator needs the gradient of the batch
  const OperatorCost& concat = operator_called(costs, "concat");
  CHECK_THAT(concat.forward, WithinRel(2.0 * 10 * 16 * kNumber / 1e11 + 1e-5, 1e-12));
  CHECK(concat.backward_weight == 0);
  REQUIRE(concat.reads.size() == 2);
  CHECK(concat.reads[0].bytes == 10 * 8 * kNumber);
}

TEST_CASE("between the sizes of a cost graph a line is exact", "[tools][costs]") {
  const Costs costs = examples::find_cost_model("mmt").costs();
  CHECK(costs.samples == 1);
  REQUIRE(costs.operators_at.size() == 1);
  REQUIRE(costs.operators_at.contains(1024));
  const examples::CostDeviceModel device;
  const OperatorCost& down = operator_called(costs, "branch3.7.down");
  const WorkGraph of_eight = WorkGraph::of(costs, 8);
  CHECK_THAT(
      of_eight.at(down.id).forward,
      WithinRel((8 * 256 + device.half_rows) * 2.0 * 4096 * 1024 / device.rate + device.launch,
                1e-9));
  CHECK_THAT(of_eight.at(down.id).kept, WithinRel(8 * down.kept, 1e-9));
}

TEST_CASE("write_costs prints the cost graph that a program gets, and a planner reads it",
          "[tools][costs]") {
  struct Question {
    const char* model;
    const char* devices;
    const char* batch;  ///< from the paper, for this number of devices
    const char* size;
    bool branches;
  };
  const Question asked = GENERATE(Question{"mmt", "4", "64", "4", true},
                                  Question{"dlrm", "4", "256", "32", true},
                                  Question{"candle-uno", "4", "4096", "512", true},
                                  Question{"case-study", "8", "64", "4", true},
                                  Question{"transformer", "4", "64", "4", false});
  CAPTURE(asked.model);
  const CommandResult written = run_command({STAGECRAFT_WRITE_COSTS, asked.model});
  REQUIRE(written.exit_code == 0);
  const Costs costs = examples::find_cost_model(asked.model).costs();
  CHECK(written.out == to_json(costs) + '\n');
  const ReadCosts read = parse_costs(written.out);
  CHECK(read.notes.empty());
  CHECK(read.costs == costs);

  // A plan with a pinned operator has no copies, which would need no stages side by side.
  const nlohmann::json plan = plan_of(written.out,
                                      {"--devices",
                                       asked.devices,
                                       "--batch",
                                       asked.batch,
                                       "--microbatch-sizes",
                                       asked.size,
                                       "--on-device",
                                       "0:0"});
  std::vector<int> operators;
  for (const auto& stage : plan.at("stages")) {
    for (const int id : stage.at("operators")) {
      operators.push_back(id);
    }
  }
  std::ranges::sort(operators);
  std::vector<int> all(costs.operators.size());
  std::iota(all.begin(), all.end(), 0);
  CHECK(operators == all);
  std::map<int, int> producers;
  for (const auto& edge : plan.at("edges")) {
    ++producers[edge.at(1).get<int>()];
  }
  CHECK(std::ranges::any_of(producers, [](const auto& of) { return of.second > 1; }) ==
        asked.branches);
}

TEST_CASE("write_costs without a model it knows says which there are", "[tools][costs]") {
  const CommandResult none = run_command({STAGECRAFT_WRITE_COSTS});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, ContainsSubstring("write_costs MODEL") && ContainsSubstring("candle-uno"));
  const CommandResult wrong = run_command({STAGECRAFT_WRITE_COSTS, "bert"});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.out.empty());
  CHECK_THAT(wrong.err, ContainsSubstring("no cost graph is called bert"));
}

}  // namespace stagecraft::tests
