#include "stagecraft/actors/launch/fleet/place_text.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("workers that do not come are asked for where they were to come from",
          "[actors][launch]") {
  const auto advice = [](const SpawnOptions& options) {
    return late_text(options, "1 of 2 workers; missing rank 1", "10.0.0.1", 7077);
  };
  CHECK_THAT(advice({}), ContainsSubstring("worker_main"));
  CHECK_THAT(advice({.workers_come = true}),
             ContainsSubstring("start them with stagecraft worker --join 10.0.0.1:7077"));
  // In a Slurm step, `stagecraft launch` does not start the workers; the step starts them.
  CHECK_THAT(
      advice(
          {.workers_come = true, .workers_coming = 1, .meeting_place = "/home/me/stagecraft-7.0"}),
      ContainsSubstring("other processes of this step") &&
          ContainsSubstring("'/home/me/stagecraft-7.0'") && ContainsSubstring("--join-seconds") &&
          !ContainsSubstring("stagecraft worker --join"));
}

TEST_CASE("a driver that stood still itself says so of a worker that seemed silent",
          "[actors][launch]") {
  const SpawnOptions here, elsewhere{.workers_come = true};
  const std::chrono::milliseconds none(0), long_one(9000);
  CHECK(silence_text(here, "process 7", none) ==
        "process 7 is there and has been silent for 5000 ms");
  CHECK_THAT(silence_text(elsewhere, "process 7 on b", none),
             ContainsSubstring("it has ended or is stopped, or its host or the way there is down"));
  for (const SpawnOptions& options : {here, elsewhere}) {
    CHECK_THAT(silence_text(options, "process 7", long_one),
               ContainsSubstring("this process itself stood still for 9.0 s") &&
                   ContainsSubstring("--silence-seconds") && !ContainsSubstring("way there"));
  }
}

}  // namespace
}  // namespace stagecraft
