/// Tests what `stagecraft_bench train_llama` sees of a step, and that watching changes nothing.
#include "stagecraft/bench/step/step_probe.h"

#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>

#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::bench {
namespace {

constexpr int kRanks = 2, kMicrobatches = 4;

/// Holds a trainer that can be watched, after its first step.
struct Watched {
  Watched() : trainer(program_of_llama(), "1f1b", AdamW{}, {.before_instruction = probe.hook()}) {
    step();
  }

  void step() { (void)trainer.step({tokens}, {tokens}).get(); }

  [[nodiscard]] Program program_of_llama() const {
    examples::Llama model(examples::LlamaOptions{.vocabulary = 11,
                                                 .layers = 2,
                                                 .dim = 16,
                                                 .heads = 2,
                                                 .ffn = 24,
                                                 .sequence = 8,
                                                 .stages = kRanks});
    return compile(model,
                   {.inputs = {tokens},
                    .labels = {tokens},
                    .loss = examples::next_token_loss,
                    .microbatches = kMicrobatches});
  }

  torch::Tensor tokens = torch::arange(kMicrobatches * 8).remainder(11).view({kMicrobatches, 8});
  StepProbe probe{kRanks};
  Trainer trainer;
};

std::int64_t calls_of(const std::vector<CallTime>& all, Part part) {
  std::int64_t calls = 0;
  for (const CallTime& call : all) {
    calls += call.part == part ? call.calls : 0;
  }
  return calls;
}

double seconds_of_all(const std::vector<CallTime>& all) {
  double seconds = 0.0;
  for (const CallTime& call : all) {
    seconds += call.seconds;
  }
  return seconds;
}

TEST_CASE("a probe has every call of a step's tasks, once each", "[tools][bench]") {
  Watched watched;
  double seconds = 0.0;
  const auto ranks = watched.probe.timed([&] { seconds = seconds_of([&] { watched.step(); }); });
  REQUIRE(ranks.size() == kRanks);
  for (const std::vector<CallTime>& calls : ranks) {
    CHECK(calls_of(calls, Part::Allocator) > 0);
    CHECK(calls_of(calls, Part::OtherOperators) > 0);
    // A layer has one attention, forward and backward.
    CHECK(calls_of(calls, Part::Attention) >= 2 * kMicrobatches);
    CHECK(seconds_of_all(calls) <= seconds);  // keeps SLF-1: no time counts twice
  }
  // A layer has seven products: forward, by input and by weight. The second rank also has the head.
  // The first rank's embedding needs no gradient of its input, but its layer does.
  CHECK(calls_of(ranks[0], Part::MatrixProducts) == 7 * 3 * kMicrobatches);
  CHECK(calls_of(ranks[1], Part::MatrixProducts) == 8 * 3 * kMicrobatches);

  const auto again = watched.probe.timed([&] { watched.step(); });
  CHECK(calls_of(again[0], Part::MatrixProducts) == calls_of(ranks[0], Part::MatrixProducts));
}

TEST_CASE("the products of a step can be computed again", "[tools][bench]") {
  Watched watched;
  const auto calls = watched.probe.timed([&] { watched.step(); });
  std::vector<ProductCalls> products = watched.probe.products([&] { watched.step(); });
  REQUIRE(products.size() == kRanks);
  for (std::size_t r = 0; r < products.size(); ++r) {
    CHECK(static_cast<std::int64_t>(products[r].size()) ==
          calls_of(calls[r], Part::MatrixProducts));
    products[r].prepare();
    CHECK_NOTHROW(products[r].run());
  }
}

TEST_CASE("each rank runs an errand once, on its thread", "[tools][bench]") {
  Watched watched;
  std::mutex guards;
  std::multiset<Rank> ranks;
  std::set<std::thread::id> threads{std::this_thread::get_id()};
  const auto errand = [&](Rank rank) {
    const std::lock_guard lock(guards);
    ranks.insert(rank);
    threads.insert(std::this_thread::get_id());
  };
  CHECK(watched.probe.on_ranks(errand, [&] { watched.step(); }).size() == kRanks);
  watched.step();
  CHECK(ranks == std::multiset<Rank>{Rank(0), Rank(1)});
  CHECK(threads.size() == kRanks + 1);
}

TEST_CASE("watching changes no bit and leaves the allocator as it was", "[tools][bench]") {
  Watched watched, other;
  const c10::Allocator* const before = c10::GetCPUAllocator();
  (void)watched.probe.timed([&] {
    CHECK(c10::GetCPUAllocator() != before);
    watched.step();
  });
  CHECK(c10::GetCPUAllocator() == before);
  other.step();
  watched.step();  // frees what was allocated while watching
  other.step();
  const StateDict one = watched.trainer.state_dict(), two = other.trainer.state_dict();
  REQUIRE(one.size() == two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CAPTURE(one[i].first);
    CHECK(torch::equal(one[i].second, two[i].second));
  }
}

}  // namespace
}  // namespace stagecraft::bench
