/// Tests the bytes of sums, gathers and exchanges by counting what ranks send.
#include "stagecraft/bench/plans/sent_bytes.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/futures/transport/forwarding_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::bench {
namespace {

constexpr int kCopies = 2, kSentMicrobatches = 2;  // of a copy

/// Counts the bytes that a rank sends on each edge. Its mutex guards the counts: a rank sends from
/// its own thread, and from the one that adds.
class CountingTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    {
      const std::scoped_lock lock(mutex_);
      bytes_[tag.edge] += static_cast<double>(tensor.nbytes());
    }
    ForwardingTransport::send(to, tag, std::move(tensor));
  }

  /// Returns what was sent for the group with this number (TG-1; group 0 of a rank is the vote).
  [[nodiscard]] double of_group(std::size_t number) {
    const std::scoped_lock lock(mutex_);
    return bytes_[EdgeId(-2 - static_cast<std::int32_t>(number))];
  }

 private:
  std::mutex mutex_;
  std::map<EdgeId, double> bytes_;
};

/// Trains one step. Returns what each rank has sent.
std::vector<SentBytes> counted(const Execution& execution, const at::Tensor& batch) {
  const Plan& plan = *execution.plan;
  const auto ranks = plan.ranks.size();
  const InprocNetwork network(static_cast<int>(ranks));
  const Job job{.plan_id = {},
                .program = execution.sized.shared(),
                .train = execution.plan,
                .optimizer = Sgd{.lr = 0.1},
                .options = {}};
  const StepOrder order{.step = Step(0), .submission = Submission(0), .learning_rate = 0.1};
  const auto parts = batch.chunk(execution.sized.compiled().microbatches);
  for (const Feed& feed : plan.feeds) {
    network.endpoint(kDriver)->send(
        feed.to,
        {.submission = order.submission, .edge = feed.edge, .microbatch = feed.microbatch},
        parts[feed.microbatch.index()]);
  }
  std::vector<std::shared_ptr<CountingTransport>> ends;
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r) {
    ends.push_back(std::make_shared<CountingTransport>(network.endpoint(Rank(r))));
    threads.emplace_back([&, r, end = ends.back()] {
      set_own_thread_count(1);
      StageExecutor executor(rank_setup(job, Rank(r)), end);
      executor.load(initial_state(execution.sized.compiled().graph));
      (void)executor.run(order);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<SentBytes> all(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t g = 0; g < plan.tables.groups.size(); ++g) {
      const bool divided = plan.tables.groups[g].kind == PlanGroup::Kind::Divided;
      (divided ? all[r].exchanges : all[r].copies) += ends[r]->of_group(g);
    }
  }
  return all;
}

/// Two stages of three layers, which fill whole blocks: shards have no padding.
struct WholeBlocks : torch::nn::Module {
  static constexpr std::int64_t kWidth = 64, kLayerBytes = kWidth * kWidth * 4;

  WholeBlocks() {
    for (int l = 0; l < 6; ++l) {
      layers.push_back(
          register_module("layer" + std::to_string(l),
                          torch::nn::Linear(torch::nn::LinearOptions(kWidth, kWidth).bias(false))));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < 2; ++s) {
      x = stage(s == 0 ? "first" : "second", [&] {
        for (std::size_t l = 3 * s; l < 3 * s + 3; ++l) {
          x = torch::tanh(layers[l](x));
        }
        return x;
      });
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

TEST_CASE("copies send what the formula says, at every level of sharing (6.9)",
          "[bench][strategies]") {
  constexpr double kNorms = 1024;  // at most: of the parts of divided parameters
  constexpr double kWeights = 3 * WholeBlocks::kLayerBytes, kHalf = (kCopies - 1.0) / kCopies;
  const auto sharing =
      GENERATE(Sharing::Nothing, Sharing::States, Sharing::Gradients, Sharing::Weights);
  CAPTURE(static_cast<int>(sharing));
  WholeBlocks module;
  const torch::Tensor x = torch::randn({8, WholeBlocks::kWidth});
  const Program program = compile(module,
                                  {.inputs = {x},
                                   .labels = {x},
                                   .loss = testing::mean_square,
                                   .microbatches = kCopies * kSentMicrobatches});
  ReplicateOptions options{.bucket_bytes = WholeBlocks::kLayerBytes};
  options.share(sharing);
  const Execution execution =
      make_execution(program, in_copies(one_f_one_b(2, kSentMicrobatches), kCopies), options);
  const std::vector<SentBytes> found = counted(execution, x);
  REQUIRE(found.size() == 4);
  for (std::size_t r = 0; r < found.size(); ++r) {
    const double formula = bytes_sent(execution, Rank(r)).copies;
    CAPTURE(r, formula, found[r].copies);
    CHECK(found[r].copies >= formula);
    CHECK(found[r].copies <= formula + (sharing == Sharing::Nothing ? 0 : kNorms));
    // The table of docs/strategies.md. Gathers that a neighbor makes needless are left out.
    switch (sharing) {
      case Sharing::Nothing:
        CHECK(formula == 2 * kHalf * kWeights);
        break;
      case Sharing::States:
        CHECK(formula == kHalf * (kWeights + kWeights));
        break;
      case Sharing::Gradients:
        CHECK(formula == kHalf * (kSentMicrobatches * kWeights + kWeights));
        break;
      case Sharing::Weights:
        CHECK(formula <= kHalf * (kSentMicrobatches * kWeights + 2 * kSentMicrobatches * kWeights));
        CHECK(formula > kHalf * (kSentMicrobatches * kWeights + kSentMicrobatches * kWeights));
        break;
    }
  }
}

TEST_CASE("ranks that divide experts send the samples that the formula says",
          "[bench][strategies][experts]") {
  using testing::ExpertChain;
  torch::manual_seed(3);
  const Program program = testing::expert_program(2, kCopies * kSentMicrobatches);
  const Execution execution =
      make_execution(program, in_copies(one_f_one_b(2, kSentMicrobatches), kCopies), {}, "EP");
  const std::vector<SentBytes> found =
      counted(execution, torch::randn({3 * kCopies * kSentMicrobatches, ExpertChain::kWidth}));
  constexpr double kSamples = ExpertChain::kExperts * 3 * ExpertChain::kWidth * 4;
  for (std::size_t r = 0; r < found.size(); ++r) {
    const SentBytes formula = bytes_sent(execution, Rank(r));
    CAPTURE(r, formula.copies, found[r].copies);
    CHECK(formula.exchanges == 4 * kSentMicrobatches * kSamples / 2);
    // And the square of this rank's part of the experts, for the norm.
    CHECK(found[r].exchanges == formula.exchanges + sizeof(double));
  }
}

}  // namespace
}  // namespace stagecraft::bench
