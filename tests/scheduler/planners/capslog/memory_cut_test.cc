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

const LayerMemory kSix({5, 3, 8, 2, 7, 4}, {0, 2, 6, 1, 5, 3});

/// Returns the smallest peak of all cuts of the layers from `first` on over the places from `place`
/// on.
template <class Memory>
double best_by_trying(const Memory& memory, int devices, int place = 0, int first = 0) {
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
template <class Memory>
bool is_right(const Memory& memory, const MemoryCut& cut) {
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

TEST_CASE("prediction adds what each layer adds to the first alone", "[scheduler][planners]") {
  CHECK(kSix.of(1, 3) == 3 + 6 + 1);
  CHECK(kSix.of(4, 4) == 7);
  CHECK(kSix.filling_is_exact());
  // Noise below 0 adds nothing.
  CHECK(LayerMemory({5, 3}, {0, -2}).of(0, 1) == 5);
}

TEST_CASE("the published layouts and their peaks", "[scheduler][planners]") {
  const MemoryCut six = memory_cut(kSix, 3);
  CHECK(six.sizes() == std::vector{2, 2, 2});
  CHECK(six.bytes == std::vector<double>{7, 9, 10});
  CHECK(six.peak() == 10);

  const LayerMemory eight({10, 10, 10, 10, 40, 40, 12, 12}, {0, 6, 6, 6, 30, 30, 8, 8});
  CHECK(memory_cut(eight, 4).sizes() == std::vector{4, 1, 1, 2});
  CHECK(memory_cut(eight, 4).bytes == std::vector<double>{28, 40, 40, 20});

  const LayerMemory equal(std::vector<double>(10, 3), std::vector<double>(10, 2));
  // The published 3, 3, 3, 1 has the same peak, and more beside it.
  CHECK(memory_cut(equal, 4).sizes() == std::vector{3, 3, 2, 2});
  CHECK(memory_cut(equal, 4).peak() == 7);
}

TEST_CASE("the cut is the best one where a later start costs more", "[scheduler][planners]") {
  const LayerMemory layers({1, 1, 10}, {0, 1, 1});
  CHECK_FALSE(layers.filling_is_exact());
  CHECK(memory_cut(layers, 2).sizes() == std::vector{1, 2});
  CHECK(memory_cut(layers, 2).peak() == 2);
}

TEST_CASE("a cut that does not fit says where, and how many bytes are missing",
          "[scheduler][planners]") {
  const MemoryCut cut = memory_cut(kSix, 3);
  CHECK_FALSE(lack_of_memory(cut, 10).has_value());
  const auto lack = lack_of_memory(cut, 9);
  REQUIRE(lack.has_value());
  CHECK(lack->code() == Errc::PlanInfeasible);
  CHECK_THAT(lack->message(),
             ContainsSubstring("stage 2 of layers 4 to 5 needs 1 bytes more") &&
                 ContainsSubstring("holds 10") && ContainsSubstring("a device may hold 9"));
}

TEST_CASE("no cut of a small chain has a smaller peak (MC-1)", "[scheduler][planners][property]") {
  std::mt19937 random(5);
  const auto below = [&](int end) {
    return static_cast<double>(random() % static_cast<unsigned>(end));
  };
  int monotone = 0;
  for (int round = 0; round < 4000; ++round) {
    const int layers = 1 + static_cast<int>(random() % 9);
    const int devices = 1 + static_cast<int>(random() % static_cast<unsigned>(layers));
    std::vector<double> alone, added;
    for (int l = 0; l < layers; ++l) {
      added.push_back(below(8));
      const bool sub_additive = round % 2 == 0 && l > 0;
      const double most = sub_additive ? alone.back() + added.back() : 20;
      alone.push_back(below(static_cast<int>(most) + 1));
    }
    const LayerMemory memory(alone, added);
    CAPTURE(round, alone, added, devices);
    const double best = best_by_trying(memory, devices);
    const MemoryCut cut = memory_cut(memory, devices);
    CHECK(is_right(memory, cut));
    CHECK(cut.peak() == best);
    monotone += memory.filling_is_exact() ? 1 : 0;
  }
  CHECK(monotone > 2000);
  CHECK(monotone < 4000);
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

TEST_CASE("layers that cannot be cut are refused", "[scheduler][planners][bad-input]") {
  CHECK_THAT(refusal([] { (void)memory_cut(kSix, 7); }),
             ContainsSubstring("7 devices for 6 layers"));
  CHECK_THAT(refusal([] { (void)memory_cut(kSix, 0); }), ContainsSubstring("at least one layer"));
  CHECK_THAT(refusal([] { (void)LayerMemory({}, {}); }), ContainsSubstring("two figures for each"));
  CHECK_THAT(refusal([] {
               (void)LayerMemory({1, 2}, {0});
             }),
             ContainsSubstring("found 2 of layers"));
  CHECK_THAT(refusal([] {
               (void)LayerMemory({1, -2}, {0, 0});
             }),
             ContainsSubstring("layer 1 holds -2 bytes"));
}

}  // namespace
}  // namespace stagecraft
