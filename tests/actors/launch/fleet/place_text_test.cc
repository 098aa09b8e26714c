#include "stagecraft/actors/launch/fleet/place_text.h"

#include "stagecraft/actors/launch/ways/here.h"
#include "stagecraft/actors/launch/ways/joining.h"
#include "stagecraft/actors/launch/ways/ssh.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using std::chrono::milliseconds;

const SpawnOptions kHere{.program = "/proc/self/exe"};
const SpawnOptions kJoining{.workers_come = true};
const SpawnOptions kSsh{.program = "/proc/self/exe", .hosts = {{.name = "node-b"}, {.name = "c"}}};

/// Returns a place whose worker has joined and has ended so.
Place ended(const PlaceEnd& end) {
  Place place;
  place.call(true);
  place.join({.place = 0, .process = 7, .host_name = "node-b"});
  if (end.kind == PlaceEnd::Kind::Condemned) {
    (void)place.condemn(end.text);
  } else if (end.kind == PlaceEnd::Kind::Ended) {
    place.process_ended(end.text);
  } else {
    place.disconnected({});
  }
  return place;
}

TEST_CASE("a process is named by what is known of it", "[actors][launch]") {
  const auto here = workers_here(kHere), joining = workers_that_join(kJoining),
             ssh = workers_by_ssh(kSsh);
  const Place empty;
  const Place there = ended({});
  CHECK(PlaceText(kHere, *here).process(0, empty) == "of rank 0");
  CHECK(PlaceText(kHere, *here).process(0, there) == "process 7");
  CHECK(PlaceText(kJoining, *joining).process(0, empty) == "of rank 0");
  CHECK(PlaceText(kJoining, *joining).process(0, there) == "process 7 on node-b");
  CHECK(PlaceText(kSsh, *ssh).process(1, empty) == "of rank 1 on c");
  CHECK(PlaceText(kSsh, *ssh).missing(2, {1}) == "1 of 2 workers; missing rank 1 on c");
}

TEST_CASE("the cause of an end is a clause about its process", "[actors][launch]") {
  const auto way = workers_here(kHere);
  const PlaceText text(kHere, *way);
  const auto cause = [&](const PlaceEnd& end) {
    return text.cause(0, ended(end), milliseconds(0));
  };
  CHECK(cause({PlaceEnd::Kind::Condemned, "it loses tensors"}) ==
        "process 7 was ended by the driver: it loses tensors");
  CHECK(cause({PlaceEnd::Kind::Ended, "was killed by signal 9 (Killed)"}) ==
        "process 7 was killed by signal 9 (Killed)");
  CHECK(cause({PlaceEnd::Kind::Ended, "ended with exit status 4"}) ==
        "process 7 has ended, as the driver did not reach it for 5000 ms: is the way there down?");
  CHECK(cause({}) == "process 7 still runs and has been silent for 5000 ms");
}

TEST_CASE("workers that do not come are named with what helps", "[actors][launch]") {
  const auto way = workers_that_join(kJoining);
  CHECK(PlaceText(kJoining, *way)
            .late("1 of 2 workers; missing rank 1",
                  {.host = "10.0.0.1", .port = 7077, .credentials = "c/worker-1"}) ==
        "not all workers have joined within 60000 ms: 1 of 2 workers; missing rank 1; start them, "
        "each with a folder of its own, with stagecraft worker --join 10.0.0.1:7077 --credentials "
        "c/worker-1");
}

TEST_CASE("a driver that stood still itself says so of a worker that seemed silent",
          "[actors][launch]") {
  const auto here = workers_here(kHere), joining = workers_that_join(kJoining);
  const PlaceText of_here(kHere, *here), of_joining(kJoining, *joining);
  const Place silent = ended({});
  CHECK_THAT(of_joining.cause(0, silent, milliseconds(0)),
             ContainsSubstring("process 7 on node-b is out of reach after at most 5000 ms") &&
                 ContainsSubstring("it has ended or is stopped, or its host or the way there is "
                                   "down"));
  for (const PlaceText& text : {of_here, of_joining}) {
    CHECK_THAT(text.cause(0, silent, milliseconds(9000)),
               ContainsSubstring("this process itself stood still for 9.0 s") &&
                   ContainsSubstring("--silence-seconds") && !ContainsSubstring("way there"));
  }
}

}  // namespace
}  // namespace stagecraft
