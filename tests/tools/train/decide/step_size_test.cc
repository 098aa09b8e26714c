#include "stagecraft/tools/train/decide/step_size.h"

#include <cstdint>
#include <optional>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

StepSize of_data(int microbatches, std::optional<std::int64_t> asked = std::nullopt) {
  return {.cut = std::nullopt,
          .microbatches = asked,
          .data = FixedData{.folder = "batches", .microbatches = microbatches, .batches = 9}};
}

TEST_CASE("without data the options say the microbatches of each copy", "[tools][train]") {
  StepSize size;
  CHECK_FALSE(size.microbatches_of(1));
  size.microbatches = 6;
  CHECK(size.microbatches_of(1) == 6);
  CHECK(size.microbatches_of(4) == 6);
}

TEST_CASE("the microbatches of data are divided over the copies", "[tools][train]") {
  CHECK(of_data(12).microbatches_of(1) == 12);
  CHECK(of_data(12).microbatches_of(4) == 3);
  CHECK(of_data(12, 3).microbatches_of(4) == 3);
}

TEST_CASE("data that do not divide, or that --microbatches contradicts, are refused",
          "[tools][train][bad-input]") {
  CHECK_THAT(refusal([] { (void)of_data(12).microbatches_of(5); }),
             ContainsSubstring("'batches' has 12 microbatches in a step, and they do not divide "
                               "over 5 copies"));
  CHECK(refusal([] { (void)of_data(12, 12).microbatches_of(4); }) ==
        "--microbatches expects 3, as 'batches' has them in a step for each of 4 copies, found "
        "12; leave it out");
  CHECK(refusal([] { (void)of_data(12, 8).microbatches_of(1); }) ==
        "--microbatches expects 12, as 'batches' has them in a step, found 8; leave it out");
}

}  // namespace
}  // namespace stagecraft::tools
