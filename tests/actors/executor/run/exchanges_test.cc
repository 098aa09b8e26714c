/// Tests how samples of divided chunks cross between two ranks.
#include "stagecraft/actors/executor/run/exchanges.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/actors/executor/commit/ranks_together.h"
#include "stagecraft/tests/actors/executor/setup/divided_setups.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::ExpertChain;

constexpr std::int64_t kFewRows = 3, kMoreRows = 5;  // of the microbatches of two ranks

/// Returns the stage of divided_setups(), captured for microbatches of more rows.
StageProgram stage_for_more_rows() {
  ExpertChain module(1);
  const auto x = torch::randn({2 * kMoreRows, ExpertChain::kWidth});
  const Program program = compile(
      module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2});
  return testing::divided_plan(program, gpipe(1, 1)).program.compiled().partition.stages.front();
}

/// Returns samples of a rank, each with numbers of its own.
torch::Tensor samples_of(std::int64_t rank, std::int64_t rows) {
  const std::int64_t count = ExpertChain::kExperts * rows * ExpertChain::kWidth;
  return (torch::arange(count) + 1000 * rank + 1)
      .to(torch::kFloat)
      .view({ExpertChain::kExperts, rows, ExpertChain::kWidth});
}

/// A rank that exchanges the samples of its experts for the first forward. Rank 1 has more rows.
struct ExchangingRank {
  ExchangingRank(const RankSetup& of, const StageProgram& larger, Collective& collective)
      : setup(of),
        trained(*of.stages[0], Sgd{}, {}, of.buckets_of(0)),
        for_more(larger, trained),
        exchanges(setup.train, collective) {
    exchanges.begin_step({});
    saved.outputs.resize(trained.chunks.size());
  }

  void exchange(bool returns, const Exchanges::Stages& stages) {
    for (const Op op : {Op::Start, Op::Finish}) {
      const Instruction& i =
          *std::ranges::find_if(setup.train.list->instructions, [&](const Instruction& one) {
            return is_exchange(one) && one.op == op && one.returns == returns &&
                   one.task.kind == CellKind::Forward;
          });
      if (op == Op::Start) {
        exchanges.start(i, stages, saved);
      } else {
        exchanges.finish(i, stages, saved, testing::in_a_minute());
      }
    }
  }

  /// Gives the samples to the chunk before the experts, and sends each expert its own.
  void bring(const torch::Tensor& samples, const Exchanges::Stages& stages) {
    saved.outputs[0].assign(setup.stages[0]->chunks[0].outputs.size(), samples);
    exchange(/*returns=*/false, stages);
  }

  const RankSetup& setup;
  StageRuntime trained, for_more;
  Exchanges exchanges;
  SavedStage saved;
};

using Work = std::function<void(Rank, ExchangingRank&)>;

void on_two_ranks(const StageProgram& larger, const Work& work) {
  const std::vector<RankSetup> setups = testing::divided_setups();
  testing::on_ranks(2, [&](Rank rank, Collective& collective) {
    ExchangingRank one(setups[rank.index()], larger, collective);
    work(rank, one);
  });
}

TEST_CASE("XC-1, XC-2: experts get the samples of microbatches of other sizes, and give them back",
          "[executor][experts]") {
  const std::vector<torch::Tensor> samples{samples_of(0, kFewRows), samples_of(1, kMoreRows)};
  std::vector<torch::Tensor> brought(2), returned(2);
  on_two_ranks(stage_for_more_rows(), [&](Rank rank, ExchangingRank& one) {
    const Exchanges::Stages stages{&one.trained, &one.for_more};
    one.bring(samples[rank.index()], stages);
    brought[rank.index()] = one.saved.exchanged[1][0];
    one.saved.outputs[1] = {brought[rank.index()] * 2};
    one.exchange(/*returns=*/true, stages);
    returned[rank.index()] = one.saved.outputs[1][0];
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto first = 2 * static_cast<std::int64_t>(rank);
    CHECK(torch::equal(brought[rank],
                       torch::cat({samples[0].narrow(0, first, 2), samples[1].narrow(0, first, 2)},
                                  /*dim=*/1)));
    CHECK(torch::equal(returned[rank], samples[rank] * 2));
  }
}

TEST_CASE("values that are not those of the microbatches are refused before anything is sent",
          "[executor][experts][bad-input]") {
  const StageProgram larger = stage_for_more_rows();
  const auto refused = [](const StageProgram& stage, const Work& work) {
    return refusal([&] { on_two_ranks(stage, work); }, Errc::PlanInvalid);
  };
  CHECK_THAT(refused(larger,
                     [](Rank /*rank*/, ExchangingRank& one) {
                       one.bring(samples_of(0, kMoreRows), {&one.trained, &one.trained});
                     }),
             ContainsSubstring("[4, 5, 8]: expected [4, 3, 8]"));
  StageProgram wider = larger;
  wider.values.at(wider.chunks[1].inputs[0]).sizes[2] = 9;
  CHECK_THAT(refused(wider,
                     [](Rank rank, ExchangingRank& one) {
                       one.bring(samples_of(0, rank == Rank(0) ? kFewRows : kMoreRows),
                                 {&one.trained, &one.for_more});
                     }),
             ContainsSubstring("no difference but that of samples"));
  StageProgram flat = larger;
  flat.values.at(flat.chunks[1].inputs[0]).sizes = {4};
  CHECK_THAT(refused(flat,
                     [](Rank /*rank*/, ExchangingRank& one) {
                       one.bring(samples_of(0, kFewRows), {&one.trained, &one.for_more});
                     }),
             ContainsSubstring("value 0 of chunk 1"));
}

}  // namespace
}  // namespace stagecraft
