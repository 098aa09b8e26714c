#include "stagecraft/scheduler/builders/kfkb.h"

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("groups of one are 1F1B, a group of all is GPipe", "[scheduler][builders]") {
  CHECK(kfkb(4, 8, 1) == one_f_one_b(4, 8));
  CHECK(kfkb(4, 8, 8) == gpipe(4, 8));
}

}  // namespace
}  // namespace stagecraft
