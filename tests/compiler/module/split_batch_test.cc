/// Tests which batches are accepted, and their microbatches.
#include "stagecraft/compiler/module/split_batch.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

torch::Tensor rows(int count) {
  torch::manual_seed(11);
  return torch::randn({count, 4});
}

struct Misfit {
  torch::Tensor tensor;
  const char* says;
};

Misfit misfit_like(const torch::Tensor& good, int which) {
  switch (which) {
    case 0:
      return {torch::Tensor(), "is undefined"};
    case 1:
      return {good.to_sparse(), "layout Sparse"};
    case 2:
      return {torch::quantize_per_tensor(good, 0.1, 0, torch::kQInt8), "is quantized"};
    case 3:
      return {good.to(torch::kMeta), "device meta"};
    case 4:
      return {good.clone().requires_grad_(), "requires a gradient"};
    case 5:
      return {good.to_mkldnn(), "layout Mkldnn"};
    default:
      return {torch::_nested_tensor_from_tensor_list({good[0], good[1]}), "is nested"};
  }
}

TEST_CASE("a batch that no stage could compute with is refused, as the example and in every step",
          "[compiler][batch]") {
  const Misfit misfit = misfit_like(rows(8), GENERATE(range(0, 7)));
  const bool whole = GENERATE(false, true);
  const BatchTensor wrong(misfit.tensor, whole);
  const auto expected = slices_of({rows(8)}, 2, "input");
  for (const std::string& message :
       {refusal([&] { (void)slices_of({wrong}, 2, "input"); }, Errc::UsageArgument),
        refusal([&] { (void)split_batch({wrong}, expected, 2, "input"); }, Errc::UsageArgument)}) {
    CHECK_THAT(message, ContainsSubstring(misfit.says) && ContainsSubstring("input tensor 0"));
  }
}

TEST_CASE("an example batch that cannot be divided is refused", "[compiler][batch]") {
  CHECK_THAT(refusal([] { (void)slices_of({rows(0)}, 2, "label"); }, Errc::CompileShape),
             ContainsSubstring("label tensor 0 has no rows"));
  CHECK_THAT(
      refusal([] { (void)slices_of({torch::tensor(1.0)}, 2, "input"); }, Errc::UsageArgument),
      ContainsSubstring("no dimension 0") && ContainsSubstring("sc::replicated"));
  CHECK_THAT(refusal(
                 [] {
                   (void)slices_of({rows(8), rows(7)}, 2, "input");
                 },
                 Errc::CompileShape),
             ContainsSubstring("input tensor 1 has 7 rows"));
}

TEST_CASE("a slice is a microbatch's part, or all of a replicated tensor", "[compiler][batch]") {
  const auto slices =
      slices_of({rows(8), replicated(rows(3)), replicated(torch::tensor(1))}, 4, "");
  REQUIRE(slices.size() == 3);
  CHECK(slices[0].sizes == std::vector<std::int64_t>{2, 4});
  CHECK(slices[1].sizes == std::vector<std::int64_t>{3, 4});
  CHECK(slices[2].sizes.empty());
  CHECK(slices[2].dtype == torch::kLong);
}

TEST_CASE("a batch of another form than the example is refused", "[compiler][batch]") {
  const auto expected = slices_of({rows(8)}, 2, "input");
  const auto split = [&](const Batch& batch) {
    return [&expected, batch] { (void)split_batch(batch, expected, 2, "input"); };
  };
  CHECK_THAT(refusal(split({rows(8), rows(8)}), Errc::UsageArgument),
             ContainsSubstring("1 input tensors, this batch has 2"));
  for (const BatchTensor& other : {BatchTensor(rows(6)),
                                   BatchTensor(rows(8).to(torch::kDouble)),
                                   replicated(rows(8)),
                                   BatchTensor(rows(8).unsqueeze(0))}) {
    CHECK_THAT(refusal(split({other}), Errc::CompileShape),
               ContainsSubstring("was compiled as float32 of shape [8, 4]"));
  }
}

TEST_CASE("the parts of a batch are copies, and microbatches share only replicated ones",
          "[compiler][batch]") {
  auto x = rows(8);
  auto shift = torch::rand({4});
  const auto expected = slices_of({x, replicated(shift)}, 2, "input");
  std::vector<std::vector<torch::Tensor>> parts;
  {
    const c10::InferenceMode inference;
    parts = split_batch({x, replicated(shift)}, expected, 2, "input");
  }
  CHECK_FALSE(parts[0][0].is_inference());  // a stage differentiates through it
  CHECK(parts[0][1].is_same(parts[1][1]));
  CHECK_FALSE(parts[0][0].is_alias_of(parts[1][0]));
  x.zero_();
  shift.zero_();
  CHECK(torch::equal(torch::cat({parts[0][0], parts[1][0]}), rows(8)));
  CHECK(parts[0][1].abs().sum().item<float>() > 0);
}

TEST_CASE("PT-3: parts lie in memory as the rows of the batch do", "[compiler][batch]") {
  const torch::Tensor images = torch::randn({8, 3, 4, 5});
  for (const torch::Tensor& batch : {images,
                                     images.contiguous(torch::MemoryFormat::ChannelsLast),
                                     images.narrow(1, 0, 1),
                                     images.transpose(2, 3),
                                     images.transpose(0, 1).contiguous().transpose(0, 1)}) {
    CAPTURE(batch.strides());
    const auto slices = slices_of({batch}, 2, "input");
    CHECK(slices[0].order == memory_order_of(batch.narrow(0, 0, 4)));
    const auto parts = split_batch({batch}, slices, 2, "input");
    for (std::size_t m = 0; m < 2; ++m) {
      const torch::Tensor& part = parts[m][0];
      CHECK(torch::equal(part, batch.chunk(2)[m]));
      CHECK(memory_order_of(part) == slices[0].order);
      CHECK(part.is_non_overlapping_and_dense());
      CHECK_FALSE(part.is_alias_of(batch));
    }
  }
}

}  // namespace
}  // namespace stagecraft
