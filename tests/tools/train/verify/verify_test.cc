#include "stagecraft/tools/train/verify/verify.h"

#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string stage_of(const std::string& name) {
  return name == "embed" ? "stage 0" : "stage 1";
}

}  // namespace

TEST_CASE("equal runs are bit-equal and counted", "[tools][verify]") {
  Verifier verifier;
  verifier.step(1, {1.5, 2.5}, {1.5, 2.5}, 2.0, 2.0);
  verifier.step(2, {1.0, 2.0}, {1.0, 2.0}, 1.5, 1.5);
  const NamedTensors weights{{"embed", at::ones({4})}, {"head", at::ones({2, 2})}};
  verifier.parameters(weights, {{"embed", at::ones({4})}, {"head", at::ones({2, 2})}}, stage_of);
  CHECK(verifier.result().bit_equal);
  CHECK(verifier.result().max_abs_diff == 0.0);
  CHECK(verifier.result().losses == 2);
  CHECK(verifier.result().parameters == 2);
  CHECK(verifier.result().first_difference.empty());
}

TEST_CASE("the first differing loss and parameter are named with step and stage",
          "[tools][verify]") {
  Verifier verifier;
  verifier.step(1, {1.0, 2.0}, {1.0, 2.0}, 1.5, 1.5);
  verifier.step(2, {1.0, 2.0}, {1.0, 2.25}, 1.5, 1.625);
  verifier.step(3, {1.0, 2.0}, {1.0, 4.0}, 1.5, 2.5);
  at::Tensor changed = at::ones({2, 2});
  changed[0][1] += 0.5;
  verifier.parameters({{"embed", at::ones({4})}, {"head", changed}},
                      {{"embed", at::ones({4})}, {"head", at::ones({2, 2})}},
                      stage_of);
  CHECK_FALSE(verifier.result().bit_equal);
  CHECK(verifier.result().max_abs_diff == 2.0);
  CHECK_THAT(verifier.result().first_difference,
             ContainsSubstring("step 2, microbatch 1") &&
                 ContainsSubstring("parameter head of stage 1") && !ContainsSubstring("step 3"));
}

TEST_CASE("buffers are compared too, and the first that differs is named", "[tools][verify]") {
  Verifier verifier;
  const NamedTensors same{{"mean", at::ones({2})}, {"count", at::tensor({3})}};
  verifier.buffers(same, {{"mean", at::ones({2})}, {"count", at::tensor({3})}}, stage_of);
  CHECK(verifier.result().bit_equal);
  CHECK(verifier.result().buffers == 2);
  CHECK(verifier.result().parameters == 0);
  verifier.buffers(same, {{"mean", at::ones({2})}, {"count", at::tensor({4})}}, stage_of);
  CHECK_FALSE(verifier.result().good);
  CHECK(verifier.result().max_abs_diff == 1.0);
  CHECK_THAT(verifier.result().first_difference, ContainsSubstring("buffer count of stage 1"));
}

TEST_CASE("a buffer that forwards write in another order is named, not compared",
          "[tools][verify]") {
  Verifier verifier;
  const NamedTensors pipeline{{"mean", at::ones({2})}, {"table", at::ones({2})}};
  const NamedTensors one_process{{"mean", at::zeros({2})}, {"table", at::ones({2})}};
  verifier.buffers(pipeline, one_process, stage_of, {"mean"});
  CHECK(verifier.result().bit_equal);
  CHECK(verifier.result().buffers == 1);
  CHECK(verifier.result().reordered_buffers == std::vector<std::string>{"mean"});
}

TEST_CASE("equality is of bits: -0 is not 0, and a NaN is itself", "[tools][verify]") {
  Verifier zeros;
  zeros.parameters({{"w", at::tensor({0.0F})}}, {{"w", at::tensor({-0.0F})}}, stage_of);
  CHECK_FALSE(zeros.result().bit_equal);
  Verifier nans;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  nans.step(1, {nan}, {nan}, nan, nan);
  CHECK(nans.result().bit_equal);
}

TEST_CASE("runs of different shape are not bit-equal", "[tools][verify]") {
  Verifier names;
  names.parameters({{"a", at::ones({1})}}, {{"b", at::ones({1})}}, stage_of);
  CHECK_FALSE(names.result().bit_equal);
  Verifier sizes;
  sizes.parameters({{"a", at::ones({2})}}, {{"a", at::ones({1})}}, stage_of);
  CHECK_FALSE(sizes.result().bit_equal);
  Verifier counts;
  counts.step(1, {1.0}, {1.0, 1.0}, 1.0, 1.0);
  CHECK_FALSE(counts.result().bit_equal);
}

TEST_CASE("where sums are reordered, a difference within the bound is good", "[tools][verify]") {
  Verifier verifier("two shares");
  verifier.step(1, {1.0, 2.0}, {1.0, 2.0 + 1e-6}, 1.5, 1.5);
  CHECK_FALSE(verifier.result().bit_equal);
  CHECK(verifier.result().good);
  verifier.parameters({{"head", at::full({4}, 1.00005F)}}, {{"head", at::ones({4})}}, stage_of);
  CHECK(verifier.result().good);
  CHECK(verifier.result().reordered == "two shares");
}

TEST_CASE("where sums are reordered, a difference beyond the bound is not good",
          "[tools][verify]") {
  Verifier losses("two shares"), weights("two shares"), count("two shares"), nan("two shares");
  losses.step(1, {1.0}, {1.001}, 1.0, 1.0);
  CHECK_FALSE(losses.result().good);
  weights.parameters({{"head", at::full({4}, 1.001F)}}, {{"head", at::ones({4})}}, stage_of);
  CHECK_FALSE(weights.result().good);
  count.step(1, {1.0, 2.0}, {1.0}, 1.0, 1.0);
  CHECK_FALSE(count.result().good);
  nan.step(1, {std::numeric_limits<double>::quiet_NaN()}, {1.0}, 1.0, 1.0);
  CHECK_FALSE(nan.result().good);
}

TEST_CASE("where sums are not reordered, any difference is bad", "[tools][verify]") {
  Verifier verifier;
  verifier.step(1, {1.0}, {1.0 + 1e-12}, 1.0, 1.0);
  CHECK_FALSE(verifier.result().good);
}

}  // namespace stagecraft::tools
