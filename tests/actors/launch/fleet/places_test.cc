#include "stagecraft/actors/launch/fleet/places.h"

#include <future>

#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/actors/launch/ways/here.h"
#include "stagecraft/actors/launch/ways/joining.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/actors/launch/fleet/answering_host.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using testing::answering_host;

/// The places of a fleet whose workers are started here, or come by themselves. The test starts
/// them, and advances the clock.
struct PlacesScene {
  explicit PlacesScene(int count, bool workers_come = false)
      : options{.program = "/proc/self/exe", .workers_come = workers_come},
        way(workers_come ? workers_that_join(options) : workers_here(options)),
        places(
            options, way, clock, [this] { ++reminders; }, [](auto) { return 0ms; }) {
    for (const PlaceTurn& turn : places.grow_to(count)) {
      places.call(turn.place);
    }
  }
  ~PlacesScene() {
    for (const WorkerHostActor& host : hosts) {
      caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
    }
  }
  PlacesScene(const PlacesScene&) = delete;
  PlacesScene& operator=(const PlacesScene&) = delete;

  /// Starts a process for every place whose turn it is.
  void start_all() {
    for (const PlaceTurn& turn : places.take_turns()) {
      places.keep(
          turn,
          std::make_unique<ChildProcess>(
              ChildProgram{.path = "sleep", .arguments = {"1000"}, .input = {}, .on_line = {}},
              [](const std::string&) {}));
    }
  }
  WorkerHostActor join(int place, const std::string& key = "") {
    hosts.push_back(answering_host());
    const Join join{.place = place, .port = {.endpoint = "tcp://here", .key = key}, .process = 7};
    REQUIRE(places.join(join, hosts.back(), worker_name(place)));
    return hosts.back();
  }
  [[nodiscard]] Future<std::string> cause(int place) const {
    return places.cause_of_end({place, places.incarnation(place)});
  }

  const SpawnOptions options;
  const std::shared_ptr<const WorkerWay> way;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  int reminders = 0;
  Places places;
  std::vector<WorkerHostActor> hosts;
};

TEST_CASE("a place that is wanted is started once, whoever asks (FL-4)", "[actors][launch]") {
  PlacesScene scene(2);
  CHECK(scene.places.grow_to(2).empty());  // both are wanted
  const std::vector<PlaceTurn> turns = scene.places.take_turns();
  REQUIRE(turns.size() == 2);
  CHECK(scene.places.take_turns().empty());
  scene.places.take_back(turns[1]);  // it could not be started
  REQUIRE(scene.places.take_turns().size() == 1);
}

TEST_CASE("those who wait learn of every change, and of nothing else", "[actors][launch]") {
  PlacesScene scene(2);
  scene.start_all();
  const MissingWorkers before = scene.places.missing_of({0, 1});
  CHECK((before.places == std::vector{0, 1}));
  CHECK(before.awaited == 2);
  auto woken = std::async(std::launch::async, [&] {
    scene.places.wait_for_change(before, scene.clock->now() + 1h);
    return scene.places.missing_of({0, 1}).places;
  });
  REQUIRE(eventually([&] { return scene.clock->waits() == 1; }));
  scene.join(1);
  CHECK((woken.get() == std::vector{0}));
  const MissingWorkers after = scene.places.missing_of({0, 1});
  auto late = std::async(std::launch::async,
                         [&] { scene.places.wait_for_change(after, scene.clock->now() + 1h); });
  REQUIRE(eventually([&] { return scene.clock->waits() == 1; }));
  scene.clock->advance(1h);
  late.get();
}

TEST_CASE("a worker that ends before it has joined is told with how it ended", "[actors][launch]") {
  PlacesScene scene(1);
  scene.start_all();
  scene.places.refused("it is another build");
  scene.places.process_ended({0, 0}, "ended with exit status 3");
  const MissingWorkers missing = scene.places.missing_of({0});
  CHECK_THAT(missing.failure,
             ContainsSubstring("process ") && ContainsSubstring("ended with exit status 3"));
  CHECK(missing.refusal == "it is another build");
}

TEST_CASE("a worker of this fleet has to be one that is waited for", "[actors][launch][refusals]") {
  PlacesScene scene(2);
  const WorkerHostActor host = answering_host();
  for (const Join& join : {Join{.place = 2}, Join{.place = 0, .incarnation = 1}}) {
    const std::string worker = worker_name(join.place);
    CHECK_THROWS_WITH((void)scene.places.join(join, host, worker),
                      ContainsSubstring("nobody waits for " + worker + " in place"));
  }
  scene.join(0);
  CHECK_THROWS_AS((void)scene.places.join(Join{.place = 0}, host, "worker-0"), Error);
  CHECK_THROWS_AS((void)scene.places.join(Join{.place = -1}, host, "node-b"), Error);
  CHECK(scene.places.join(Join{.place = -1}, host, "worker-1") == 1);
  CHECK_THROWS_AS((void)scene.places.join(Join{.place = -1}, host, "worker-1"), Error);
  caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
}

TEST_CASE("the certificate of one worker does not take the place of another (PC-1)",
          "[actors][launch][refusals]") {
  const bool workers_come = GENERATE(false, true);
  CAPTURE(workers_come);
  PlacesScene scene(2, workers_come);
  const WorkerHostActor host = answering_host();
  CHECK_THROWS_WITH((void)scene.places.join(Join{.place = 1}, host, "worker-0"),
                    ContainsSubstring("the certificate of this process is that of worker-0") &&
                        ContainsSubstring("with the credentials of worker-1"));
  CHECK_THAT(scene.places.missing_of({1}).refusal,
             ContainsSubstring("the certificate of worker-0 asked for the place of worker-1"));
  scene.join(0);
  scene.join(1);  // nobody was disturbed
  caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
}

TEST_CASE("a worker that comes by itself takes the place of its number, or asks again (PC-1)",
          "[actors][launch]") {
  PlacesScene scene(2, /*workers_come=*/true);
  CHECK(scene.places.take_turns().empty());  // nothing is started
  const WorkerHostActor host = answering_host();
  const auto come = [&](const std::string& worker, int place = -1) {
    return scene.places.join(Join{.place = place}, host, worker);
  };
  CHECK(come("worker-1") == 1);
  CHECK_FALSE(come("worker-1"));
  CHECK(scene.places.is_taken(Join{.place = -1}, "worker-1"));
  CHECK_FALSE(scene.places.is_taken(Join{.place = -1}, "worker-0"));  // nobody has it
  CHECK_FALSE(scene.places.is_taken(Join{.place = -1}, "worker-2"));
  CHECK_FALSE(come("worker-2"));  // it has no place here, and nobody was lost
  CHECK_FALSE(come("worker-2", 2));
  CHECK_FALSE(come("node-b"));
  CHECK(come("worker-0") == 0);
  for (const char* const successor : {"worker-1", "worker-2", "node-b"}) {
    CAPTURE(successor);
    (void)scene.places.vacate(1);
    CHECK_FALSE(come(successor));  // empty is not awaited
    scene.places.call(1);
    CHECK_FALSE(come("worker-0"));
    CHECK_FALSE(come("node-b", 0));
    CHECK(come(successor) == 1);
  }
  caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
}

TEST_CASE("the cause of a killed process is told when its end is known (PC-2)",
          "[actors][launch]") {
  PlacesScene scene(1);
  scene.start_all();
  const WorkerHostActor host = scene.join(0);
  const Future<std::string> cause = scene.cause(0);
  REQUIRE(scene.places.member(0));
  scene.places.disconnected(host.address());
  CHECK(scene.reminders == 1);
  CHECK_FALSE(scene.places.member(0));
  CHECK_FALSE(cause.ready());
  scene.places.process_ended({0, 0}, "was killed by signal 9 (Killed)");
  REQUIRE(cause.ready());
  CHECK_THAT(cause.get(), ContainsSubstring("was killed by signal 9 (Killed)"));
}

TEST_CASE("a process that stays is told to be silent after a moment (PC-2)", "[actors][launch]") {
  PlacesScene scene(1);
  scene.start_all();
  const WorkerHostActor host = scene.join(0);
  const Future<std::string> cause = scene.cause(0);
  scene.places.disconnected(host.address());
  scene.clock->advance(kMoment - 1ms);
  scene.places.look();
  CHECK_FALSE(cause.ready());
  scene.clock->advance(1ms);
  scene.places.look();
  REQUIRE(cause.ready());
  CHECK_THAT(cause.get(), ContainsSubstring("still runs and has been silent for 5000 ms"));
}

TEST_CASE("a worker that came by itself is told to be silent at once (PC-2)", "[actors][launch]") {
  PlacesScene scene(1, /*workers_come=*/true);
  const WorkerHostActor host = scene.join(0);
  const Future<std::string> cause = scene.cause(0);
  scene.places.disconnected(host.address());
  REQUIRE(cause.ready());
  CHECK_THAT(cause.get(), ContainsSubstring("process 7 is out of reach"));
  CHECK(scene.reminders == 0);
}

TEST_CASE("who asks for a cause with the lock of another in hand is not held up",
          "[actors][launch]") {
  PlacesScene scene(1, /*workers_come=*/true);
  const WorkerHostActor host = scene.join(0);
  std::string heard;
  const Future<std::string> cause = scene.cause(0);
  cause.on_ready([&] { heard = scene.places.name_of(0) + " " + cause.get(); });  // asks again
  scene.places.disconnected(host.address());
  CHECK_THAT(heard, ContainsSubstring("process 7") && ContainsSubstring("out of reach"));
}

TEST_CASE("another worker in the place ends the wait for a cause, and hears nothing of the first",
          "[actors][launch]") {
  PlacesScene scene(1);
  scene.start_all();
  const WorkerHostActor first = scene.join(0, "first");
  const Future<std::string> cause = scene.cause(0);
  const auto old = scene.places.vacate(0);
  REQUIRE(old);
  CHECK(old->port.key == "first");
  REQUIRE(cause.ready());
  CHECK(cause.get().empty());
  CHECK(scene.places.cause_of_end({0, 0}).get().empty());
  CHECK_FALSE(scene.places.who(0).lost);  // there is none
  scene.places.call(0);
  scene.start_all();
  scene.join(0, "second");
  CHECK(scene.places.who(0).incarnation == 1);
  CHECK_FALSE(scene.places.who(0).lost);
  scene.places.process_ended({0, 0}, "was killed");  // of the first
  scene.places.disconnected(first.address());
  scene.places.condemn({0, 0}, {0, 0}, "it loses tensors");
  CHECK(scene.places.member(0)->port.key == "second");
  CHECK_FALSE(scene.cause(0).ready());
}

TEST_CASE("a worker that has ended or cannot be reached is lost until another has its place",
          "[actors][launch]") {
  PlacesScene scene(3);
  CHECK_FALSE(scene.places.who(0).lost);
  scene.start_all();
  const WorkerHostActor silent = scene.join(0, "silent");
  scene.join(1, "killed");
  CHECK_FALSE(scene.places.who(0).lost);
  scene.places.disconnected(silent.address());
  CHECK(scene.places.who(0).lost);
  scene.places.process_ended({1, 0}, "was killed by signal 9 (Killed)");
  CHECK(scene.places.who(1).lost);
  scene.places.process_ended({2, 0}, "ended with exit status 1");  // before it had joined
  CHECK(scene.places.who(2).lost);
  (void)scene.places.vacate(1);
  CHECK_FALSE(scene.places.who(1).lost);
}

TEST_CASE("of two workers that a cut way joins one is ended", "[actors][launch]") {
  PlacesScene scene(2, /*workers_come=*/true);
  scene.join(0, "a");
  scene.join(1, "b");
  CHECK(scene.places.member_with("b")->place == 1);
  CHECK_FALSE(scene.places.member_with("c"));
  scene.places.condemn({0, 0}, {1, 0}, "its tensors do not reach process 7");
  scene.places.condemn({1, 0}, {0, 0}, "its tensors do not reach process 7");
  REQUIRE(scene.cause(0).ready());
  CHECK_THAT(scene.cause(0).get(),
             ContainsSubstring("was ended by the driver: its tensors do not reach process 7"));
  CHECK_FALSE(scene.cause(1).ready());
  CHECK(scene.places.member(1));
}

TEST_CASE("all workers are ended if the port of the driver has failed (CUT-3)",
          "[actors][launch]") {
  PlacesScene scene(3, /*workers_come=*/true);
  scene.join(0, "a");
  scene.join(1, "b");
  CHECK(scene.places.loss_of_port().empty());
  const MissingWorkers before = scene.places.missing_of({0, 1, 2});
  scene.places.lose_port("the data port tcp://here failed: no memory");
  for (const int place : {0, 1}) {
    REQUIRE(scene.cause(place).ready());
    CHECK_THAT(scene.cause(place).get(),
               ContainsSubstring("was ended by the driver: the data port tcp://here failed"));
  }
  CHECK_FALSE(scene.cause(2).ready());  // nobody has joined, so whoever waits for it is woken
  CHECK(scene.places.missing_of({2}).version != before.version);
  CHECK(scene.places.loss_of_port() == "the data port tcp://here failed: no memory");
}

TEST_CASE("a place that no trainer has needed cannot be vacated", "[actors][launch][refusals]") {
  PlacesScene scene(1);
  for (const int place : {-1, 1}) {
    CHECK(thrown_by([&] { (void)scene.places.vacate(place); }) == Errc::UsageArgument);
  }
  CHECK(scene.places.who(1).process == 0);
}

}  // namespace
}  // namespace stagecraft
