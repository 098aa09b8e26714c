#include "stagecraft/scheduler/builders/pfeife.h"

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/looped_bfs.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("the family of Pfeife has GPipe, 1F1B, interleaved 1F1B and BFS as members",
          "[scheduler][builders]") {
  CHECK(pfeife(4, 8, {1, 8, {4, 5, 6, 7}}) == gpipe(4, 8));
  CHECK(pfeife(4, 6) == one_f_one_b(4, 6));
  CHECK(pfeife(4, 8, {2, 4, {3, 2, 1, 0}}) == interleaved(4, 8, 2));
  CHECK(pfeife(4, 8, {4, 8, {4, 5, 6, 7}}) == looped_bfs(4, 8, 4));
}

}  // namespace
}  // namespace stagecraft
