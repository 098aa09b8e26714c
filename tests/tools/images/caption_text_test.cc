#include "stagecraft/tools/images/caption_text.h"

#include <ATen/ops/arange.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/images/example_draw.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("captions are rows of tokens, cut or filled to their length", "[tools][images]") {
  const CaptionText text({{"abc"}, {"c", "b"}}, 3);
  CHECK(text.vocabulary() == 5);
  const at::Tensor tokens = text.of_images(at::arange(2), generator_of(0, 0, Drawn::Captions));
  REQUIRE(tokens.sizes() == at::IntArrayRef({2, 3}));
  CHECK(tokens[0][0].item().toLong() == 1);
  CHECK(tokens[0][1].item().toLong() == 2);
  CHECK(tokens[0][2].item().toLong() == 4);
  CHECK(tokens[1][0].item().toLong() >= 2);
  CHECK(tokens[1][1].item().toLong() == 4);
  CHECK(tokens[1][2].item().toLong() == 0);
}

}  // namespace
}  // namespace stagecraft::tools
