/// Tests the tensors that are sent beside a message.
#include "stagecraft/compiler/wire/tensor_table.h"

#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::wire {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<at::Tensor> laid_again(const std::vector<TensorFacts>& facts,
                                   const std::vector<at::Tensor>& spans) {
  const std::string nil("\xc0");
  const Reader in(nil);
  return laid_over(in, facts, spans);
}

std::string refused_facts(const TensorFacts& facts, const at::Tensor& span) {
  return refusal([&] { (void)laid_again({facts}, {span}); }, Errc::WireFormat);
}

TEST_CASE("WT-1: tensors come back with their strides, shared elements and gaps",
          "[compiler][wire]") {
  const at::Tensor whole = at::arange(24, at::kFloat).view({4, 6});
  TensorTable table;
  const std::vector<at::Tensor> sent{whole,
                                     whole.t(),
                                     whole.slice(1, 0, 6, 2),
                                     whole[0].expand({3, 6}),
                                     at::zeros({0, 5}),
                                     at::ones({}, at::kLong)};
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CHECK(table.number_of(sent[i]) == i);
  }
  for (const at::Tensor& span : table.spans()) {
    CHECK(span.dim() == 1);
    CHECK(span.is_contiguous());
  }
  CHECK(table.spans()[3].numel() == 6);  // shared elements are sent once
  const std::vector<at::Tensor> found = laid_again(table.facts(), table.spans());
  REQUIRE(found.size() == sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].equal(sent[i]));
    CHECK(found[i].strides() == sent[i].strides());
    CHECK(found[i].scalar_type() == sent[i].scalar_type());
  }
}

TEST_CASE("WT-2: a tensor has one number", "[compiler][wire]") {
  const at::Tensor one = at::ones({2}), other = at::ones({2});
  TensorTable table;
  CHECK(table.number_of(one) == 0);
  CHECK(table.number_of(other) == 1);
  CHECK(table.number_of(one) == 0);
  CHECK(table.spans().size() == 2);
}

TEST_CASE("only plain tensors of this machine can be sent", "[compiler][wire]") {
  CHECK(obstacle(at::ones({2})).empty());
  CHECK_THAT(obstacle(at::Tensor()), ContainsSubstring("undefined"));
  CHECK_THAT(obstacle(at::ones({2}).to_sparse()), ContainsSubstring("not dense"));
  CHECK_THAT(obstacle(at::empty({2}, at::TensorOptions().device(at::kMeta))),
             ContainsSubstring("not in the memory of this machine"));
  CHECK_THAT(obstacle(at::ones({2}, at::kComplexFloat).conj()), ContainsSubstring("conjugate"));
  CHECK_THAT(obstacle(at::ones({2}).requires_grad_(true)), ContainsSubstring("gradient"));
}

TEST_CASE("facts that describe no tensor, or not the one received, are refused",
          "[compiler][wire][hostile]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62U;
  const TensorFacts good{.dtype = at::kFloat, .sizes = {2, 3}, .strides = {3, 1}};
  CHECK_NOTHROW(laid_again({good}, {at::zeros({6})}));
  for (const auto& [sizes, strides] :
       std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>{
           {{2, 3}, {3}}, {{-1}, {1}}, {{2}, {-1}}, {{kHuge, kHuge}, {1, 1}}, {{3}, {kHuge}}}) {
    CHECK_THAT(
        refused_facts({.dtype = at::kFloat, .sizes = sizes, .strides = strides}, at::zeros({6})),
        ContainsSubstring("no tensor of Float has the sizes"));
  }
  for (const at::Tensor& span :
       {at::zeros({5}), at::zeros({2, 3}), at::zeros({6}, at::kInt), at::Tensor()}) {
    CHECK_THAT(refused_facts(good, span), ContainsSubstring("6 elements of Float"));
  }
  CHECK_THAT(refusal([&] { (void)laid_again({good}, {}); }, Errc::WireFormat),
             ContainsSubstring("expected 1 tensors, found 0"));
}

}  // namespace
}  // namespace stagecraft::wire
