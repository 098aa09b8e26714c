#include "stagecraft/actors/launch/worker/worker_host.h"

#include <chrono>
#include <memory>
#include <string>

#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

/// A driver that answers as the test says, and the worker process that joins it.
struct JoinScene {
  explicit JoinScene(std::function<Joined(int times)> answers,
                     const Welcome& welcome = same_build())
      : admission(host.system().spawn(
            [=, this](AdmissionActor::pointer self) -> AdmissionActor::behavior_type {
              const auto times = std::make_shared<int>(0);
              return {[=](const Hello&) { return welcome; },
                      [=, this](const Join&) {
                        worker = caf::actor_cast<WorkerHostActor>(self->current_sender());
                        return answers(++*times);
                      },
                      [](const PeerCut&) {}};
            })),
        joined(join_cluster(process,
                            admission,
                            {.place = 1},
                            Clock::current()->now() + limit,
                            "the driver has not admitted this worker")) {}
  ~JoinScene() { end_driver(); }
  JoinScene(const JoinScene&) = delete;
  JoinScene& operator=(const JoinScene&) = delete;

  static Welcome same_build() { return {.fingerprint = build_fingerprint(), .refusal = {}}; }
  void end_driver() const { caf::anon_send_exit(admission, caf::exit_reason::user_shutdown); }
  [[nodiscard]] std::string failure() const {
    REQUIRE(joined.wait_until(patience()));
    try {
      (void)joined.get();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  static constexpr std::chrono::milliseconds limit{900};
  ActorHost& host = ActorHost::of_this_process();
  const std::shared_ptr<ServedProcess> process =
      std::make_shared<ServedProcess>(ServedProcess{.host = host,
                                                    .port = nullptr,
                                                    .types = nullptr,
                                                    .values = nullptr,
                                                    .start_rank = nullptr,
                                                    .ended = {}});
  WorkerHostActor worker =
      host.system().spawn([](WorkerHostActor::pointer) -> WorkerHostActor::behavior_type {
        return {[](const OpenNetwork&) { return NetworkOpened{}; },
                [](const StartRank&) { return RankStarted{}; },
                [](const StartActors&) { return ActorsStarted{}; },
                [](const CloseNetwork&) {},
                [](const AreYouThere&) { return Here{}; }};
      });
  const AdmissionActor admission;
  const Future<std::monostate> joined;
};

TEST_CASE("a worker that has no place yet asks again until it has one (PC-1)", "[actors][launch]") {
  JoinScene scene([](int times) { return Joined{.error = {}, .later = times < 3}; });
  CHECK(scene.failure().empty());
  CHECK_FALSE(scene.process->ended.future().ready());
  caf::anon_send_exit(scene.worker, caf::exit_reason::kill);  // as its driver does
  REQUIRE(scene.process->ended.future().wait_until(patience()));
  CHECK(scene.process->ended.future().get() == kReplaced);
}

TEST_CASE("a worker that gets no place in time says what it waited for", "[actors][launch]") {
  const JoinScene scene([](int) { return Joined{.error = {}, .later = true}; });
  CHECK_THAT(scene.failure(),
             ContainsSubstring("the driver has not admitted this worker: it has the worker of this "
                               "certificate, or needs none with its number"));
}

TEST_CASE("a worker that the driver refuses says why", "[actors][launch][refusals]") {
  const JoinScene refused([](int) {
    return Joined{.error = to_chain(Error(Errc::ClusterMember, "nobody waits for it"))};
  });
  CHECK_THAT(refused.failure(), ContainsSubstring("nobody waits for it"));
  const JoinScene other([](int) { return Joined{}; }, {.fingerprint = "another", .refusal = {}});
  CHECK_THAT(
      other.failure(),
      ContainsSubstring("the driver does not admit this worker: ") && ContainsSubstring("another"));
}

TEST_CASE("WP-1: a worker whose driver ends learns that the connection is lost",
          "[actors][launch]") {
  const JoinScene scene([](int) { return Joined{}; });
  CHECK(scene.failure().empty());
  scene.end_driver();
  REQUIRE(scene.process->ended.future().wait_until(patience()));
  CHECK(scene.process->ended.future().get() == kConnectionLost);
}

}  // namespace
}  // namespace stagecraft
