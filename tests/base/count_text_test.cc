#include "stagecraft/base/count_text.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

TEST_CASE("one thing is named in the singular, all other counts in the plural", "[base]") {
  CHECK(count_text(1, "stage") == "1 stage");
  CHECK(count_text(0, "stage") == "0 stages");
  CHECK(count_text(std::size_t{2}, "stage") == "2 stages");
  CHECK(count_text(std::int64_t{1} << 40, "sample") == "1099511627776 samples");
}

TEST_CASE("nouns have their own plurals", "[base]") {
  CHECK(count_text(3, "microbatch") == "3 microbatches");
  CHECK(count_text(3, "copy") == "3 copies");
  CHECK(count_text(3, "way") == "3 ways");
  CHECK(count_text(3, "process") == "3 processes");
  CHECK(count_text(3, "edge of data") == "3 edges of data");
  CHECK(count_text(1, "edge of data") == "1 edge of data");
}

}  // namespace stagecraft
