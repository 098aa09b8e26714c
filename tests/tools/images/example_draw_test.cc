#include "stagecraft/tools/images/example_draw.h"

#include <cstdint>
#include <set>
#include <vector>

#include <ATen/ops/equal.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("what a step trains on follows from seed and step, and none is evaluated (ED-1, ED-2)",
          "[tools][images]") {
  std::vector<std::int64_t> classes(25, 0);     // two of them are held out
  classes.insert(classes.end(), {1, 1, 1, 2});  // one of class 1, none of class 2
  const ExampleDraw draw(classes);
  const auto numbers = [](const at::Tensor& index) {
    const auto* first = index.const_data_ptr<std::int64_t>();
    return std::multiset<std::int64_t>(first, first + index.numel());
  };
  CHECK(at::equal(draw.of_step(3, 7, 20), draw.of_step(3, 7, 20)));
  CHECK_FALSE(at::equal(draw.of_step(3, 7, 20), draw.of_step(3, 8, 20)));
  CHECK_FALSE(at::equal(draw.of_step(3, 7, 20), draw.of_step(4, 7, 20)));
  const std::multiset<std::int64_t> trained = numbers(draw.of_step(0, 0, 26));
  CHECK(std::set(trained.begin(), trained.end()).size() == 26);
  CHECK(numbers(draw.of_step(0, 0, 52)).count(0) == 2);
  REQUIRE(draw.has_evaluation());
  CHECK(numbers(draw.of_evaluation(0, 3)) == std::multiset<std::int64_t>{9, 19, 27});
  for (const std::int64_t held_out : {9, 19, 27}) {
    CHECK(trained.count(held_out) == 0);
  }
  CHECK_FALSE(ExampleDraw({0, 1, 2}).has_evaluation());
}

}  // namespace
}  // namespace stagecraft::tools
