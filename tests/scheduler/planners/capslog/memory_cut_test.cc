#include "stagecraft/scheduler/planners/capslog/memory_cut.h"

#include <algorithm>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns a chain of operators by what CAPSlog measures of each: the bytes of a stage of it alone,
/// and the bytes that it adds to a stage that ends before it (the first of `added` is not used).
WorkGraph chain_of(const std::vector<double>& alone, const std::vector<double>& added) {
  Costs costs;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const int id = static_cast<int>(i);
    OperatorCost op{.id = id, .kept = i == 0 ? alone[0] : added[i]};
    if (i > 0) {
      op.reads = {{id - 1, 0, alone[i] - added[i]}};
    }
    costs.operators.push_back(std::move(op));
  }
  return WorkGraph::of(costs, 1);
}

MemoryCut cut_of(const WorkGraph& graph, int devices) {
  const std::vector<int> in_flight(static_cast<std::size_t>(std::max(1, devices)), 1);
  return memory_cut(OperatorMemory(graph, in_flight), devices);
}

const WorkGraph& six() {
  static const WorkGraph kSix = chain_of({5, 3, 8, 2, 7, 4}, {0, 2, 6, 1, 5, 3});
  return kSix;
}

/// Returns the smallest peak of all cuts of the operators from `first` on over the places from
/// `place` on.
double best_by_trying(const OperatorMemory& memory, int devices, int place = 0, int first = 0) {
  double best = std::numeric_limits<double>::infinity();
  auto stage = memory.stage_at(place, first);
  for (int end = first + 1; end <= memory.size() - (devices - 1 - place); ++end) {
    const double bytes = stage.append(end - 1);
    if (place == devices - 1 && end < memory.size()) {
      continue;
    }
    const double rest = place == devices - 1 ? 0 : best_by_trying(memory, devices, place + 1, end);
    best = std::min(best, std::max(bytes, rest));
  }
  return best;
}

/// Returns whether the cut is valid and its figures are right.
bool is_right(const OperatorMemory& memory, const MemoryCut& cut) {
  int first = 0;
  for (std::size_t d = 0; d < cut.ends.size(); ++d) {
    if (cut.ends[d] <= first) {
      return false;
    }
    auto stage = memory.stage_at(static_cast<int>(d), first);
    double bytes = 0;
    for (; first < cut.ends[d]; ++first) {
      bytes = stage.append(first);
    }
    if (bytes != cut.bytes[d]) {
      return false;
    }
  }
  return first == memory.size();
}

TEST_CASE("a stage holds what it keeps and what it receives from the stage before",
          "[scheduler][planners]") {
  const OperatorMemory memory(six(), {1});
  auto stage = memory.stage_at(0, 1);
  CHECK(stage.append(1) == 3);
  CHECK(stage.append(2) == 3 + 6);
  CHECK(stage.append(3) == 3 + 6 + 1);
}

TEST_CASE("the published layouts and their peaks", "[scheduler][planners]") {
  const MemoryCut cut = cut_of(six(), 3);
  CHECK(cut.ends == std::vector{2, 4, 6});
  CHECK(cut.bytes == std::vector<double>{7, 9, 10});
  CHECK(cut.peak() == 10);

  const WorkGraph eight = chain_of({10, 10, 10, 10, 40, 40, 12, 12}, {0, 6, 6, 6, 30, 30, 8, 8});
  CHECK(cut_of(eight, 4).ends == std::vector{4, 5, 6, 8});
  CHECK(cut_of(eight, 4).bytes == std::vector<double>{28, 40, 40, 20});

  const WorkGraph equal = chain_of(std::vector<double>(10, 3), std::vector<double>(10, 2));
  // The published cut into 3, 3, 3 and 1 has the same peak, and more beside it.
  CHECK(cut_of(equal, 4).ends == std::vector{3, 6, 8, 10});
  CHECK(cut_of(equal, 4).peak() == 7);
}

TEST_CASE("the cut is the best one where a later start costs more", "[scheduler][planners]") {
  const WorkGraph graph = chain_of({1, 1, 10}, {0, 1, 1});
  CHECK_FALSE(OperatorMemory(graph, {1, 1}).filling_is_exact());
  CHECK(cut_of(graph, 2).ends == std::vector{1, 3});
  CHECK(cut_of(graph, 2).peak() == 2);
}

TEST_CASE("a cut that does not fit says where, and how many bytes are missing",
          "[scheduler][planners]") {
  const MemoryCut cut = cut_of(six(), 3);
  CHECK_FALSE(lack_of_memory(cut, 10).has_value());
  const auto lack = lack_of_memory(cut, 9);
  REQUIRE(lack.has_value());
  CHECK(lack->code() == Errc::PlanInfeasible);
  CHECK_THAT(lack->message(),
             ContainsSubstring("stage 2 of operators 4 to 5 needs 1 B more") &&
                 ContainsSubstring("holds 10 B") && ContainsSubstring("a device may hold 9 B"));
}

/// Makes a chain of operators with some further reads and with parameters that several operators
/// use.
Costs random_model(std::mt19937& random, int operators) {
  const auto below = [&](int end) {
    return static_cast<double>(random() % static_cast<unsigned>(end));
  };
  Costs costs;
  for (int p = 0; p < 4; ++p) {
    costs.parameters.push_back({fmt::format("p{}", p), 1, below(12)});
  }
  for (int op = 0; op < operators; ++op) {
    OperatorCost cost{.id = op, .kept = below(6), .transient = below(9), .input = below(3)};
    for (int reads = op == 0 ? 0 : 1 + static_cast<int>(random() % 2); reads > 0; --reads) {
      const int from = reads == 1 ? op - 1 : static_cast<int>(random() % static_cast<unsigned>(op));
      cost.reads.push_back({from, 0, 1 + static_cast<double>(from % 3)});
    }
    if (random() % 3 > 0) {
      cost.parameters.push_back(fmt::format("p{}", random() % 4));
    }
    costs.operators.push_back(cost);
  }
  return costs;
}

TEST_CASE("no cut of a few operators has a smaller peak, wherever stages keep more (MC-1)",
          "[scheduler][planners][property]") {
  std::mt19937 random(6);
  int swept = 0;
  for (int round = 0; round < 1500; ++round) {
    const int operators = 1 + static_cast<int>(random() % 8);
    const int devices = 1 + static_cast<int>(random() % static_cast<unsigned>(operators));
    const WorkGraph graph = WorkGraph::of(random_model(random, operators), 1);
    std::vector<int> in_flight(static_cast<std::size_t>(devices),
                               1 + static_cast<int>(random() % 4));
    for (int place = 0; round % 2 == 0 && place < devices; ++place) {
      in_flight[static_cast<std::size_t>(place)] = 1 + static_cast<int>(random() % 4);
    }
    const OperatorMemory memory(graph, in_flight);
    CAPTURE(round, devices);
    const MemoryCut cut = memory_cut(memory, devices);
    CHECK(is_right(memory, cut));
    CHECK(cut.peak() == best_by_trying(memory, devices));
    swept += memory.filling_is_exact() ? 0 : 1;
  }
  CHECK(swept > 100);
  CHECK(swept < 1400);
}

TEST_CASE("operators that cannot be cut are refused", "[scheduler][planners][bad-input]") {
  CHECK_THAT(refusal([] { (void)cut_of(six(), 7); }),
             ContainsSubstring("7 devices for 6 operators"));
  CHECK_THAT(refusal([] { (void)cut_of(six(), 0); }), ContainsSubstring("at least one operator"));
}

}  // namespace
}  // namespace stagecraft
