#include "stagecraft/scheduler/model/number_range.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Ranges = std::vector<NumberRange>;

TEST_CASE("numbers that follow each other are one range", "[scheduler][number_range]") {
  CHECK(ranges_of(std::vector<int>{}).empty());
  CHECK(ranges_of(std::vector{0, 1, 2, 4, 7, 8}) == Ranges{{0, 2}, {4, 4}, {7, 8}});
  CHECK(ranges_without(std::vector{0, 1, 4}, 8) == Ranges{{2, 3}, {5, 7}});
  CHECK(ranges_without(std::vector<int>{}, 3) == Ranges{{0, 2}});
  CHECK(ranges_without(std::vector{0, 1, 2}, 3).empty());
  CHECK(ranges_without(std::vector<int>{}, 0).empty());
}

TEST_CASE("ranges are told as people say them", "[scheduler][number_range]") {
  CHECK(to_string(Ranges{{0, 3}, {5, 5}, {7, 8}}) == "0 to 3, 5, 7, 8");
  Ranges odd;
  for (int n = 1; n < 40; n += 2) {
    odd.push_back({n, n});
  }
  CHECK(to_string(odd) == "1, 3, 5, 7, 9, 11, 13, 15, ... (20 in all)");
  CHECK(counted("stage", {{2, 2}}) == "stage 2");
  CHECK(counted("stage", {{0, 1}}) == "stages 0, 1");
  CHECK(counted("microbatch", {{4, 7}}) == "microbatches 4 to 7");
}

}  // namespace
}  // namespace stagecraft
