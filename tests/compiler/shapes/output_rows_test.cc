/// Tests which dimension of an output has the rows of its microbatch.
#include "stagecraft/compiler/shapes/output_rows.h"

#include <functional>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Dimensions = std::vector<std::int64_t>;
using Forward = std::function<Tensors(const torch::Tensor& x)>;

/// Says which numbers of rows a module takes.
enum class RowsTaken { AnyRows, TheseRows };

Dimensions dimensions_of(const torch::Tensor& x, RowsTaken takes, const Forward& forward) {
  Workload workload;
  workload.trains = false;
  workload.forward = [&](const Tensors& inputs) {
    if (takes == RowsTaken::TheseRows && inputs[0].sizes() != x.sizes()) {
      throw Error(Errc::CompileShape, "exported for one shape");
    }
    return forward(inputs[0]);
  };
  const FirstPart part{
      .inputs = {x}, .labels = {}, .input_slices = slices_of({x}, 1, "input"), .label_slices = {}};
  return row_dimensions(workload, capture(workload, part.inputs, {}), part);
}

std::string why_not(const torch::Tensor& x, const Forward& forward) {
  return refusal([&] { (void)dimensions_of(x, RowsTaken::TheseRows, forward); },
                 Errc::CompileShape);
}

torch::Tensor some_rows(std::int64_t count) {
  torch::manual_seed(3);
  return torch::randn({count, 3});
}

Tensors time_major(const torch::Tensor& x) {
  return {x.unsqueeze(0) * torch::arange(1, 9).view({8, 1, 1})};
}

TEST_CASE("rows are in the dimension that grows with them", "[compiler][shapes][evaluation]") {
  CHECK(dimensions_of(some_rows(4), RowsTaken::AnyRows, time_major) == Dimensions{1});
  CHECK(dimensions_of(some_rows(4), RowsTaken::AnyRows, [](const torch::Tensor& x) {
          return Tensors{x * 2, x.sum(), x.t() * 2};
        }) == Dimensions{0, 0, 1});
}

TEST_CASE("rows of a fixed number are in the dimension that divides by it",
          "[compiler][shapes][evaluation]") {
  CHECK(dimensions_of(some_rows(4), RowsTaken::TheseRows, [](const torch::Tensor& x) {
          return Tensors{x * 2, x.sum(), x.repeat_interleave(2, 0).mul(2), x.t() * 2};
        }) == Dimensions{0, 0, 0, 1});
  CHECK_THAT(why_not(some_rows(4), [](const torch::Tensor& x) { return Tensors{x.sum(0)}; }),
             ContainsSubstring("output 0 of the module has shape [3] for a microbatch of 4 rows"));
}

TEST_CASE("if several dimensions divide by the rows, reversed rows show the right one",
          "[compiler][shapes][evaluation]") {
  const torch::Tensor x = some_rows(4);
  const torch::Tensor wide = torch::randn({3, 8});
  const Forward both = [&](const torch::Tensor& t) {
    const torch::Tensor features = torch::matmul(t, wide);
    return Tensors{features,
                   features.t() * 2,
                   features.to(torch::kBFloat16) * 2,
                   features.gt(0).to(torch::kLong) + t.gt(0).sum(1, true)};
  };
  CHECK(dimensions_of(x, RowsTaken::TheseRows, time_major) == Dimensions{1});
  CHECK(dimensions_of(x, RowsTaken::TheseRows, both) == Dimensions{0, 1, 0, 0});
  CHECK_THAT(
      why_not(x, [](const torch::Tensor& t) { return Tensors{torch::matmul(t, t.t())}; }),
      ContainsSubstring("shape [4, 4]") && ContainsSubstring("no dimension follows the order"));
  // Equal rows: only the dimension of the rows stays as it was.
  CHECK(dimensions_of(torch::ones({4, 3}), RowsTaken::TheseRows, time_major) == Dimensions{1});
  CHECK_THAT(why_not(torch::zeros({4, 3}), time_major),
             ContainsSubstring("the dimensions 0, 1 all follow the order of the rows"));
}

TEST_CASE("one row is in the first dimension of size 1", "[compiler][shapes][evaluation]") {
  CHECK(dimensions_of(some_rows(1), RowsTaken::TheseRows, time_major) == Dimensions{1});
  CHECK(dimensions_of(some_rows(1), RowsTaken::TheseRows, [](const torch::Tensor& x) {
          return Tensors{x * 2};
        }) == Dimensions{0});
  CHECK_THAT(why_not(some_rows(1),
                     [](const torch::Tensor& x) {
                       return Tensors{x.t() * torch::ones({1, 2})};
                     }),
             ContainsSubstring("of 1 row, and no dimension of size 1"));
}

}  // namespace
}  // namespace stagecraft
