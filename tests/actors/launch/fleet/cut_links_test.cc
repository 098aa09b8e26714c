#include "stagecraft/actors/launch/fleet/cut_links.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

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

/// Two workers that have joined, with the keys "key 0" and "key 1".
struct CutScene {
  CutScene() {
    for (const PlaceTurn& turn : places->grow_to(2)) {
      places->call(turn.place);
    }
    for (int place = 0; place < 2; ++place) {
      hosts.push_back(answering_host());
      const Join join{.place = place,
                      .port = {.endpoint = "tcp://here", .key = "key " + std::to_string(place)},
                      .process = 40 + place};
      REQUIRE(places->join(join, hosts.back(), worker_name(place)));
    }
  }
  ~CutScene() {
    for (const WorkerHostActor& host : hosts) {
      caf::anon_send_exit(host, caf::exit_reason::user_shutdown);
    }
  }
  CutScene(const CutScene&) = delete;
  CutScene& operator=(const CutScene&) = delete;

  [[nodiscard]] Future<std::string> cause(int place) const {
    return places->cause_of_end({place, places->incarnation(place)});
  }
  [[nodiscard]] std::string cause_text(int place) const {
    REQUIRE(cause(place).wait_until(patience()));
    return cause(place).get();
  }

  const SpawnOptions options{.program = "/proc/self/exe", .workers_come = true};
  std::shared_ptr<Places> places = std::make_shared<Places>(
      options,
      workers_that_join(options),
      std::make_shared<ManualClock>(),
      [] {},
      [](auto) { return 0ms; });
  CutLinks links{ActorHost::of_this_process(), places, 60s};
  std::vector<WorkerHostActor> hosts;
};

const Error kLost(Errc::TransportClosed, "the peer is gone");

TEST_CASE("CUT-1: a worker that loses a tensor on its way here is ended by name",
          "[actors][launch]") {
  const CutScene scene;
  scene.links.broke("key 1", kLost);
  CHECK_THAT(scene.cause_text(1),
             ContainsSubstring("process 41") && ContainsSubstring("the peer is gone"));
  CHECK_FALSE(scene.cause(0).ready());
}

TEST_CASE("CUT-2: a worker that the driver's tensors do not reach is ended if it is there",
          "[actors][launch]") {
  const CutScene scene;
  scene.links.cut_from_here("key 0", kLost);
  CHECK_THAT(scene.cause_text(0),
             ContainsSubstring("the driver's tensors do not reach it: ") &&
                 ContainsSubstring("the peer is gone"));
  CHECK_FALSE(scene.cause(1).ready());
}

TEST_CASE("CUT-2: a worker whose tensors do not reach the driver is ended", "[actors][launch]") {
  const CutScene scene;
  scene.links.cut_to_here(scene.places->member(0)->host.node(), kLost);
  // Both hosts are in this process, so the node is that of the first.
  CHECK_THAT(scene.cause_text(0), ContainsSubstring("its tensors do not reach the driver: "));
}

TEST_CASE("CUT-2: a worker whose tensors do not reach one that is there is ended",
          "[actors][launch]") {
  const CutScene scene;
  scene.links.cut_between(scene.hosts[0].node(), "key 1", kLost);
  CHECK_THAT(scene.cause_text(0),
             ContainsSubstring("its tensors do not reach process 41") &&
                 ContainsSubstring("the peer is gone"));
  CHECK_FALSE(scene.cause(1).ready());
}

TEST_CASE("reports about processes that are no workers, or after the fleet's end, do nothing",
          "[actors][launch][bad-input]") {
  CutScene scene;
  const caf::node_id stranger = caf::make_node_id(7, std::string(40, '7')).value();
  scene.links.broke("a stranger's key", kLost);
  scene.links.cut_from_here("a stranger's key", kLost);
  scene.links.cut_to_here(stranger, kLost);
  scene.links.cut_between(stranger, "key 1", kLost);
  scene.links.cut_between(scene.hosts[0].node(), "a stranger's key", kLost);
  CHECK_FALSE(scene.cause(0).ready());
  CHECK_FALSE(scene.cause(1).ready());
  scene.places.reset();
  CHECK_NOTHROW(scene.links.broke("key 1", kLost));
  CHECK_NOTHROW(scene.links.cut_from_here("key 1", kLost));
}

}  // namespace
}  // namespace stagecraft
