#include "stagecraft/actors/executor/commit/clip.h"

#include <limits>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("clipping scales a larger gradient down to the norm, and leaves others alone",
          "[executor][commit]") {
  CHECK(clip_scale(std::numeric_limits<double>::infinity(), 7.0) == 1.0);
  CHECK(clip_scale(2.0, 1.0) == 1.0);
  CHECK(clip_scale(2.0, 8.0) * 8.0 == Catch::Approx(2.0).epsilon(1e-6));
  CHECK(clip_scale(2.0, 0.0) == 1.0);
  CHECK(clip_scale(2.0, std::numeric_limits<double>::infinity()) == 0.0);
}

}  // namespace
}  // namespace stagecraft
