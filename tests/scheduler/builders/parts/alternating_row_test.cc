#include "stagecraft/scheduler/builders/parts/alternating_row.h"

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

std::string row_text(const AlternatingRow& row) {
  std::string text;
  for (const Cell& cell : alternating_row(row)) {
    text += (text.empty() ? "" : " ") + to_string(cell);
  }
  return text;
}

AlternatingRow row_of(int total, int warm_up, std::optional<int> weight_lag = {}) {
  return {total, warm_up, weight_lag, turns_of(2), turns_of(2)};
}

TEST_CASE("a row warms up, alternates and ends", "[scheduler][builders]") {
  CHECK(row_text(row_of(4, 2)) == "2F0 2F1 2F2 2B0 2F3 2B1 2B2 2B3");
  CHECK(row_text(row_of(2, 0)) == "2F0 2B0 2F1 2B1");
  CHECK(row_text(row_of(2, 9)) == "2F0 2F1 2B0 2B1");
  CHECK(row_text(row_of(0, 3)).empty());
}

TEST_CASE("weight halves lag their input halves", "[scheduler][builders]") {
  CHECK(row_text(row_of(4, 2, 1)) == "2F0 2F1 2F2 2I0 2F3 2I1 2W0 2I2 2W1 2I3 2W2 2W3");
  CHECK(row_text(row_of(2, 1, 0)) == "2F0 2F1 2I0 2W0 2I1 2W1");
  CHECK(row_text(row_of(2, 0, 5)) == "2F0 2I0 2F1 2I1 2W0 2W1");
}

TEST_CASE("turns of a row of several stages are its builder's", "[scheduler][builders]") {
  const Turn both = [](int k) { return std::pair(k % 2, k / 2); };
  CHECK(row_text({.total = 4, .warm_up = 4, .forward = both, .backward = turns_of(7)}) ==
        "0F0 1F0 0F1 1F1 7B0 7B1 7B2 7B3");
}

}  // namespace
}  // namespace stagecraft
