/// Tests arithmetic on sizes, which computes as Python does.
#include "stagecraft/compiler/import/exported/exported_symbols.h"

#include <cstdint>
#include <limits>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("sizes are computed with as Python does", "[compiler][import]") {
  const auto result = [](const char* name, const std::vector<c10::IValue>& numbers) {
    return exported::symbol_function(name).value()(numbers);
  };
  CHECK(result("_operator.add", {2, 3}).toInt() == 5);
  CHECK(result("_operator.add", {2, 0.5}).toDouble() == 2.5);
  CHECK(result("_operator.truediv", {1, 4}).toDouble() == 0.25);
  CHECK(result("_operator.mod", {-7, 4}).toInt() == 1);
  CHECK(result("_operator.pow", {2, 10}).toInt() == 1024);
  CHECK(result("_operator.lt", {2, 3}).toBool());
  CHECK(result("torch.sym_max", {2, 3}).toInt() == 3);
  CHECK(result("torch.sym_ite", {false, 2, 3}).toInt() == 3);
  CHECK_THROWS_AS(result("_operator.add", {2}), Error);
  CHECK_FALSE(exported::symbol_function("_operator.matmul"));
}

TEST_CASE("arithmetic on sizes ends no process", "[compiler][import][hostile]") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto divide = exported::symbol_function("_operator.floordiv").value();
  CHECK(divide({kLeast, -1}).toInt() == kLeast);
  CHECK(divide({7, -1}).toInt() == -7);
  CHECK(divide({7, -2}).toInt() == -4);
  CHECK_THROWS_AS(divide({7, 0}), Error);
}

}  // namespace
}  // namespace stagecraft
