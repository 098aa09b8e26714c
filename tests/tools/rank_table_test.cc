#include "stagecraft/tools/train/rank_table.h"

#include <algorithm>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/schedule/number_text.h"

namespace stagecraft::tools {

TEST_CASE("bytes are written in the largest unit that leaves a whole", "[tools][table]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(3.0 * (1 << 30)) == "3.0 GiB");
  CHECK(bytes_text(1e30) == "867361737988.4 EiB");
}

TEST_CASE("the closing table has a line per rank under one heading", "[tools][table]") {
  const std::string table =
      rank_table({{"0", 1.0, 2.0, 0.25, 0.5, 1024}, {"1,2", 1.5, 2.5, 0.25, 0.125, 2048}});
  CHECK(std::count(table.begin(), table.end(), '\n') == 3);
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("1,2"));
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("2.0 KiB"));
}

}  // namespace stagecraft::tools
