/// Tests stages that take several of the step's microbatches as one (SG-4): the forms of the
/// schedule, dependencies, rules, simulator and builder.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/model/microbatch_range.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kOneTwo =
    "@microbatches 4\n"
    "@sizes 1,2\n"
    "0F0 0F1 0F2 0F3 .   .   0B0 0B1 0B2 0B3\n"
    ".   .   1F0 .   1F1 1B0 1B1 .   .   .\n";

StageGraph sized(StageGraph graph, const std::vector<int>& sizes) {
  graph.set_microbatch_sizes(sizes);
  return graph;
}

std::vector<std::string> rules_of(const Schedule& schedule, const ValidateOptions& options = {}) {
  std::vector<std::string> rules;
  for (const Violation& v : validate(schedule, schedule.stage_graph(), options)) {
    rules.push_back(v.rule);
  }
  return rules;
}

Schedule changed(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return Schedule::parse(text);
}

TEST_CASE("microbatches overlap where their samples do", "[scheduler][sizes]") {
  const auto size = GENERATE(1, 2, 3, 4, 6);
  const auto other = GENERATE(1, 2, 3, 4, 6);
  constexpr int kSamples = 24;
  for (Microbatch m; m.value < kSamples / size; ++m.value) {
    std::set<int> expected;
    for (int sample = m.value * size; sample < (m.value + 1) * size; ++sample) {
      expected.insert(sample / other);
    }
    CHECK(overlapping(m, size, other) ==
          MicrobatchRange{*expected.begin(), *expected.rbegin() + 1});
  }
}

TEST_CASE("a schedule with sizes is valid, and its text and JSON come back", "[scheduler][sizes]") {
  const Schedule schedule = Schedule::parse(kOneTwo);
  CHECK(schedule.microbatches() == 4);
  CHECK(schedule.stage_graph().microbatch_sizes() == std::vector{1, 2});
  CHECK(rules_of(schedule).empty());
  CHECK(to_string(schedule) == kOneTwo);
  const Schedule again = parse_json(to_json(schedule));
  CHECK(again == schedule);
  CHECK(again.stage_graph().microbatch_sizes() == std::vector{1, 2});
  CHECK(rules_of(again.to_list()).empty());
}

TEST_CASE("microbatches are counted in the smallest where no header says how many",
          "[scheduler][sizes]") {
  CHECK(changed(kOneTwo, "@microbatches 4\n", "").microbatches() == 4);
  CHECK(Schedule::parse("@sizes 3\n0F0 0F1 0B0 0B1\n").microbatches() == 6);
}

TEST_CASE("sizes that make no sense are refused with their place", "[scheduler][sizes]") {
  const auto complaint = [](const std::string& sizes) {
    return refusal([&] { (void)Schedule::parse("@sizes " + sizes + "\n0F0 0B0\n1F0 1B0\n"); },
                   Errc::ScheduleParse);
  };
  CHECK_THAT(complaint("1"), ContainsSubstring("line 1"));
  CHECK_THAT(complaint("1"), ContainsSubstring("1 sizes of microbatches for 2 stages"));
  CHECK_THAT(complaint("1,0"), ContainsSubstring("stage 1 has microbatches of size 0"));
  CHECK_THAT(complaint("1,x"), ContainsSubstring("is not a size of microbatches"));
  CHECK_THAT(complaint("1,2\n@sizes 1,2"), ContainsSubstring("appears twice"));
  CHECK_THAT(refusal([] { (void)parse_json(R"({"sizes": [1, 0], "rows": [[], []]})"); },
                     Errc::ScheduleParse),
             ContainsSubstring("sizes"));
}

TEST_CASE("every task of a stage's own microbatches is asked for, and none beyond",
          "[scheduler][sizes]") {
  CHECK(rules_of(changed(kOneTwo, "1B1", ".  ")) == std::vector<std::string>{"V10", "V22"});
  CHECK(rules_of(changed(kOneTwo, "1F1", ".  ")) == std::vector<std::string>{"V09", "V21"});
  const auto found = [] {
    const Schedule schedule = changed(kOneTwo, "1B1", "1B2");
    return validate(schedule, schedule.stage_graph());
  }();
  REQUIRE(!found.empty());
  CHECK(found.front().rule == "V05");
  CHECK_THAT(found.front().message, ContainsSubstring("of size 2 has 2 (0 to 1)"));
}

TEST_CASE("a forward waits for all that its samples come from", "[scheduler][sizes]") {
  // One column earlier, 1F0 is in the same column as 0F1.
  const Schedule early = changed(kOneTwo, ".   .   1F0 .  ", ".   1F0 .   .  ");
  const auto found = validate(early, early.stage_graph());
  REQUIRE(found.size() == 1);
  CHECK(found.front().rule == "V20");
  CHECK(found.front().missing == "0F1");
}

TEST_CASE("a gradient waits for the whole microbatch that it is a part of", "[scheduler][sizes]") {
  const Schedule early = changed(kOneTwo, "0F3 .   .   0B0", "0F3 .   0B0 .  ");
  const auto found = validate(early, early.stage_graph());
  REQUIRE(found.size() == 1);
  CHECK(found.front().rule == "V22");
  CHECK(found.front().missing == "1B0");
}

TEST_CASE("sizes must divide the microbatches", "[scheduler][sizes]") {
  const auto found = validate(
      Schedule::parse(kOneTwo), Schedule::parse(kOneTwo).stage_graph(), {.microbatches = 5});
  const auto v34 = std::ranges::find(found, "V34", &Violation::rule);
  REQUIRE(v34 != found.end());
  CHECK_THAT(v34->message,
             ContainsSubstring("stage 1 takes 2 microbatches as one, but there are 5"));
}

TEST_CASE("lists of different sizes can deadlock", "[scheduler][sizes]") {
  const Schedule stuck =
      Schedule::parse("@form list\n@microbatches 2\n@sizes 1,2\n0F0 0B0 0F1 0B1\n1F0 1B0\n");
  const auto found = validate(stuck, stuck.stage_graph());
  REQUIRE(found.size() == 1);
  CHECK(found.front().rule == "V29");
  REQUIRE(found.front().repair);  // 0B0 behind 0F1
  CHECK(validate(apply(stuck, *found.front().repair), stuck.stage_graph()).empty());
}

TEST_CASE("the simulator waits for all parts of a microbatch", "[scheduler][sizes]") {
  const Schedule schedule = Schedule::parse(kOneTwo);
  Costs costs;
  costs.stages.each = {{.forward = 1, .backward = 2}, {.forward = 2, .backward = 4}};
  costs.links.usual.latency = 0.5;
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), costs);
  const auto& below = timeline.rows[1].entries;
  CHECK(below[0].start == 2.5);  // 0F1 and its transfer
  CHECK(below[0].waited_for == cells::F(0, 1).tasks().front());
  CHECK(below[1].start == 4.5);
  CHECK(below[2].start == 6.5);
  const auto& above = timeline.rows[0].entries;
  CHECK(above[4].start == 11.0);  // 1B0 and its transfer
  CHECK(above[5].start == 13.0);
  CHECK(timeline.rows[0].peak_in_flight == 4);
  CHECK(timeline.rows[1].peak_in_flight == 2);
}

TEST_CASE("bytes are of a stage's own microbatches", "[scheduler][sizes][memory]") {
  const Schedule schedule = Schedule::parse(kOneTwo);
  MemoryModel memory{.activations = {1, 10}, .budget = 15};
  const auto found = validate(schedule, schedule.stage_graph(), {.memory = memory});
  REQUIRE(found.size() == 1);
  CHECK(found.front().rule == "V30");
  CHECK(found.front().row == 1);
  CHECK(found.front().missing == "5 bytes");
}

TEST_CASE("PyTorch's CSV has no word for sizes", "[scheduler][sizes]") {
  const Schedule schedule = Schedule::parse(kOneTwo);
  for (const char* format : {"pytorch", "pytorch-comms"}) {
    CHECK_THAT(
        refusal(
            [&] { (void)write_schedule(schedule, schedule.stage_graph(), find_format(format)); },
            Errc::ScheduleParameter),
        ContainsSubstring("text or JSON"));
  }
}

/// Makes a random DAG with sizes that divide the microbatches.
struct RandomGraph {
  explicit RandomGraph(unsigned seed) : random(seed) {}

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  StageGraph make(const std::vector<int>& choices) {
    const int stages = 2 + below(4);
    std::vector<StageGraph::Edge> edges;
    std::vector<int> sizes;
    for (int a = 0; a < stages; ++a) {
      sizes.push_back(choices[static_cast<std::size_t>(below(static_cast<int>(choices.size())))]);
      for (int b = a + 1; b < stages; ++b) {
        if (b == a + 1 ? below(4) > 0 : below(4) == 0) {
          edges.emplace_back(a, b);
        }
      }
    }
    return sized(StageGraph::from_edges(stages, edges), sizes);
  }

  std::mt19937 random;
};

/// Returns what a task needs, found sample by sample: a sample of its stage needs the same sample
/// of the stages it reads.
std::set<Task> needs_by_samples(const Task& task, const StageGraph& graph) {
  std::set<Task> needs;
  const int size = graph.microbatch_size(task.stage);
  for (int sample = task.microbatch.value * size; sample < (task.microbatch.value + 1) * size;
       ++sample) {
    const auto of = [&](CellKind kind, StageId s) {
      needs.insert({kind, s, Microbatch(sample / graph.microbatch_size(s))});
    };
    if (task.kind == CellKind::Forward) {
      for (const StageId p : graph.preds(task.stage)) {
        of(CellKind::Forward, p);
      }
    } else {
      of(CellKind::Forward, task.stage);
      for (const StageId c : graph.succs(task.stage)) {
        of(CellKind::Backward, c);
      }
    }
  }
  return needs;
}

TEST_CASE("tasks wait for those that share samples with them", "[scheduler][sizes][property]") {
  const unsigned seed = GENERATE(range(0u, 40u));
  const StageGraph graph = RandomGraph(seed).make({1, 2, 3, 4, 6});
  const Schedule schedule = gpipe(graph, 24);
  const TaskGraph tasks(schedule.rows(), graph, 24);
  std::size_t forwards = 0;
  for (const Entry& entry : tasks.entries()) {
    const Task task = entry.cell->tasks().front();
    forwards += task.kind == CellKind::Forward ? 1 : 0;
    std::set<Task> found;
    tasks.for_each_prerequisite(task, [&](const Task& needed) {
      CHECK(found.insert(needed).second);  // each once
      CHECK(tasks.in_range(needed));
    });
    CHECK(found == needs_by_samples(task, graph));
  }
  std::size_t expected = 0;
  for (StageId s; s.value < graph.size(); ++s.value) {
    expected += static_cast<std::size_t>(24 / graph.microbatch_size(s));
  }
  CHECK(forwards == expected);
}

TEST_CASE("validate() and the simulator agree on lists with sizes",
          "[scheduler][sizes][property]") {
  RandomGraph random(GENERATE(range(0u, 60u)));
  const StageGraph graph = random.make({1, 2, 4});
  std::vector<Schedule::Row> rows = gpipe(graph, 4).to_list().rows();
  for (Schedule::Row& row : rows) {  // some backwards earlier, some too early
    for (std::size_t i = 1; i < row.size(); ++i) {
      if (random.below(3) == 0) {
        std::swap(row[i - 1], row[i]);
      }
    }
  }
  const Schedule schedule(
      Schedule::Form::List, std::move(rows), {.microbatches = 4, .graph = graph});
  const bool valid = validate(schedule, graph).empty();
  bool runs = true;
  try {
    const Schedule array = to_array(schedule, graph);
    CHECK(validate(array, graph).empty());
  } catch (const Error&) {
    runs = false;
  }
  CHECK(valid == runs);
}

TEST_CASE("kFkB over a graph is kFkB over a chain, and 1F1B where k is 1",
          "[scheduler][builders]") {
  CHECK(kfkb(StageGraph::chain(4), 8, {2}) == kfkb(4, 8, 2));
  CHECK(kfkb(StageGraph::chain(4), 8, {4}) == kfkb(4, 8, 4));
  const StageGraph towers = StageGraph::from_edges(3, {{0, 2}, {1, 2}});
  CHECK(kfkb(towers, 8, {1}) == one_f_one_b(towers, 8));
  CHECK(kfkb(towers, 8, {2, 2, 2}).columns() == 18);
}

TEST_CASE("kFkB with sizes runs the lists that the samples in flight say",
          "[scheduler][builders]") {
  const StageGraph graph = sized(StageGraph::chain(3), {1, 2, 4});
  const Schedule schedule = kfkb(graph, 16, {1});
  CHECK(schedule.microbatches() == 16);
  CHECK(rules_of(schedule, {.microbatch_order = true}).empty());
  const auto warm_up = [&](std::size_t row) {
    const Schedule::Row list = schedule.to_list().rows()[row];
    return std::ranges::find_if(
               list,
               [](const Cell& cell) { return cell.tasks().front().kind == CellKind::Backward; }) -
           list.begin();
  };
  CHECK(warm_up(0) == 10);
  CHECK(warm_up(1) == 4);
  CHECK(warm_up(2) == 1);
  CHECK(one_f_one_b(graph, 16) == schedule);
}

TEST_CASE("kFkB with any sizes and k is valid", "[scheduler][builders][property]") {
  RandomGraph random(GENERATE(range(0u, 150u)));
  const StageGraph graph = random.make({1, 2, 4, 8});
  std::vector<int> k;
  for (int s = 0; s < graph.size(); ++s) {
    k.push_back(1 << random.below(4));
  }
  CAPTURE(graph.edges(), graph.microbatch_sizes(), k);
  CHECK(rules_of(kfkb(graph, 64, k), {.microbatch_order = true}).empty());
  CHECK(rules_of(gpipe(graph, 64, {.reverse_backward = random.below(2) == 0})).empty());
}

TEST_CASE("kFkB refuses what does not divide, with the nearest that does",
          "[scheduler][builders]") {
  const StageGraph graph = sized(StageGraph::chain(2), {1, 4});
  const auto complaint = [&](int microbatches, const std::vector<int>& k) {
    return refusal([&] { (void)kfkb(graph, microbatches, k); }, Errc::ScheduleParameter);
  };
  CHECK_THAT(complaint(6, {1}), ContainsSubstring("nearest: 4 or 8"));
  CHECK_THAT(complaint(12, {1, 2}), ContainsSubstring("size 4 times k 2 of stage 1"));
  CHECK_THAT(complaint(8, {1, 1, 1}), ContainsSubstring("for each of 2 stages, got 3"));
  CHECK_THAT(complaint(8, {0}), ContainsSubstring("k >= 1"));
}

TEST_CASE("dag-kfkb takes sizes and k by name", "[scheduler][registry]") {
  const Schedule made = build_schedule(
      "dag-kfkb",
      {.microbatches = 8, .graph = StageGraph::chain(2), .set = {{"sizes", "1,2"}, {"k", "2,1"}}});
  CHECK(made == kfkb(sized(StageGraph::chain(2), {1, 2}), 8, {2, 1}));
  CHECK(build_schedule("dag-kfkb",
                       {.microbatches = 8, .graph = StageGraph::chain(2), .set = {{"sizes", "2"}}})
            .stage_graph()
            .microbatch_sizes() == std::vector{2, 2});
}

}  // namespace
}  // namespace stagecraft
