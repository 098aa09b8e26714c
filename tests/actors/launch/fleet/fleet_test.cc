/// Tests a fleet with the test's clock. Its workers are scripts that never join, or come by
/// themselves as calls of the test.
#include "stagecraft/actors/launch/fleet/fleet.h"

#include <csignal>
#include <filesystem>
#include <future>
#include <mutex>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

struct FleetScene {
  explicit FleetScene(SpawnOptions options) {
    options.tell = [this](const std::string& line) {
      const std::scoped_lock lock(mutex);
      told.push_back(line);
    };
    fleet = std::make_unique<Fleet>(options, clock);
  }

  /// Requires places on another thread, and returns when it waits.
  std::future<void> require(int places) {
    auto required = std::async(std::launch::async, [this, places] { fleet->require(places); });
    REQUIRE(eventually([&] { return clock->waits() == 1; }));
    return required;
  }

  /// Returns the lines for people, without the first two, which have a port.
  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex);
    return {told.begin() + 2, told.end()};
  }

  std::optional<int> join(int place) {
    const WorkerHostActor host = fleet->host().system().spawn(
        [](WorkerHostActor::pointer) -> WorkerHostActor::behavior_type {
          return {[](const OpenNetwork&) { return NetworkOpened{}; },
                  [](const StartRank&) { return RankStarted{}; },
                  [](const StartActors&) { return ActorsStarted{}; },
                  [](const CloseNetwork&) {},
                  [](const AreYouThere&) { return Here{}; }};
        });
    return fleet->places().join(
        Join{.place = place, .process = 7, .host = "node-b"}, host, worker_name(place));
  }

  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::mutex mutex;  // lines come from threads that wait
  std::vector<std::string> told;
  std::unique_ptr<Fleet> fleet;
};

std::string failure(std::future<void>& work) {
  try {
    work.get();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a fleet that waits for workers says who is missing, and gives up at its deadline",
          "[actors][launch]") {
  FleetScene scene({.workers_come = true, .join_deadline = 20s});
  auto required = scene.require(2);
  CHECK(scene.lines().empty());
  const std::string both = "0 of 2 workers; missing rank 0, rank 1";
  const std::string one = "1 of 2 workers; missing rank 1";
  const auto told = [&](const std::vector<std::string>& expected) {
    return eventually([&] { return scene.lines() == expected && scene.clock->waits() == 1; });
  };
  scene.clock->advance(1s);
  CHECK(told({both}));
  scene.clock->advance(5s - 1ms);
  CHECK(told({both}));
  scene.clock->advance(1ms);
  CHECK(told({both, both}));
  CHECK(scene.join(0) == 0);
  CHECK(told({both, both, one}));  // people see each one come
  scene.clock->advance(14s - 1ms);
  CHECK(told({both, both, one, one}));
  CHECK(required.wait_for(0s) == std::future_status::timeout);
  scene.clock->advance(1ms);
  CHECK_THAT(failure(required),
             ContainsSubstring("not all workers have joined within 20000 ms: " + one +
                               "; start them, each with a folder of its own, with stagecraft "
                               "worker --join 127.0.0.1:") &&
                 ContainsSubstring("/worker-1, on this host alone"));
}

TEST_CASE("a fleet whose workers join says the command that starts one", "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string cluster = folder.path() + "/cluster";
  make_credentials(cluster, {.members = 2, .durable = false});
  FleetScene scene({.credentials = cluster, .workers_come = true});
  auto required = scene.require(1);
  {
    const std::scoped_lock lock(scene.mutex);
    REQUIRE(scene.told.size() == 2);
    const std::string& joins = scene.told.front();
    const std::string address = joins.substr(16, joins.find(';') - 16);  // "workers join at "
    CHECK_THAT(scene.told[1],
               ContainsSubstring("stagecraft worker --join " + address + " --credentials " +
                                 cluster + "/worker-0,"));
  }
  CHECK(scene.join(0) == 0);
  required.get();
}

TEST_CASE("a fleet whose workers have all joined waits no more, and names each",
          "[actors][launch]") {
  FleetScene scene({.workers_come = true});
  auto required = scene.require(1);
  CHECK(scene.join(0) == 0);
  required.get();
  CHECK(scene.fleet->member(0).process == 7);
  CHECK(scene.fleet->name_of(0) == "worker process 7 on node-b");
  CHECK(scene.fleet->who(0).host == "node-b");
}

TEST_CASE("a worker program that ends at once is told with its exit status", "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string program = folder.write("worker", "#!/bin/sh\nexit 3\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  FleetScene scene({.program = program});
  CHECK_THROWS_WITH(scene.fleet->require(1),
                    ContainsSubstring("worker process ") &&
                        ContainsSubstring("ended with exit status 3 before it had joined; it has "
                                          "said why on standard error"));
}

TEST_CASE("a lost worker is told with the cause that its fleet learns, or without after its limit",
          "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string program = folder.write("worker", "#!/bin/sh\nexec sleep 1000\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  FleetScene scene({.program = program});
  auto required = scene.require(1);
  CHECK(scene.join(0) == 0);
  required.get();
  const FleetMember member = scene.fleet->member(0);
  scene.fleet->places().disconnected(member.host.address());
  auto told = std::async(std::launch::async, [&] { (void)scene.fleet->member(0); });
  REQUIRE(eventually([&] { return scene.clock->waits() == 1; }));
  SECTION("its process is killed") {
    kill(static_cast<pid_t>(scene.fleet->who(0).process), SIGKILL);
    CHECK_THAT(failure(told),
               ContainsSubstring("worker-0 of this cluster is lost, as process ") &&
                   ContainsSubstring("was killed by signal 9 (Killed)") &&
                   ContainsSubstring("cluster.replace"));
  }
  SECTION("its process stays") {
    scene.clock->advance(kMoment);
    scene.fleet->places().look();
    CHECK_THAT(failure(told), ContainsSubstring("has been silent for 5000 ms"));
  }
  SECTION("nobody looks") {
    scene.clock->advance(kCauseLimit);
    CHECK_THAT(failure(told), ContainsSubstring("worker-0 of this cluster is lost; to continue: "));
  }
}

TEST_CASE("the file of a rank says where it ran and how it ended", "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string program = folder.write("worker", "#!/bin/sh\necho hello\nexec sleep 1000\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string file = folder.path() + "/logs/rank-0.log";
  const auto log = [&] { return tests::read_text_file(file); };
  FleetScene scene({.program = program, .log_dir = folder.path() + "/logs"});
  auto required = scene.require(1);
  CHECK(scene.join(0) == 0);
  required.get();
  REQUIRE(eventually([&] { return log().find("hello\n") != std::string::npos; }));
  SECTION("with its cluster") {
    scene.fleet.reset();
    CHECK_THAT(log(), ContainsSubstring(" UTC driver: rank 0 ends with its cluster\n"));
    CHECK_THAT(log(), !ContainsSubstring("killed"));
  }
  SECTION("by itself") {
    kill(static_cast<pid_t>(scene.fleet->who(0).process), SIGKILL);
    REQUIRE(eventually([&] {
      return log().find("driver: rank 0 was killed by signal 9 (Killed)\n") != std::string::npos;
    }));
    scene.fleet.reset();
    CHECK_THAT(log(), !ContainsSubstring("ends with its cluster"));
  }
}

TEST_CASE("ranks behind an empty place have their last line, and their folder is made",
          "[actors][launch]") {
  const tests::TemporaryFolder folder;
  const std::string logs = folder.path() + "/logs";
  FleetScene scene({.workers_come = true, .log_dir = logs});
  auto required = scene.require(2);
  CHECK(scene.join(0) == 0);
  CHECK(scene.join(1) == 1);
  required.get();
  CHECK(scene.fleet->places().vacate(0));
  CHECK(scene.fleet->who(0).process == 0);
  scene.fleet.reset();
  CHECK_THAT(tests::read_text_file(logs + "/rank-1.log"),
             ContainsSubstring(" UTC driver: rank 1 ends with its cluster\n"));
  CHECK_FALSE(std::filesystem::exists(logs + "/rank-0.log"));
}

TEST_CASE("another worker takes a place, with the next incarnation", "[actors][launch]") {
  FleetScene scene({.workers_come = true});
  auto required = scene.require(1);
  CHECK(scene.join(0) == 0);
  required.get();
  auto replaced = std::async(std::launch::async, [&] { scene.fleet->replace(0); });
  REQUIRE(eventually([&] { return scene.clock->waits() == 1; }));
  CHECK(scene.fleet->who(0).process == 0);
  CHECK(scene.join(0) == 0);
  replaced.get();
  CHECK(scene.fleet->member(0).incarnation == 1);
  CHECK(thrown_by([&] { scene.fleet->replace(1); }) == Errc::UsageArgument);
}

TEST_CASE("a fleet asks for no more workers than its way has", "[actors][launch][refusals]") {
  FleetScene scene({.workers_come = true, .workers_coming = 1});
  CHECK_THROWS_WITH(scene.fleet->require(2),
                    ContainsSubstring("2 worker processes are needed, and 1 come"));
}

}  // namespace
}  // namespace stagecraft
