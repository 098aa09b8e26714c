/// Tests how a rank describes what a task has made.
#include "stagecraft/actors/executor/step/dispatched_values.h"

#include <cmath>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

TEST_CASE("values are described, packed and unpacked", "[executor][dispatch]") {
  const std::vector<DispatchedValue> values{describe(at::full({2, 2}, 3.0), false),
                                            describe(at::full({}, -2.0), true),
                                            describe(at::full({0, 5}, 1.0), false)};
  CHECK(values[0].norm == 6.0);
  CHECK(values[1].norm == 2.0);
  const std::vector<DispatchedValue> found = unpack_values(pack_values(values));
  REQUIRE(found.size() == values.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].gradient == values[i].gradient);
    CHECK(found[i].sizes == values[i].sizes);
    CHECK(found[i].norm == values[i].norm);
  }
  CHECK(unpack_values(pack_values({})).empty());
}

TEST_CASE("a description in another form is refused", "[executor][dispatch][hostile]") {
  const auto refused = [](const at::Tensor& packed) {
    return !refusal([&] { (void)unpack_values(packed); }, Errc::Internal).empty();
  };
  CHECK(refused(at::tensor({0.0, 1.0, 4.0}, at::kDouble)));       // no norm
  CHECK(refused(at::tensor({0.0, 3.0, 4.0, 1.0}, at::kDouble)));  // too few sizes
  CHECK(refused(at::tensor({2.0, 0.0, 1.0}, at::kDouble)));       // neither one nor the other
  CHECK(refused(at::tensor({0.0, -1.0, 1.0}, at::kDouble)));
  CHECK(refused(at::tensor({0.0, 1e9, 1.0}, at::kDouble)));
  CHECK(refused(at::tensor({0.0, 1.0, 0.5, 1.0}, at::kDouble)));
  CHECK(refused(at::tensor({0.0, 1.0, std::nan(""), 1.0}, at::kDouble)));
  CHECK(refused(at::tensor({0, 0, 1}, at::kLong)));
  CHECK(refused(at::full({1, 3}, 0.0, at::kDouble)));
}

}  // namespace
}  // namespace stagecraft
