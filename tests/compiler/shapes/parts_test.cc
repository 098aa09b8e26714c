/// Tests how a batch of any size is divided into microbatches.
#include "stagecraft/compiler/shapes/parts.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/shapes/evaluations.h"
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
  CHECK_THAT(refusal([&] { (void)parts_of(program, {rows_of_four(16)}, {rows_of_four(0)}); },
                     Errc::CompileShape),
             ContainsSubstring("has 0 samples"));
  for (const torch::Tensor& unlike : {rows_of_four(8).to(torch::kDouble), rows_of_four(8)[0][0]}) {
    CHECK_THAT(
        refusal([&] { (void)parts_of(program, {unlike}, {rows_of_four(16)}); }, Errc::CompileShape),
        ContainsSubstring("was compiled as float32"));
  }
}

TEST_CASE("PT-1: a measured batch of fewer parts of the compiled size has these, and they count",
          "[compiler][batch]") {
  TwoLayers chain;
  const Program program = two_layers(chain, 16, 4);
  const auto check_divided = [](const Program& evaluation,
                                const Batch& labels,
                                int count,
                                const std::vector<std::int64_t>& sizes,
                                const std::vector<double>& weights) {
    CAPTURE(count);
    const Parts parts = parts_of(evaluation, {rows_of_four(count)}, labels);
    std::vector<at::Tensor> counted;
    for (std::size_t m = 0; m < sizes.size(); ++m) {
      CHECK(parts.inputs[m][0].size(0) == sizes[m]);
      CHECK(parts.weight(m) == weights[m]);
      if (parts.weight(m) > 0.0) {
        counted.push_back(parts.inputs[m][0]);
      }
    }
    CHECK(torch::equal(torch::cat(counted), rows_of_four(count)));
    CHECK(parts.samples == count);
    CHECK(parts.first_samples == sizes[0]);
  };
  const Program measured =
      program.evaluations()->measurement({}, {rows_of_four(16)}, {rows_of_four(32)});
  const auto check_measured =
      [&](int count, const std::vector<std::int64_t>& sizes, const std::vector<double>& weights) {
        check_divided(measured, {rows_of_four(2 * count)}, count, sizes, weights);
      };
  check_measured(16, {4, 4, 4, 4}, {1, 1, 1, 1});
  check_measured(12, {4, 4, 4, 4}, {1, 1, 1, 0});
  check_measured(8, {4, 4, 4, 4}, {1, 1, 0, 0});
  check_measured(4, {4, 4, 4, 4}, {1, 0, 0, 0});
  CHECK(measured.shape_captures()->count() == 1);
  check_measured(13, {4, 3, 3, 3}, {1, 0.75, 0.75, 0.75});
  check_measured(20, {5, 5, 5, 5}, {1, 1, 1, 1});
  check_measured(2, {1, 1, 1, 1}, {1, 1, 0, 0});  // labels have the rows of two samples

  // A prediction has no loss, and does not compute parts for nothing.
  const Program predicted = program.evaluations()->prediction({rows_of_four(16)});
  check_divided(predicted, {}, 8, {2, 2, 2, 2}, {1, 1, 1, 1});
}

}  // namespace
}  // namespace stagecraft
