#include "stagecraft/actors/executor/run/regrouped.h"

#include <torch/torch.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("rows of one tensor are a view of it, rows of several are a copy",
          "[executor][regroup]") {
  const torch::Tensor a = torch::arange(8).view({4, 2});
  const torch::Tensor b = torch::arange(8, 16).view({4, 2});
  const torch::Tensor half = regrouped({a}, {{.first = 1, .count = 1, .of = 2}});
  CHECK(torch::equal(half, a.narrow(0, 2, 2)));
  CHECK(half.is_alias_of(a));
  const torch::Tensor all = regrouped({a}, {{.first = 0, .count = 2, .of = 2}});
  CHECK(all.is_same(a));
  const torch::Tensor both =
      regrouped({a, b}, {{.first = 3, .count = 1, .of = 4}, {.first = 0, .count = 2, .of = 4}});
  CHECK(torch::equal(both, torch::cat({a.narrow(0, 3, 1), b.narrow(0, 0, 2)})));
  CHECK_FALSE(both.is_alias_of(a));
}

TEST_CASE("rows that are no whole parts are refused", "[executor][regroup]") {
  const torch::Tensor three = torch::zeros({3, 2});
  CHECK_THAT(refusal([&] { (void)regrouped({three}, {{.first = 0, .count = 1, .of = 2}}); },
                     Errc::PlanInvalid),
             ContainsSubstring("3 rows cannot be taken as 2 equal parts"));
  CHECK_THAT(
      refusal([&] { (void)regrouped({torch::zeros({})}, {{.first = 0, .count = 1, .of = 2}}); },
              Errc::PlanInvalid),
      ContainsSubstring("0 rows"));
}

}  // namespace
}  // namespace stagecraft
