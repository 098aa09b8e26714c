#include "stagecraft/scheduler/planners/graphpipe/search.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::graphpipe {
namespace {

using Catch::Approx;

/// Holds a graph whose operators have names, a cost, and the bytes that they hold per sample.
struct Model {
  std::vector<std::string> names;
  std::vector<double> costs;
  Edges edges;
  std::vector<double> weights = {};
  std::vector<double> activations = {};
};

PartitionProblem problem_of(const Model& model,
                            int devices,
                            const std::vector<int>& allowed = {1},
                            double memory = std::numeric_limits<double>::infinity()) {
  PartitionProblem problem{.operators = static_cast<int>(model.costs.size()),
                           .edges = model.edges,
                           .devices = devices,
                           .memory = memory,
                           .fixed = model.weights};
  for (const int d : allowed) {
    Variant variant{.devices = d, .time = model.costs, .kept = model.activations};
    for (std::vector<double>* figures : {&variant.time, &variant.kept}) {
      std::ranges::transform(*figures, figures->begin(), [&](double f) { return f / d; });
    }
    problem.variants.push_back(std::move(variant));
  }
  return problem;
}

/// Returns text such as "a1|s,b1|b2|a2,t", with "x2" after a stage on two devices.
std::string stages_of(const Model& model, const PartitionProblem& problem, const Partition& found) {
  std::string text;
  for (const PartitionStage& stage : found.stages) {
    text += text.empty() ? "" : "|";
    for (const int op : stage.operators) {
      text +=
          (op == stage.operators.front() ? "" : ",") + model.names[static_cast<std::size_t>(op)];
    }
    const int devices = problem.variants[static_cast<std::size_t>(stage.variant)].devices;
    text += devices == 1 ? "" : "x" + std::to_string(devices);
  }
  return text;
}

std::vector<int> in_flight_of(const Partition& found) {
  std::vector<int> counts;
  std::ranges::transform(
      found.stages, std::back_inserter(counts), [](const auto& stage) { return stage.in_flight; });
  return counts;
}

/// Checks C1 to C4: every operator in one stage, an acyclic graph of stages, no more devices and
/// memory than available, and figures that match the graph.
void check_valid(const PartitionProblem& problem, const Partition& found) {
  std::vector<int> seen(static_cast<std::size_t>(problem.operators));
  int devices = 0;
  for (const PartitionStage& stage : found.stages) {
    CHECK_FALSE(stage.operators.empty());
    for (const int op : stage.operators) {
      ++seen[static_cast<std::size_t>(op)];
    }
    const Variant& variant = problem.variants[static_cast<std::size_t>(stage.variant)];
    devices += variant.devices;
    double time = 0;
    for (const int op : stage.operators) {
      time += variant.time[static_cast<std::size_t>(op)];
    }
    CHECK(time <= found.time * (1 + 1e-9));
  }
  CHECK(std::ranges::all_of(seen, [](int times) { return times == 1; }));
  CHECK(devices == found.devices);
  CHECK(devices <= problem.devices);
  CHECK(found.peak <= problem.memory);
  const Edges edges = stage_edges(problem, found.stages);
  for (const auto& [from, to] : edges) {
    CHECK(from < to);
  }
  const int size = problem.variants.front().turns.size;
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    int longest = 0;
    for (const auto& [from, to] : edges) {
      if (from == static_cast<int>(s)) {
        longest = std::max(longest, found.stages[static_cast<std::size_t>(to)].in_flight);
      }
    }
    CHECK(found.stages[s].in_flight == longest + size);
  }
}

Partition search(const PartitionProblem& problem, SearchMode mode) {
  const auto found = partition_graph(problem, {.mode = mode, .precision = 1e-9});
  REQUIRE(found.has_value());
  check_valid(problem, *found);
  return *found;
}

Model chain() {
  return {
      {"a", "b", "c", "d", "e", "f"}, {4, 2, 3, 5, 1, 3}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}};
}

Model diamond() {
  return {{"s", "a1", "a2", "b1", "b2", "t"},
          {2, 3, 3, 2, 4, 2},
          {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {2, 5}, {4, 5}}};
}

Model clip() {
  return {{"i1", "i2", "x1", "x2", "h"},
          {6, 6, 4, 4, 2},
          {{0, 1}, {2, 3}, {1, 4}, {3, 4}},
          {3, 3, 2, 2, 1},
          {2, 2, 1, 1, 1}};
}

Model three_branches() {
  return {{"p", "q1", "q2", "r1", "r2", "z"},
          {4, 2, 3, 5, 1, 3},
          {{1, 2}, {3, 4}, {0, 5}, {2, 5}, {4, 5}}};
}

struct Case {
  Model model;
  int devices;
  std::vector<int> allowed;
  double time;
  std::vector<int> in_flight;  // empty: not stated
  std::string stages;          // likewise
};

TEST_CASE("a chain is cut as exhaustive search cuts it", "[scheduler][planners]") {
  const SearchMode mode =
      GENERATE(SearchMode::Strict, SearchMode::Absorbing, SearchMode::Exact, SearchMode::Auto);
  const auto c = GENERATE(Case{chain(), 2, {1}, 9, {2, 1}, "a,b,c|d,e,f"},
                          Case{chain(), 3, {1}, 8, {3, 2, 1}, "a,b|c,d|e,f"},
                          Case{chain(), 4, {1}, 5, {4, 3, 2, 1}, "a|b,c|d|e,f"},
                          Case{chain(), 3, {1, 2, 4}, 6, {2, 1}, "a,b|c,d,e,fx2"},
                          Case{chain(), 5, {1, 2, 4}, 3.75, {2, 1}, "a,b,c,d,ex4|f"});
  const PartitionProblem problem = problem_of(c.model, c.devices, c.allowed);
  const Partition found = search(problem, mode);
  CHECK(found.time == c.time);
  CHECK(in_flight_of(found) == c.in_flight);
  CHECK(stages_of(c.model, problem, found) == c.stages);
}

TEST_CASE("branches are cut as exhaustive search cuts them", "[scheduler][planners]") {
  const SearchMode mode = GENERATE(SearchMode::Absorbing, SearchMode::Exact, SearchMode::Auto);
  const auto c = GENERATE(Case{diamond(), 2, {1}, 8, {}, ""},
                          Case{diamond(), 3, {1}, 6, {}, ""},
                          Case{diamond(), 4, {1}, 5, {3, 2, 2, 1}, "s,b1|a1|b2|a2,t"},
                          Case{diamond(), 5, {1}, 4, {}, ""},
                          Case{clip(), 2, {1}, 12, {}, ""},
                          Case{clip(), 3, {1}, 8, {2, 2, 1}, "i1|x1,x2|i2,h"},
                          Case{clip(), 4, {1}, 6, {3, 2, 2, 1}, "i1|i2|x1|x2,h"},
                          Case{clip(), 5, {1}, 6, {}, ""},
                          Case{three_branches(), 2, {1}, 9, {}, ""},
                          Case{three_branches(), 3, {1}, 6, {}, ""},
                          Case{three_branches(), 4, {1}, 5, {2, 2, 2, 1}, "p|q1,q2|r1|r2,z"});
  const PartitionProblem problem = problem_of(c.model, c.devices, c.allowed);
  const Partition found = search(problem, mode);
  CAPTURE(stages_of(c.model, problem, found), c.devices, static_cast<int>(mode));
  CHECK(found.time == c.time);
  if (!c.in_flight.empty()) {
    auto counts = in_flight_of(found);
    auto expected = c.in_flight;
    CHECK(std::ranges::max(counts) == std::ranges::max(expected));
    if (mode == SearchMode::Exact) {
      std::ranges::sort(counts);
      std::ranges::sort(expected);
      CHECK(counts == expected);
    }
  }
}

TEST_CASE("without absorbing, merges and forks cost what they are known to",
          "[scheduler][planners]") {
  const auto c = GENERATE(Case{diamond(), 2, {1}, 14, {}, ""},
                          Case{diamond(), 3, {1}, 12, {}, ""},
                          Case{diamond(), 4, {1}, 6, {}, ""},
                          Case{diamond(), 5, {1}, 6, {}, ""},
                          Case{clip(), 2, {1}, 20, {}, ""},
                          Case{clip(), 3, {1}, 12, {}, ""},
                          Case{clip(), 4, {1}, 8, {}, ""},
                          Case{clip(), 5, {1}, 6, {}, ""});
  CAPTURE(c.devices);
  CHECK(search(problem_of(c.model, c.devices, c.allowed), SearchMode::Strict).time == c.time);
}

struct Budget {
  double memory;
  double time;
  std::string stages;  // empty: not stated
};

TEST_CASE("the less memory two towers may take, the more their stages share",
          "[scheduler][planners]") {
  const Model model = clip();
  SECTION("3 devices") {
    const auto b =
        GENERATE(Budget{10, 8, ""}, Budget{9, 8, "i1|x1,x2|i2,h"}, Budget{8, 8, "i1|x1,x2|i2,h"});
    const PartitionProblem problem = problem_of(model, 3, {1, 2, 4}, b.memory);
    const Partition found = search(problem, SearchMode::Exact);
    CHECK(found.time == b.time);
    CHECK((b.stages.empty() || stages_of(model, problem, found) == b.stages));
  }
  SECTION("4 devices") {
    const auto b = GENERATE(Budget{20, 5.5, "i1,i2,x1,x2,hx4"},
                            Budget{11, 6, ""},
                            Budget{10, 6, ""},
                            Budget{9, 6, "i1,x1x2|i2,x2,hx2"},
                            Budget{8, 6, "i1,x1x2|i2,x2,hx2"},
                            Budget{7, 8, ""});
    const PartitionProblem problem = problem_of(model, 4, {1, 2, 4}, b.memory);
    const Partition found = search(problem, SearchMode::Exact);
    CAPTURE(stages_of(model, problem, found), b.memory);
    CHECK(found.time == b.time);
    CHECK((b.stages.empty() || stages_of(model, problem, found) == b.stages));
  }
  SECTION("too little") {
    const SearchMode mode = GENERATE(SearchMode::Absorbing, SearchMode::Exact, SearchMode::Auto);
    CHECK_FALSE(partition_graph(problem_of(model, 3, {1, 2, 4}, 7), {.mode = mode}).has_value());
    CHECK_FALSE(partition_graph(problem_of(model, 4, {1, 2, 4}, 6), {.mode = mode}).has_value());
  }
}

TEST_CASE("the less memory a chain may take, the later its stages are cut",
          "[scheduler][planners]") {
  const SearchMode mode = GENERATE(SearchMode::Strict, SearchMode::Absorbing, SearchMode::Exact);
  Model model = chain();
  model.weights = std::vector<double>(6, 1);
  model.activations = {3, 3, 2, 2, 1, 1};
  const auto b = GENERATE(Budget{20, 8, "a,b|c,d|e,f"},
                          Budget{18, 9, "a|b,c|d,e,f"},
                          Budget{12, 9, "a|b,c|d,e,f"},
                          Budget{10, 12, "a|b|c,d,e,f"});
  const PartitionProblem problem = problem_of(model, 3, {1}, b.memory);
  const Partition found = search(problem, mode);
  CAPTURE(stages_of(model, problem, found), b.memory);
  CHECK(found.time == b.time);
  CHECK(stages_of(model, problem, found) == b.stages);
}

TEST_CASE("graphs that are too large for the exact search are refused, and planned otherwise",
          "[scheduler][planners]") {
  Model model{{}, std::vector<double>(24, 1), {}};
  const PartitionProblem problem = problem_of(model, 4);  // 2^24 sets of operators
  CHECK_THAT(refusal([&] { (void)partition_graph(problem, {.mode = SearchMode::Exact}); }),
             Catch::Matchers::ContainsSubstring("use the absorbing search"));
  CHECK(search(problem, SearchMode::Auto).time == 6);
}

/// Draws numbers that are the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  int below(int bound) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((state_ >> 33) % static_cast<std::uint64_t>(bound));
  }

 private:
  std::uint64_t state_;
};

Model random_model(Random& random, int operators, bool branches) {
  Model model;
  for (int op = 0; op < operators; ++op) {
    model.names.push_back(std::to_string(op));
    model.costs.push_back(1 + random.below(6));
    model.weights.push_back(random.below(3));
    model.activations.push_back(random.below(3));
  }
  if (!branches) {
    for (int op = 1; op < operators; ++op) {
      for (int before = 0; before < op; ++before) {
        if (random.below(operators) < 2) {
          model.edges.emplace_back(before, op);
        }
      }
    }
    return model;
  }
  const int count = 2 + random.below(2);  // two or three chains from 0 to the last
  for (int op = 1; op + 1 < operators; ++op) {
    model.edges.emplace_back(op <= count ? 0 : op - count, op);
    if (op + count + 1 >= operators) {
      model.edges.emplace_back(op, operators - 1);
    }
  }
  return model;
}

TEST_CASE("of 32 small cases the absorbing search misses one, and the strict one 14",
          "[scheduler][planners]") {
  int absorbing_misses = 0;
  int strict_misses = 0;
  for (const Model& model : {chain(), diamond(), clip(), three_branches()}) {
    for (const std::vector<int>& allowed : {std::vector{1}, std::vector{1, 2, 4}}) {
      for (int devices = 2; devices <= 5; ++devices) {
        const PartitionProblem problem = problem_of(model, devices, allowed);
        const double best = search(problem, SearchMode::Exact).time;
        absorbing_misses += static_cast<int>(search(problem, SearchMode::Absorbing).time > best);
        strict_misses += static_cast<int>(search(problem, SearchMode::Strict).time > best);
      }
    }
  }
  CHECK(absorbing_misses == 1);
  CHECK(strict_misses == 14);
}

/// Counts how often absorbing was tried and was slower than exact, and the sum of the differences.
struct Tally {
  int cases = 0;
  int worse = 0;
  double excess = 0;
};

Tally compare(bool branches, bool limited, std::uint64_t seeds) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    const Model model = random_model(random, 5 + random.below(5), branches);
    const double memory = limited ? 8 + random.below(30) : std::numeric_limits<double>::infinity();
    const std::vector<int> allowed = random.below(2) == 0 ? std::vector{1} : std::vector{1, 2, 4};
    const PartitionProblem problem = problem_of(model, 2 + random.below(4), allowed, memory);
    CAPTURE(seed, branches, limited);
    const auto exact = partition_graph(problem, {.mode = SearchMode::Exact, .precision = 1e-9});
    if (exact) {
      check_valid(problem, *exact);
    }
    for (const SearchMode mode : {SearchMode::Strict, SearchMode::Absorbing}) {
      const auto found = partition_graph(problem, {.mode = mode, .precision = 1e-9});
      if (found) {
        REQUIRE(exact.has_value());
        check_valid(problem, *found);
        CHECK(found->time >= exact->time * (1 - 1e-9));
      }
      if (mode == SearchMode::Absorbing && exact) {
        ++tally.cases;
        tally.worse += static_cast<int>(!found || found->time > exact->time * (1 + 1e-9));
        tally.excess += found ? found->time / exact->time - 1 : 1;
      }
    }
  }
  return tally;
}

TEST_CASE("the absorbing search is never better than the exact one, and seldom worse",
          "[scheduler][planners]") {
  for (const bool branches : {true, false}) {
    for (const bool limited : {false, true}) {
      const Tally tally = compare(branches, limited, 50);
      CAPTURE(branches, limited, tally.cases, tally.worse, tally.excess);
      CHECK(tally.cases > 30);
      CHECK(tally.worse < tally.cases / 2);
      // Graphs of another form pay for the dependencies that are added to them.
      CHECK(tally.excess <= (branches ? 0.04 : 0.12) * tally.cases);
    }
  }
}

TEST_CASE("equal branches are searched once, with the same answer", "[scheduler][planners]") {
  // Four branches of three operators, once with equal costs and once with a difference too small to
  // matter.
  Model model{{}, std::vector<double>(13, 2), {}};
  for (int op = 0; op < 12; ++op) {
    model.edges.emplace_back(op, op % 3 == 2 ? 12 : op + 1);
  }
  const int devices = GENERATE(2, 3, 4, 5, 6, 7);
  const double equal = search(problem_of(model, devices), SearchMode::Exact).time;
  for (std::size_t op = 0; op < 12; ++op) {
    model.costs[op] += 1e-9 * static_cast<double>(op);
  }
  CHECK(search(problem_of(model, devices), SearchMode::Exact).time == Approx(equal).epsilon(1e-6));
}

TEST_CASE("of thousands of operators those that are cheap are taken together",
          "[scheduler][planners]") {
  Model model{{}, std::vector<double>(2001, 1), {}};  // two chains of 1000, and their joint
  for (int op = 0; op < 2000; ++op) {
    model.edges.emplace_back(op, op == 999 || op == 1999 ? 2000 : op + 1);
  }
  const PartitionProblem problem = problem_of(model, 8);
  const Partition found = search(problem, SearchMode::Auto);
  CHECK(found.time < 2001.0 / 8 * 1.05);
  CHECK(found.stages.size() == 8);
  CHECK(found.in_flight <= 5);  // the towers run beside each other
}

TEST_CASE("where added dependencies cost much, a row of the operators is tried too",
          "[scheduler][planners]") {
  // Two chains, one of which reads its counterpart in the other at every place.
  Model model{{}, {}, {}};
  for (int op = 0; op < 24; ++op) {
    model.costs.push_back(1 + op % 5);
    if (op > 1) {
      model.edges.emplace_back(op - 2, op);
    }
    if (op % 2 == 1 && op > 2) {
      model.edges.emplace_back(op - 3, op);
    }
  }
  const int devices = GENERATE(2, 3, 4);
  const PartitionProblem problem = problem_of(model, devices);
  const double exact = search(problem, SearchMode::Exact).time;
  CHECK(search(problem, SearchMode::Absorbing).time <= exact * 1.25);
}

TEST_CASE("stages of their own sizes take what their consumers ask for", "[scheduler][planners]") {
  // Two operators, of which the second is faster in microbatches of 2.
  PartitionProblem problem{.operators = 2, .edges = {{0, 1}}, .devices = 2};
  problem.variants = {{.turns = {.size = 1}, .time = {4, 8}},
                      {.turns = {.size = 2}, .time = {5, 4}}};
  const auto found = partition_graph(problem);
  REQUIRE(found.has_value());
  CHECK(found->time == 4);
  REQUIRE(found->stages.size() == 2);
  CHECK(problem.variants[static_cast<std::size_t>(found->stages[0].variant)].turns == StagePace{});
  CHECK(found->stages[1].in_flight == 2);
  CHECK(found->stages[0].in_flight == compute_in_flight({.size = 1}, {.size = 2}, 2));
}

TEST_CASE("what crosses between stages counts where it is made", "[scheduler][planners]") {
  // Sending it after 0 costs 5, after 1 nothing.
  PartitionProblem problem{.operators = 3, .edges = {{0, 1}, {1, 2}}, .devices = 2};
  problem.variants = {{.time = {4, 2, 4}, .send = {5, 0, 5}}};
  const auto found = partition_graph(problem);
  REQUIRE(found.has_value());
  CHECK(found->time == 6);
  CHECK(found->stages[0].operators == std::vector{0, 1});
}

}  // namespace
}  // namespace stagecraft::graphpipe
