/// Tests facts of operators that their schemas do not state.
#include "stagecraft/compiler/capture/operator_traits.h"

#include <torch/torch.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

c10::OperatorHandle op(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

std::vector<c10::IValue> batch_norm(bool training) {
  const torch::Tensor none;
  const auto x = torch::rand({2, 3});
  const auto statistics = torch::rand({3});
  return {x, none, none, statistics, statistics, training, 0.1, 1e-5, false};
}

TEST_CASE("an operator writes the arguments that its schema marks, and statistics while training",
          "[compiler][capture][traits]") {
  const auto x = torch::rand({2});
  const std::vector<c10::IValue> sum = {x, x, 1};
  CHECK(written_arguments(op("aten::add_", "Tensor"), sum) == std::vector<std::size_t>{0});
  CHECK(written_arguments(op("aten::add", "Tensor"), sum).empty());
  CHECK(written_arguments(op("aten::batch_norm"), batch_norm(true)) ==
        std::vector<std::size_t>{3, 4});
  CHECK(written_arguments(op("aten::batch_norm"), batch_norm(false)).empty());
}

TEST_CASE("dropout draws while training, and only with a chance of dropping",
          "[compiler][capture][traits]") {
  const auto draws = [](double p, bool training) {
    return draws_random_numbers(op("aten::dropout"), {torch::rand({2}), p, training});
  };
  CHECK(draws(0.5, true));
  CHECK_FALSE(draws(0.5, false));
  CHECK_FALSE(draws(0.0, true));
  CHECK_FALSE(draws_random_numbers(op("aten::relu"), {torch::rand({2})}));
  CHECK_FALSE(generator_argument(op("aten::dropout")));
  CHECK(generator_argument(op("aten::bernoulli")) == 1);
}

TEST_CASE("a mask makes the shape depend on values, a list of positions does not",
          "[compiler][capture][traits]") {
  const auto by = [](const torch::Tensor& index) {
    const c10::List<std::optional<at::Tensor>> indices({index});
    return shape_depends_on_values(op("aten::index", "Tensor"), {torch::rand({2}), indices});
  };
  CHECK(by(torch::tensor({true, false})));
  CHECK_FALSE(by(torch::tensor({1, 1, 0})));
  CHECK(shape_depends_on_values(op("aten::nonzero"), {torch::rand({2})}));
  const auto classes = torch::tensor({1, 0});
  CHECK(shape_depends_on_values(op("aten::one_hot"), {classes, -1}));
  CHECK_FALSE(shape_depends_on_values(op("aten::one_hot"), {classes, 2}));
}

TEST_CASE("a number out of a tensor's values is a read of them", "[compiler][capture][traits]") {
  CHECK(reads_values(op("aten::item")));
  CHECK(reads_values(op("aten::equal")));
  CHECK_FALSE(reads_values(op("aten::relu")));
  CHECK(reads_values(op("aten::is_nonzero")));
  CHECK_FALSE(reads_values_inside(op("aten::relu")));
  CHECK(reads_values_inside(op("aten::_local_scalar_dense")));
}

TEST_CASE("one tensor equals itself, and two of floats are compared as arithmetic",
          "[compiler][capture][traits]") {
  const auto x = torch::rand({2});
  const auto n = torch::tensor({1, 2});
  CHECK(compares_with_itself(op("aten::equal"), {x, x}));
  CHECK_FALSE(compares_with_itself(op("aten::equal"), {x, x.clone()}));
  CHECK(compares_floats(op("aten::equal"), {x, x.clone()}));
  CHECK_FALSE(compares_floats(op("aten::equal"), {n, n.clone()}));
  CHECK_FALSE(compares_floats(op("aten::relu"), {x}));
}

}  // namespace
}  // namespace stagecraft
