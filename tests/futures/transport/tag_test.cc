#include "stagecraft/futures/transport/tag.h"

#include <cstddef>
#include <functional>
#include <unordered_set>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a tag prints every part a reader needs", "[futures][transport]") {
  const Tag tag{.plan = PlanId{9},
                .epoch = Epoch{1},
                .submission = Submission{7},
                .edge = EdgeId{3},
                .microbatch = Microbatch{2}};
  CHECK(to_string(tag) == "edge 3, microbatch 2, submission 7, epoch 1, plan 9");
}

TEST_CASE("tags that differ in one part are different and hash differently",
          "[futures][transport]") {
  const Tag base{.plan = PlanId{1},
                 .epoch = Epoch{1},
                 .submission = Submission{1},
                 .edge = EdgeId{1},
                 .microbatch = Microbatch{1}};
  Tag other = base;
  SECTION("plan") {
    other.plan = PlanId{2};
  }
  SECTION("epoch") {
    other.epoch = Epoch{2};
  }
  SECTION("submission") {
    other.submission = Submission{2};
  }
  SECTION("edge") {
    other.edge = EdgeId{2};
  }
  SECTION("microbatch") {
    other.microbatch = Microbatch{2};
  }
  CHECK(base != other);
  CHECK(base < other);
  CHECK(std::hash<Tag>{}(base) != std::hash<Tag>{}(other));
}

TEST_CASE("the tags of a step spread over a hash table", "[futures][transport]") {
  std::unordered_set<std::size_t> buckets;
  constexpr int kEdges = 16;
  constexpr int kMicrobatches = 16;
  for (int edge = 0; edge < kEdges; ++edge) {
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      const Tag tag{.epoch = Epoch{0},
                    .submission = Submission{1},
                    .edge = EdgeId{edge},
                    .microbatch = Microbatch{microbatch}};
      buckets.insert(std::hash<Tag>{}(tag) % 541);
    }
  }
  // 256 tags placed at random into 541 buckets occupy about 204 of them.
  CHECK(buckets.size() > 170);
}

}  // namespace
}  // namespace stagecraft
