/// Tests how the state of ranks comes and goes. The workers follow a script, and the clock is the
/// test's.
#include "stagecraft/actors/crew/state_transfer.h"

#include <future>

#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/actors/crew/played_workers.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

constexpr auto kStateDeadline = 1h;
constexpr PlanId kPlan{3};

/// The workers of three ranks, and the transfer of their states.
struct Scene {
  explicit Scene(std::map<int, Part> parts = {}, bool tells_late = false)
      : binding(std::make_shared<PlayedBinding>(host, 3, std::move(parts))) {
    binding->tells_late = tells_late;
    for (const Rank rank : workers.all_ranks()) {
      RankSetup setup;
      setup.train.rank.rank = rank;
      workers.launch(std::move(setup));
      const auto ready = workers.ask_rank<Ready>(rank, LoadPlan{.rank = rank, .plan = kPlan});
      REQUIRE(ready.answer.wait_until(patience()));
    }
  }
  ~Scene() {
    std::vector<caf::actor> all;
    for (const Worker& worker : workers.all()) {
      all.push_back(caf::actor_cast<caf::actor>(worker.agent));
      all.push_back(caf::actor_cast<caf::actor>(worker.plan_thread));
    }
    here->close(Error(Errc::ClusterClosed, "the test is over"));
    CHECK(host.end(all, kTestPatience) == 0);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  std::vector<SendState> sent(int rank) {
    const std::scoped_lock lock(binding->log->mutex);
    return binding->log->sent[rank];
  }
  std::vector<TakeState> taken(int rank) {
    const std::scoped_lock lock(binding->log->mutex);
    return binding->log->taken[rank];
  }

  ActorHost& host = ActorHost::of_this_process();
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  const std::shared_ptr<PlayedBinding> binding;
  const std::shared_ptr<Transport> here = binding->driver_end();
  CrewWorkers workers{host, binding, 3, kStateDeadline, clock};
  const std::shared_ptr<std::atomic<std::int64_t>> epoch =
      std::make_shared<std::atomic<std::int64_t>>(4);
  const StateTransfer transfer{kPlan, workers, here, std::make_shared<StepLedger>(), epoch};

  std::vector<std::vector<StateTensor>> read_all() const {
    return transfer.read(all_of(workers.all_ranks()));
  }
};

std::string no_facts() {
  return "";
}

TEST_CASE("a state is read by rank, in the order of each listing", "[actors][crew]") {
  Scene scene;
  const auto state = scene.read_all();
  REQUIRE(state.size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<StateTensor>& mine = state[Rank(rank).index()];
    REQUIRE(mine.size() == 2);
    CHECK(mine[0].name == "weight:w");
    CHECK(number_in(mine[0].tensor) == 10 * rank);
    CHECK(mine[1].name == "weight:v");
    CHECK(number_in(mine[1].tensor) == 10 * rank + 1);
  }
  CHECK(scene.transfer.list().size() == 3);
  CHECK_FALSE(scene.sent(0).back().tensors);  // a list needs none
  (void)scene.transfer.read_gradients();
  CHECK(scene.sent(2).back().gradients);
  CHECK(scene.sent(0)[0].request != scene.sent(0)[1].request);  // keeps DT-2
}

TEST_CASE("the states of some ranks are read, and no other rank is asked", "[actors][crew]") {
  Scene scene;
  const auto state = scene.transfer.read({{Rank(2), {1, 0}}, {Rank(0)}});
  REQUIRE(state.size() == 2);
  CHECK(number_in(state[0].at(0).tensor) == 20);
  CHECK(number_in(state[1].at(0).tensor) == 0);
  CHECK(scene.sent(1).empty());
  CHECK((scene.sent(2).at(0).only == std::vector<std::int32_t>{1, 0}));
  CHECK(scene.sent(0).at(0).only.empty());
}

TEST_CASE("a state is written by the names and tensors of each rank, one after another",
          "[actors][crew]") {
  Scene scene;
  const std::vector<std::vector<StateTensor>> state{
      {{"weight:w", number(5)}}, {}, {{"a", number(6)}, {"b", number(7)}}};
  const auto state_of = [&](Rank rank) {
    for (int each = 0; each < 3; ++each) {
      const auto written = static_cast<std::size_t>(Rank(each) < rank ? 2 : 1);
      CHECK(scene.taken(each).size() == (rank == Rank(0) ? 0 : written));
    }
    return state[rank.index()];
  };
  int forgotten = 0;
  const auto facts = [&] { return std::string(forgotten == 1 ? "facts" : "those of before"); };
  scene.transfer.write(state_of, 11, facts, [&] {
    ++forgotten;
    for (int each = 0; each < 3; ++each) {
      CHECK(scene.taken(each).size() == 1);
    }
  });
  CHECK(forgotten == 1);
  for (int each = 0; each < 3; ++each) {  // all knew it before the first got its state (LV-1)
    CHECK(scene.taken(each).at(0).announced);
  }
  CHECK((scene.taken(0).at(1).names == std::vector<std::string>{"weight:w"}));
  CHECK(scene.taken(1).at(1).names.empty());
  CHECK((scene.taken(2).at(1).names == std::vector<std::string>{"a", "b"}));
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(scene.taken(rank).at(1).updates == 11);
    CHECK(scene.taken(rank).at(1).facts == "facts");
    CHECK(scene.taken(rank).at(1).from == kDriver);
    CHECK(scene.taken(rank).at(1).request == scene.taken(0).at(0).request);
  }
}

TEST_CASE("a state that cannot be read leaves all ranks theirs", "[actors][crew][faults]") {
  Scene scene;
  const auto unreadable = [](Rank) -> std::vector<StateTensor> {
    throw Error(Errc::UsageFile, "the test cannot read it");
  };
  CHECK(thrown_error([&] {
          scene.transfer.write(unreadable, 11, no_facts, [] { FAIL("ranks keep theirs"); });
        }).code() == Errc::UsageFile);
  CHECK(scene.taken(0).empty());
}

TEST_CASE("a state that ranks have had is written without announcing another (LV-1)",
          "[actors][crew]") {
  Scene scene;
  scene.transfer.write([](Rank) { return std::vector<StateTensor>(); }, 11, no_facts);
  for (int rank = 0; rank < 3; ++rank) {
    REQUIRE(scene.taken(rank).size() == 1);
    CHECK_FALSE(scene.taken(rank).at(0).announced);
  }
}

TEST_CASE("a tensor that was announced and does not come ends the read at its deadline",
          "[actors][crew][faults]") {
  Scene scene({{2, Part::Forget}});
  auto read =
      std::async(std::launch::async, [&] { return thrown_error([&] { (void)scene.read_all(); }); });
  REQUIRE(eventually([&] { return scene.clock->waits() == 1; }));
  scene.clock->advance(kStateDeadline - 1ms);
  CHECK(read.wait_for(0s) == std::future_status::timeout);
  scene.clock->advance(1ms);
  const Error error = read.get();
  CHECK(error.code() == Errc::ClusterTimeout);
  CHECK(error.message() == "rank 2 has announced a tensor that has not arrived");
}

TEST_CASE("a read that fails leaves no tensors of the ranks that have sent theirs",
          "[actors][crew][faults]") {
  Scene scene({}, /*tells_late=*/true);
  caf::anon_send_exit(scene.workers.all()[1].plan_thread, caf::exit_reason::kill);
  scene.binding->tell_cause(Rank(1));
  CHECK(thrown_error([&] { (void)scene.read_all(); }).code() == Errc::WorkerLost);
  CHECK(scene.sent(0).size() == 1);
  CHECK(scene.sent(2).size() == 1);
  CHECK(scene.here->bytes_waiting() == 0);
}

TEST_CASE("a loss is told with its cause once that is known, and without after its limit (CR-3)",
          "[actors][crew][faults]") {
  Scene scene({{1, Part::Announce}}, /*tells_late=*/true);
  auto read =
      std::async(std::launch::async, [&] { return thrown_error([&] { (void)scene.read_all(); }); });
  const bool in_time = GENERATE(true, false);
  caf::scoped_actor self(scene.host.system());
  self->wait_for(scene.workers.all()[1].plan_thread);
  // The read waits for the tensor of rank 1 until it hears of the end, and then for its cause.
  if (in_time) {
    scene.binding->tell_cause(Rank(1));
  } else {
    REQUIRE(eventually([&] {
      scene.clock->advance(kCauseLimit);
      return read.wait_for(10ms) == std::future_status::ready;
    }));
  }
  const Error error = read.get();
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(1));
  CHECK(error.message() == (in_time ? "rank 1 is lost: process 4711 of rank 1 was killed"
                                    : "rank 1 is lost: its worker has ended"));
}

TEST_CASE("a lost rank gets its state from its keeper, and each other has its own (MI-1)",
          "[actors][crew][mirror]") {
  Scene scene;
  // No copy is sent here: the exchange ends with the epoch of its request.
  auto taken = std::async(std::launch::async, [&] {
    return thrown_error([&] {
      scene.transfer.take_mirrors({.updates = 3, .lost = {false, true, false}}, "facts");
    });
  });
  REQUIRE(eventually([&] {
    return scene.taken(0).size() == 1 && scene.taken(1).size() == 1 && scene.taken(2).size() == 1 &&
           scene.sent(2).size() == 1;
  }));
  CHECK(scene.sent(2)[0].copy_of == 3);
  CHECK(scene.sent(2)[0].to == Rank(1));
  CHECK(scene.sent(2)[0].epoch == Epoch(4));
  CHECK(scene.sent(0).empty());
  CHECK(scene.taken(1)[0].from == Rank(2));
  CHECK(scene.taken(0)[0].from == Rank(0));
  CHECK(scene.taken(0)[0].facts == "facts");
  CHECK(scene.taken(2)[0].from == Rank(2));
  const Error why(Errc::WorkerAborted, "the test ends the exchange");
  caf::anon_send(scene.workers.all()[1].agent,
                 Abort{.plan = kPlan, .epoch = Epoch(5), .reason = to_chain(why)});
  const Error ended = taken.get();
  CHECK(ended.code() == Errc::WorkerAborted);
  CHECK(ended.context().rank == Rank(1));
}

}  // namespace
}  // namespace stagecraft
