/// Tests how a batch of any size is divided into microbatches.
#include "stagecraft/compiler/shapes/parts.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/shapes/shape_captures.h"
#include "stagecraft/tests/compiler/shapes/two_layers.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::rows_of_four;
using testing::two_layers;
using testing::TwoLayers;

TEST_CASE("PT-1: a batch is divided into as many parts as there are microbatches",
          "[compiler][batch]") {
  TwoLayers chain;
  const Program program = two_layers(chain, 16, 4);
  const auto division = [&](int count) {
    const Parts parts = parts_of(program, {rows_of_four(count)}, {rows_of_four(2 * count)});
    std::vector<std::int64_t> sizes;
    std::vector<at::Tensor> again;
    for (std::size_t m = 0; m < parts.inputs.size(); ++m) {
      sizes.push_back(parts.inputs[m][0].size(0));
      CHECK(parts.labels[m][0].size(0) == 2 * sizes[m]);
      again.push_back(parts.inputs[m][0]);
      const double weight = parts.weights.empty() ? 1.0 : parts.weights[m];
      CHECK(weight == static_cast<double>(sizes[m]) / static_cast<double>(sizes[0]));
      const bool own = parts.shapes.empty() || parts.shapes[m] == nullptr;
      CHECK(own == (sizes[m] == 4));
    }
    CHECK(torch::equal(torch::cat(again), rows_of_four(count)));
    return sizes;
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(division(16) == Sizes{4, 4, 4, 4});
  CHECK(division(13) == Sizes{4, 3, 3, 3});
  CHECK(division(9) == Sizes{3, 2, 2, 2});
  CHECK(division(5) == Sizes{2, 1, 1, 1});
  CHECK(division(8) == Sizes{2, 2, 2, 2});
  CHECK(program.shape_captures()->count() == 4);
  CHECK_THAT(refusal([&] { (void)parts_of(program, {rows_of_four(13)}, {rows_of_four(25)}); },
                     Errc::CompileShape),
             ContainsSubstring("has 1 sample for 4 microbatches"));
  CHECK_THAT(refusal([&] { (void)parts_of(program, {rows_of_four(0)}, {rows_of_four(0)}); },
                     Errc::CompileShape),
             ContainsSubstring("has 0 samples"));
  for (const torch::Tensor& unlike : {rows_of_four(8).to(torch::kDouble), rows_of_four(8)[0][0]}) {
    CHECK_THAT(
        refusal([&] { (void)parts_of(program, {unlike}, {rows_of_four(16)}); }, Errc::CompileShape),
        ContainsSubstring("was compiled as float32"));
  }
}

}  // namespace
}  // namespace stagecraft
