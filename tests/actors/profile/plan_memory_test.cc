/// Compares the predicted memory of ranks with the memory that LibTorch's allocator counted there.
#include <string>
#include <vector>

#include "stagecraft/actors/profile/profile.h"
#include "stagecraft/bench/plans/judged.h"
#include "stagecraft/bench/plans/plans_subject.h"
#include "stagecraft/bench/plans/rank_bytes.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr int kRanks = 2;
constexpr double kMostUnder = 0.02;
constexpr double kMostOver = 0.1;

bench::Subject small(const std::string& model) {
  return bench::subject_of_model(model,
                                 {"--dim", "64", "--heads", "2", "--ffn", "96", "--layers", "4"});
}

/// Of the ranks' bytes, what is predicted and what was counted agree.
void check_bytes(const bench::Subject& model,
                 const PlanRequest& request,
                 const Program& cut,
                 const Schedule& schedule) {
  const PlanProposal judged = bench::judged(request, cut, schedule);
  std::vector<double> predicted = judged.bytes;
  for (std::size_t r = 0; r < predicted.size(); ++r) {
    predicted[r] -= judged.early[r];  // what waits hangs on who is faster, and is counted apart
  }
  const std::vector<bench::RankBytes> counted =
      bench::count_bytes(cut, schedule, AdamW{}, model.inputs, model.labels);
  REQUIRE(counted.size() == predicted.size());
  for (std::size_t r = 0; r < counted.size(); ++r) {
    const auto peak = static_cast<double>(counted[r].peak);
    CAPTURE(model.name, r, schedule.rows().front().size(), predicted[r], peak, counted[r].state);
    CHECK(peak <= predicted[r] * (1 + kMostUnder));
    CHECK(predicted[r] <= peak * (1 + kMostOver));
    CHECK(counted[r].state > 0);
    CHECK(counted[r].state < counted[r].peak);
  }
}

TEST_CASE("ranks hold what is predicted, also between the halves of split backwards",
          "[profile][memory]") {
  const bench::Subject model = small(GENERATE("llama", "vit"));
  const Program whole = model.compile(At{}, 1);
  PlanRequest request{
      .costs = profile(whole, model.inputs, model.labels, {.repeats = 1, .cache = ""}).costs,
      .devices = kRanks};
  request.batch = model.microbatches * request.costs.samples;
  const Program cut = model.compile({}, kRanks);
  const Program halved = model.compile({}, 2 * kRanks);
  check_bytes(model, request, cut, one_f_one_b(cut.stage_graph(), model.microbatches));
  check_bytes(model, request, cut, gpipe(cut.stage_graph(), model.microbatches));
  check_bytes(model, request, cut, zb_h1(kRanks, model.microbatches));
  check_bytes(model, request, halved, zb_v(kRanks, model.microbatches));
}

}  // namespace
}  // namespace stagecraft
