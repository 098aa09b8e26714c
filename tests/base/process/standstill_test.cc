#include "stagecraft/base/process/standstill.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a gap of seconds between two looks is a standstill", "[base][standstill]") {
  const Standstills::Time begin{};
  Standstills known(begin);
  CHECK(known.look(begin + milliseconds(200)) == milliseconds(0));
  CHECK(known.look(begin + milliseconds(900)) == milliseconds(0));  // a busy machine
  CHECK(known.longest(begin + seconds(1), seconds(5)) == milliseconds(0));
  CHECK(known.look(begin + milliseconds(9900)) == milliseconds(9000));
  CHECK(known.look(begin + milliseconds(11900)) == milliseconds(2000));
  CHECK(known.longest(begin + seconds(12), seconds(5)) == milliseconds(9000));
  CHECK(known.longest(begin + seconds(12), seconds(1)) == milliseconds(2000));
  CHECK(known.look(begin + milliseconds(12100)) == milliseconds(0));
  CHECK(known.longest(begin + milliseconds(12200), milliseconds(100)) == milliseconds(0));
}

TEST_CASE("a question before the next look includes the standstill that has just ended",
          "[base][standstill]") {
  const Standstills::Time begin{};
  const Standstills known(begin);
  CHECK(known.longest(begin + seconds(7), seconds(5)) == seconds(7));
}

}  // namespace
}  // namespace stagecraft
