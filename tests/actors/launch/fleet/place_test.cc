#include "stagecraft/actors/launch/fleet/place.h"

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using State = PlaceState;

const Clock::Time kThen{1h};

std::unique_ptr<ChildProcess> sleeper() {
  return std::make_unique<ChildProcess>(
      ChildProgram{.path = "sleep", .arguments = {"1000"}, .input = {}, .on_line = {}},
      [](const std::string&) {});
}

/// One arrow of the drawing in place.h: what happens, and the state after it.
struct Event {
  std::string name;
  std::function<void(Place&)> happen;
  std::map<State, State> arrows;  ///< from each state that it changes
};

const std::vector<Event>& events() {
  static const std::vector<Event> all{
      {"call", [](Place& p) { p.call(false); }, {{State::Empty, State::Queued}}},
      {"call one that comes", [](Place& p) { p.call(true); }, {{State::Empty, State::Expected}}},
      {"start", [](Place& p) { p.start(); }, {{State::Queued, State::Started}}},
      {"take back", [](Place& p) { p.take_back(); }, {{State::Started, State::Queued}}},
      {"let in", [](Place& p) { p.let_in(); }, {{State::Started, State::LetIn}}},
      {"its process ends",
       [](Place& p) { p.process_ended("was killed"); },
       {{State::Started, State::Failed},
        {State::LetIn, State::Failed},
        {State::Joined, State::Gone},
        {State::Condemned, State::Gone},
        {State::Silent, State::Gone}}},
      {"condemn",
       [](Place& p) { (void)p.condemn("it loses tensors"); },
       {{State::Joined, State::Condemned}}},
      {"its connection ends",
       [](Place& p) { p.disconnected(kThen); },
       {{State::Joined, State::Silent}, {State::Condemned, State::Gone}}},
      {"a moment passes",
       [](Place& p) { p.look(kThen + kMoment); },
       {{State::Silent, State::Gone}}}};
  return all;
}

/// Brings a place with a child process into a state.
void bring_to(State state, Place& place) {
  if (state == State::Empty) {
    return;
  }
  place.call(state == State::Expected);
  if (state == State::Queued || state == State::Expected) {
    return;
  }
  place.start();
  CHECK(place.keep(sleeper(), place.incarnation()) == nullptr);
  if (state == State::Started) {
    return;
  }
  place.let_in();
  if (state == State::Failed) {
    place.process_ended("ended with exit status 1");
  }
  if (state == State::LetIn || state == State::Failed) {
    return;
  }
  place.join({.place = 3, .host_name = "node-b"});
  if (state == State::Condemned) {
    CHECK(place.condemn("it loses tensors"));
  } else if (state == State::Silent || state == State::Gone) {
    place.disconnected(kThen);
    place.look(state == State::Gone ? kThen + kMoment : kThen);
  }
}

constexpr State kStates[] = {State::Empty,
                             State::Queued,
                             State::Expected,
                             State::Started,
                             State::LetIn,
                             State::Failed,
                             State::Joined,
                             State::Condemned,
                             State::Silent,
                             State::Gone};

TEST_CASE("a place changes its state by the arrows of its drawing, and by nothing else (PS-1)",
          "[actors][launch]") {
  for (const State from : kStates) {
    for (const Event& event : events()) {
      Place place;
      bring_to(from, place);
      REQUIRE(place.state() == from);
      event.happen(place);
      const auto arrow = event.arrows.find(from);
      CAPTURE(event.name, static_cast<int>(from));
      CHECK(place.state() == (arrow == event.arrows.end() ? from : arrow->second));
    }
  }
}

TEST_CASE("a worker joins where one is wanted and none has joined or failed", "[actors][launch]") {
  const std::set<State> free{State::Queued, State::Expected, State::Started, State::LetIn};
  for (const State from : kStates) {
    CAPTURE(static_cast<int>(from));
    Place place;
    bring_to(from, place);
    REQUIRE(place.is_free() == free.contains(from));
    if (place.is_free()) {
      place.join({.place = 3, .host_name = "node-b"});
      CHECK(place.state() == State::Joined);
      CHECK(place.is_connected());
      CHECK(place.member()->host_name == "node-b");
    } else {
      CHECK_THROWS_AS(place.join({}), Error);
    }
  }
}

TEST_CASE("every place can be vacated, and begins anew with the next incarnation",
          "[actors][launch]") {
  for (const State from : kStates) {
    CAPTURE(static_cast<int>(from));
    Place place;
    bring_to(from, place);
    const bool has_child = place.child() != nullptr;
    const auto old = place.cause();
    const std::unique_ptr<WorkerChild> child = place.vacate();
    CHECK((child != nullptr) == has_child);
    CHECK(place.state() == State::Empty);
    CHECK(place.incarnation() == 1);
    CHECK(place.child() == nullptr);
    CHECK_FALSE(place.member());
    CHECK_FALSE(place.end());
    CHECK(place.cause() != old);
  }
}

TEST_CASE("a process that was started for an earlier incarnation is given back",
          "[actors][launch]") {
  Place place;
  bring_to(State::Queued, place);
  place.start();
  const std::int64_t started_for = place.incarnation();
  CHECK(place.vacate() == nullptr);
  CHECK(place.keep(sleeper(), started_for) != nullptr);
  CHECK(place.child() == nullptr);
}

TEST_CASE("how a worker ended is settled by what comes first (PS-2)", "[actors][launch]") {
  using Kind = PlaceEnd::Kind;
  Place place;
  bring_to(State::Joined, place);
  CHECK_FALSE(place.end());
  SECTION("it was condemned, and then its process ended") {
    (void)place.condemn("it loses tensors");
    place.process_ended("was killed");
    CHECK(place.end()->kind == Kind::Condemned);
    CHECK(place.end()->text == "it loses tensors");
  }
  SECTION("its process ended, and then its connection") {
    place.process_ended("was killed");
    place.disconnected(kThen);
    CHECK(place.end()->kind == Kind::Ended);
    CHECK(place.end()->text == "was killed");
    CHECK_FALSE(place.condemn("it loses tensors"));
  }
  SECTION("its connection ended, and its process before the moment was over") {
    place.disconnected(kThen);
    place.look(kThen + kMoment - 1ms);
    CHECK_FALSE(place.end());
    place.process_ended("was killed");
    CHECK(place.end()->kind == Kind::Ended);
  }
  SECTION("its connection ended, and its process after the moment") {
    place.disconnected(kThen);
    place.look(kThen + kMoment);
    CHECK(place.end()->kind == Kind::Silent);
    place.process_ended("was killed");
    CHECK(place.end()->kind == Kind::Silent);
  }
}

TEST_CASE("of a worker without a child process no more can be known than its silence",
          "[actors][launch]") {
  Place place;
  place.call(true);
  place.join({.place = 0});
  place.disconnected(kThen);
  CHECK(place.state() == State::Gone);
  CHECK(place.end()->kind == PlaceEnd::Kind::Silent);
}

}  // namespace
}  // namespace stagecraft
