#include "stagecraft/tools/train/run/routes.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("each route that was used is told with its pairs of ranks", "[tools][table]") {
  const std::vector<Route> of_first{Route::HandOver, Route::SharedMemory, Route::Unused};
  const std::vector<Route> of_second{Route::SharedMemory, Route::HandOver, Route::Socket};
  CHECK(routes_text({{.rank = Rank(0), .routes = of_first},
                     {.rank = Rank(1), .routes = of_second},
                     {.rank = Rank(2), .answers = false}}) ==
        "tensors by shared memory: rank 0 to 1, 1 to 0\n"
        "tensors by encrypted socket: rank 1 to 2\n");
  CHECK(routes_text({{.rank = Rank(0), .routes = {Route::HandOver}}}).empty());
}

TEST_CASE("of many pairs the first are told, and how many more there are", "[tools][table]") {
  std::vector<RankStatus> ranks;
  for (int r = 0; r < 5; ++r) {
    ranks.push_back({.rank = Rank(r), .routes = std::vector<Route>(5, Route::HandOver)});
  }
  CHECK_THAT(routes_text(ranks), ContainsSubstring("and 8 more pairs"));
}

}  // namespace
}  // namespace stagecraft::tools
