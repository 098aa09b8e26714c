#include "stagecraft/scheduler/model/hash.h"

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("fnv1a gives the published value of one letter", "[scheduler][hash]") {
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cU);
  CHECK(fnv1a("") == 0xcbf29ce484222325U);
}

TEST_CASE("an array and its list have one hash, another order has another", "[scheduler][hash]") {
  const Schedule array = one_f_one_b(2, 2);
  CHECK(schedule_hash(array) == 0x8ade1f423c7c3cb1U);
  CHECK(schedule_hash(array.to_list()) == 0x8ade1f423c7c3cb1U);
  CHECK(schedule_hash(Schedule::parse("0F1 0F0 0B0 0B1\n1F0 1B0 1F1 1B1")) != 0x8ade1f423c7c3cb1U);
}

}  // namespace
}  // namespace stagecraft
