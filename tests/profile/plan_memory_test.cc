/// What is predicted of ranks' memory, held against what LibTorch's allocator counted there.
#include <string>
#include <vector>

#include "stagecraft/actors/profile/profile.h"
#include "stagecraft/bench/planned_model.h"
#include "stagecraft/bench/rank_bytes.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr int kRanks = 2;
constexpr int kMicrobatches = 4;
constexpr double kMostOver = 0.1;

bench::PlannedModel small(const std::string& model) {
  return bench::train_model(
      model, kMicrobatches, 4, {"--dim", "64", "--heads", "2", "--ffn", "96", "--layers", "4"});
}

TEST_CASE("ranks hold what is predicted, and no more than the margin beyond", "[profile][memory]") {
  const std::string name = GENERATE("llama", "vit");
  const bench::PlannedModel model = small(name);
  const Program whole = model.compile(At{}, 1);
  PlanRequest request{
      .costs = profile(whole, model.inputs, model.labels, {.repeats = 1, .cache = ""}).costs,
      .devices = kRanks};
  request.batch = kMicrobatches * request.costs.samples;
  const Program cut = model.compile({}, kRanks);
  for (const Schedule& schedule :
       {one_f_one_b(cut.stage_graph(), kMicrobatches), gpipe(cut.stage_graph(), kMicrobatches)}) {
    const std::vector<double> predicted = bench::judged(request, cut, schedule).bytes;
    const std::vector<bench::RankBytes> counted =
        bench::count_bytes(cut, schedule, AdamW{}, model.inputs, model.labels);
    REQUIRE(counted.size() == predicted.size());
    for (std::size_t r = 0; r < counted.size(); ++r) {
      const auto peak = static_cast<double>(counted[r].peak);
      CAPTURE(name, r, schedule.rows().front().size(), predicted[r], peak, counted[r].state);
      CHECK(peak <= predicted[r] * (1 + kMemoryMargin));
      CHECK(predicted[r] <= peak * (1 + kMostOver));
      CHECK(counted[r].state > 0);
      CHECK(counted[r].state < counted[r].peak);
    }
  }
}

}  // namespace
}  // namespace stagecraft
