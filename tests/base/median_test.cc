#include "stagecraft/base/median.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("the median is the middle, in any order", "[base]") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(quantile({50, 10, 40, 20, 30}, 0.25) == 20);
  CHECK(quantile({50, 10, 40, 20, 30}, 0.75) == 40);
  CHECK(quantile({1, 2}, 1) == 2);
}

TEST_CASE("quartiles are samples themselves", "[base]") {
  const Quartiles found = quartiles_of({50, 10, 40, 20, 30});
  CHECK(found.first == 20);
  CHECK(found.median == 30);
  CHECK(found.third == 40);
  const Quartiles one = quartiles_of({7});
  CHECK((one.first == 7 && one.median == 7 && one.third == 7));
}

TEST_CASE("noise is the interquartile range over the median", "[base]") {
  CHECK(noise_of({10, 10, 10}) == 0);
  CHECK(noise_of({30, 10, 40, 20, 50}) == 20.0 / 30);
}

}  // namespace
}  // namespace stagecraft
