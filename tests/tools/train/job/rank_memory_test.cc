/// Tests the bill of each rank: what copies share or divide is there once, and no more than the
/// padding of shards is added.
#include "stagecraft/tools/train/job/rank_memory.h"

#include <sstream>

#include <torch/torch.h>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/stage/stage_buckets.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/options/parse_options.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kPadding = 4 * 1024 * 4;  // a block at most for each of a bucket's shards

std::vector<RankMemory> ranks_of(std::vector<std::string> words) {
  words.insert(words.end(), {"--dim", "64", "--heads", "2", "--ffn", "96", "--dry-run"});
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  const TrainOptions options = std::get<TrainOptions>(parse_train_options(words));
  return make_job(options, find_start(options, console), console).ranks;
}

void check_share(std::int64_t part, std::int64_t whole, std::int64_t ranks) {
  CHECK(part >= whole / ranks);
  CHECK(part <= whole / ranks + kPadding);
}

TEST_CASE("a rank has an n-th of what n copies share (6.9)", "[tools][memory][strategies]") {
  const int level = GENERATE(0, 1, 2, 3);
  const std::vector<RankMemory> whole = ranks_of({"--ranks", "1", "--stages", "1"});
  const std::vector<RankMemory> all =
      ranks_of({"--ranks", "4", "--dp", "4", "--zero", std::to_string(level)});
  REQUIRE(all.size() == 4);
  CAPTURE(level);
  for (const RankMemory& rank : all) {
    check_share(rank.weights, whole[0].weights, level >= 3 ? 4 : 1);
    check_share(rank.gradients, whole[0].gradients, level >= 2 ? 4 : 1);
    check_share(rank.states, whole[0].states, level >= 1 ? 4 : 1);
    CHECK(whole[0].states == 2 * whole[0].gradients);
    CHECK(rank.activations == whole[0].activations);
    CHECK((rank.borrowed > 0) == (level > 0));
    const std::int64_t kept = rank.weights + rank.gradients + rank.states;
    CHECK(rank.sum() - kept == (level == 1 ? std::max(rank.borrowed, rank.activations)
                                           : rank.borrowed + rank.activations));
  }
}

/// Its embedding, most of its bytes, is also its head.
struct TiedWords : torch::nn::Module {
  static constexpr std::int64_t kWords = 4000, kWidth = 32;

  TiedWords() {
    register_module("embed", embed);
    register_module("one", one);
    register_module("other", other);
  }
  torch::Tensor forward(const torch::Tensor& words) {
    const torch::Tensor read =
        stage("embed", [&] { return torch::tanh(one(embed(words).squeeze(1))); });
    return stage("head", [&] { return torch::matmul(other(read), embed->weight.t()); });
  }

  torch::nn::Embedding embed{kWords, kWidth};
  torch::nn::Linear one{kWidth, kWidth}, other{kWidth, kWidth};
};

/// Two stages with two copies each, which share at this level.
Execution tied_words(int level) {
  TiedWords model;
  const torch::Tensor words = torch::randint(TiedWords::kWords, {8, 1}, torch::kLong);
  const auto loss = [](const torch::Tensor& output, const torch::Tensor& label) {
    return torch::nn::functional::cross_entropy(output, label);
  };
  const Program program = compile(
      model, {.inputs = {words}, .labels = {words.squeeze(1)}, .loss = loss, .microbatches = 4});
  ReplicateOptions options;
  options.share(static_cast<Sharing>(level));
  return make_execution(program, in_copies(one_f_one_b(2, 2), 2), options);
}

/// Returns what the rank has in memory, without what it borrows in a step.
RankMemory measured(const Execution& execution, Rank rank) {
  RankSetup setup;
  setup.train = share_of(execution.plan, rank);
  RankMemory bytes;
  for (std::size_t s = 0; s < setup.train.list->stages.size(); ++s) {
    const StageBuckets buckets(
        execution.sized.compiled().partition.stages[setup.train.stage(s).program.index()],
        AdamW{},
        {},
        setup.buckets_of(s));
    const std::vector<BucketCut> cuts = setup.buckets_of(s);
    for (std::size_t b = 0; b < cuts.size(); ++b) {
      for (const at::Tensor& flat : buckets.own_weights(b)) {
        const auto part = static_cast<std::int64_t>(flat.nbytes());
        bytes.weights += cuts[b].lends_weights() ? part : part * cuts[b].shards;
        bytes.gradients += cuts[b].in_rounds() ? part : part * cuts[b].shards;
      }
    }
    for (const NamedTensor& tensor : buckets.state()) {
      const bool weight = tensor.name.starts_with("weight:");
      bytes.states += weight ? 0 : static_cast<std::int64_t>(tensor.tensor.nbytes());
    }
  }
  return bytes;
}

TEST_CASE("copies of stages with a tied embedding have an n-th of it, as the bill says (6.9)",
          "[tools][memory][strategies]") {
  const int level = GENERATE(0, 1, 2, 3);
  CAPTURE(level);
  const std::vector<RankMemory> whole = memory_of_ranks(tied_words(0), {});
  const Execution execution = tied_words(level);
  const std::vector<RankMemory> all = memory_of_ranks(execution, {});
  REQUIRE(all.size() == 4);
  constexpr std::int64_t kEmbedding = TiedWords::kWords * TiedWords::kWidth * 4;
  for (std::size_t r = 0; r < all.size(); ++r) {
    CAPTURE(r);
    CHECK(whole[r].weights > kEmbedding);
    check_share(all[r].weights, whole[r].weights, level >= 3 ? 2 : 1);
    check_share(all[r].gradients, whole[r].gradients, level >= 2 ? 2 : 1);
    check_share(all[r].states, whole[r].states, level >= 1 ? 2 : 1);
    // The bill counts the padding of shards where each rank has one.
    const RankMemory found = measured(execution, Rank(r));
    CHECK(found.weights >= all[r].weights);
    CHECK(found.weights - all[r].weights <= (level == 1 || level == 2 ? kPadding : 0));
    CHECK(found.gradients >= all[r].gradients);
    CHECK(found.gradients - all[r].gradients <= (level == 1 ? kPadding : 0));
    CHECK(found.states <= all[r].states);
    CHECK(found.states + kPadding >= all[r].states);
  }
}

/// Two stages of four equal layers, whose activations are small.
struct EqualLayers : torch::nn::Module {
  static constexpr std::int64_t kWidth = 256, kLayerBytes = (kWidth + 1) * kWidth * 4;

  EqualLayers() {
    for (int l = 0; l < 8; ++l) {
      layers.push_back(
          register_module("layer" + std::to_string(l), torch::nn::Linear(kWidth, kWidth)));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < 2; ++s) {
      x = stage(s == 0 ? "first" : "second", [&] {
        for (std::size_t l = 4 * s; l < 4 * s + 4; ++l) {
          x = torch::tanh(layers[l](x));
        }
        return x;
      });
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

TEST_CASE("a step holds what the bill says, within a bucket (6.9)", "[tools][memory][strategies]") {
  const int level = GENERATE(2, 3);
  // The bias of the layer before would fit too.
  const std::int64_t bucket = GENERATE(1, 2) * (EqualLayers::kLayerBytes + 4096);
  CAPTURE(level, bucket);
  EqualLayers model;
  const torch::Tensor x = torch::randn({8, EqualLayers::kWidth});
  const Program program = compile(
      model, {.inputs = {x}, .labels = {x}, .loss = torch::nn::MSELoss(), .microbatches = 8});
  ReplicateOptions options{.bucket_bytes = bucket};
  options.share(static_cast<Sharing>(level));
  const Execution execution = make_execution(program, in_copies(one_f_one_b(2, 4), 2), options);
  const std::vector<RankMemory> bill = memory_of_ranks(execution, {});
  Cluster cluster = Cluster::local(4);
  Trainer trainer(cluster, execution, AdamW{});
  for (int step = 0; step < 3; ++step) {
    const StepResult result = trainer.step({x}, {x}).get();
    for (std::size_t r = 0; r < bill.size(); ++r) {
      const std::int64_t billed = bill[r].in_step();
      const std::int64_t measured = result.ranks[r].memory.peak;
      CAPTURE(step, r, bill[r].borrowed, bill[r].activations, measured);
      CHECK(bill[r].activations < bucket / 2);
      CHECK(measured <= billed + bucket);
      CHECK(measured >= billed - bucket);
    }
  }
}

TEST_CASE("buckets bound what a rank borrows", "[tools][memory][strategies]") {
  const auto borrowed = [](const char* level, const char* bucket) {
    return ranks_of({"--ranks", "2", "--dp", "2", "--zero", level, "--bucket-size", bucket})
        .front()
        .borrowed;
  };
  CHECK(borrowed("2", "70K") < borrowed("2", "25M"));
  CHECK(borrowed("3", "70K") == 2 * borrowed("2", "70K"));
}

TEST_CASE("copies of weights in bfloat16 count for each microbatch, shared weights or not",
          "[tools][memory][strategies]") {
  const auto activations = [](const char* precision, const char* level, const char* samples) {
    std::vector<std::string> words{"--ranks", "2", "--dp", "2", "--zero", level};
    words.insert(words.end(), {"--precision", precision, "--microbatch-size", samples});
    words.insert(words.end(), {"--layers", "4"});
    return ranks_of(words).front().activations;
  };
  // Without the part that grows with the samples.
  const auto of_weights = [&](const char* precision, const char* level) {
    return 2 * activations(precision, level, "1") - activations(precision, level, "2");
  };
  constexpr std::int64_t kInMatrices = 4 * (4 * 64 * 64 + 3 * 64 * 96);  // elements in 4 layers
  CHECK(of_weights("fp32", "0") < kInMatrices / 4);
  CHECK(of_weights("bf16", "0") >= kInMatrices * 2);
  CHECK(of_weights("bf16", "3") == of_weights("bf16", "0"));
}

TEST_CASE("a rank has its part of divided experts", "[tools][memory][experts]") {
  const std::vector<std::string> moe{"--model", "moe"};
  const auto of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), moe.begin(), moe.end());
    return ranks_of(words).front();
  };
  const RankMemory whole = of({"--ranks", "4", "--dp", "4"});
  const RankMemory halves = of({"--ranks", "4", "--dp", "4", "--ep", "2"});
  const RankMemory quarters = of({"--ranks", "4", "--dp", "4", "--ep", "4"});
  const std::int64_t half = whole.weights - halves.weights;
  CHECK(half > 0);
  CHECK(whole.weights - quarters.weights == half * 3 / 2);
  CHECK(whole.gradients - halves.gradients == half);
  CHECK(whole.states - halves.states == 2 * half);
  CHECK(halves.borrowed == 0);
}

TEST_CASE("frozen parameters have no state", "[tools][memory]") {
  const RankMemory frozen = ranks_of({"--ranks", "1", "--stages", "1", "--freeze", "layers.*"})[0];
  const RankMemory all = ranks_of({"--ranks", "1", "--stages", "1"})[0];
  CHECK(frozen.weights == all.weights);
  CHECK(frozen.states < all.states);
}

}  // namespace
}  // namespace stagecraft::tools
