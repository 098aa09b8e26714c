#include <algorithm>
#include <memory>
#include <set>

#include "stagecraft/base/clock.h"
#include "stagecraft/tests/simulate/seam/links.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::simulation {
namespace {

constexpr std::int64_t kMany = 400;
/// The limit of requests that get an answer, in ms; no passing case comes near it. Notes are waited
/// for three times as long, so that a missing answer is seen as a failure.
constexpr std::int64_t kPatience = 20'000;
/// The limit of requests that get none.
constexpr std::int64_t kShort = 200;
/// Added to the bounds of times, for hosts that are busy.
constexpr std::chrono::seconds kSlack{10};

using Kind = Note::Kind;

std::int64_t count(const std::vector<Note>& notes, Kind kind) {
  return std::ranges::count(notes, kind, &Note::kind);
}

/// A listener here, and the root of a process there.
class Talk {
 public:
  explicit Talk(LinkUnderTest& under_test) : link(under_test) {
    here = link.here.spawn(listener, kept);
    there = link.start(here, notes);
  }
  ~Talk() { caf::anon_send_exit(here, caf::exit_reason::kill); }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  void tell(const caf::actor& actor, caf::atom_value word, std::int64_t number = 0) const {
    caf::anon_send(actor, word, number);
  }
  void watch(const caf::actor& actor) const { caf::anon_send(here, watch_atom::value, actor); }
  void ask(const caf::actor& actor, caf::atom_value word, std::int64_t number, std::int64_t limit) {
    caf::anon_send(here, ask_atom::value, actor, word, number, limit);
  }
  /// Asks the process, and requires an answer. All that it has sent before has arrived then.
  std::int64_t answer(const caf::actor& actor, caf::atom_value word, std::int64_t number = 0) {
    const std::int64_t before = count(notes.all(), Kind::Answer);
    ask(actor, word, number, kPatience);
    REQUIRE(notes.wait(
        [&](const auto& all) { return count(all, Kind::Answer) > before || has_failed(all); }));
    const std::vector<Note> all = notes.all();
    REQUIRE(count(all, Kind::Answer) > before);
    return std::ranges::find(all.rbegin(), all.rend(), Kind::Answer, &Note::kind)->number;
  }
  [[nodiscard]] bool has_failed(const std::vector<Note>& all) const {
    return count(all, Kind::Failure) > failures;
  }
  /// Requires that a request fails, and returns why.
  caf::error failure(const caf::actor& actor, caf::atom_value word) {
    ask(actor, word, 5, kShort);
    return next_failure();
  }
  caf::error next_failure() {
    REQUIRE(notes.wait([&](const auto& all) { return has_failed(all); }));
    ++failures;
    const std::vector<Note> all = notes.all();
    return std::ranges::find(all.rbegin(), all.rend(), Kind::Failure, &Note::kind)->why;
  }
  [[nodiscard]] std::vector<Note> of(const caf::actor& actor) const {
    std::vector<Note> result = notes.all();
    std::erase_if(result, [&](const Note& note) { return note.from != actor.address(); });
    return result;
  }
  /// Requires the numbers 0, 1 and so on, after a greeting, and returns how many they are.
  static std::int64_t require_in_order(std::vector<Note> heard) {
    std::erase_if(heard, [](const Note& note) {
      return note.kind != Kind::Number || note.number == kGreeting;
    });
    for (std::size_t i = 0; i < heard.size(); ++i) {
      REQUIRE(heard[i].number == static_cast<std::int64_t>(i));
    }
    return static_cast<std::int64_t>(heard.size());
  }
  /// Requires that the process is lost, which has sent numbers and was watched so often: first the
  /// numbers, then as many ends.
  void require_loss(std::int64_t watches) {
    REQUIRE(notes.wait([&](const auto& all) { return count(all, Kind::End) >= watches; }));
    const std::vector<Note> heard = of(there);
    for (std::size_t i = 0; i < heard.size(); ++i) {
      const bool is_end = i + static_cast<std::size_t>(watches) >= heard.size();
      REQUIRE((heard[i].kind == Kind::End) == is_end);
    }
    CHECK((heard.back().why == caf::exit_reason::remote_link_unreachable));
    require_in_order(heard);
  }

  LinkUnderTest& link;
  const std::shared_ptr<Notes> kept = std::make_shared<Notes>();  ///< the listener may live longer
  Notes& notes = *kept;
  caf::actor here, there;
  std::int64_t failures = 0;
};

void keeps_the_order_of_a_process(LinkUnderTest& link) {
  Talk talk(link);
  talk.tell(talk.there, turns_atom::value, kMany);
  REQUIRE(talk.notes.wait([](const auto& all) { return count(all, Kind::Number) == kMany + 1; }));
  Talk::require_in_order(talk.notes.all());
  std::set<caf::actor_addr> senders;
  for (const Note& note : talk.notes.all()) {
    senders.insert(note.from);
  }
  CHECK(senders.size() == 5);
}

void keeps_the_order_towards_a_process(LinkUnderTest& link) {
  Talk talk(link);
  send_in_turns(link.here, talk.there, kMany, [&](const caf::actor& one) { talk.watch(one); });
  // They end when the last has sent.
  REQUIRE(talk.notes.wait([](const auto& all) { return count(all, Kind::End) == 4; }));
  CHECK(talk.answer(talk.there, heard_atom::value) == kMany);
}

void tells_the_end_of_an_actor(LinkUnderTest& link) {
  Talk talk(link);
  talk.tell(talk.there, child_atom::value);
  REQUIRE(talk.notes.wait([](const auto& all) { return count(all, Kind::Number) == 2; }));
  const auto child = caf::actor_cast<caf::actor>(talk.notes.all().back().sender);
  talk.watch(child);
  talk.watch(child);
  CHECK(talk.answer(talk.there, echo_atom::value, 3) == 3);  // the process knows that it is watched
  talk.tell(child, last_atom::value, kMany);
  REQUIRE(talk.notes.wait([](const auto& all) { return count(all, Kind::End) == 2; }));
  const std::vector<Note> heard = talk.of(child);
  CHECK(Talk::require_in_order(heard) == kMany);
  CHECK(heard[heard.size() - 3].kind == Kind::Number);
  CHECK((heard.back().why == caf::exit_reason::user_shutdown));
  CHECK(talk.answer(talk.there, echo_atom::value, 4) == 4);

  // An actor that has ended in a process that lives (NP-4).
  talk.tell(child, last_atom::value, 7);
  CHECK(talk.failure(child, echo_atom::value));
  talk.watch(child);
  CHECK(talk.notes.wait([](const auto& all) { return count(all, Kind::End) == 3; }));
  CHECK(talk.answer(talk.there, echo_atom::value, 5) == 5);
  CHECK(Talk::require_in_order(talk.of(child)) == kMany);
}

/// Loses a process that sends without end. Returns after what time this is told.
Clock::Time::duration is_lost(LinkUnderTest& link, const std::function<void()>& strike) {
  Talk talk(link);
  talk.watch(talk.there);
  talk.watch(talk.there);
  talk.tell(talk.there, flood_atom::value);
  REQUIRE(talk.notes.wait([](const auto& all) { return count(all, Kind::Number) > kMany; }));
  const auto struck = Clock::current()->now();
  strike();
  talk.require_loss(2);
  const auto told_after = Clock::current()->now() - struck;
  const std::size_t heard = talk.of(talk.there).size();
  if (link.go_on) {
    link.go_on();  // what it sends now goes nowhere
  }
  const caf::actor successor = link.start(talk.here, talk.notes);
  CHECK(talk.answer(successor, echo_atom::value, 6) == 6);
  CHECK(talk.of(talk.there).size() == heard);
  return told_after;
}

void tells_that_a_process_was_killed(LinkUnderTest& link) {
  (void)is_lost(link, link.kill);
}

void tells_that_a_process_was_cut_off(LinkUnderTest& link) {
  if (!link.cut) {
    SUCCEED("connections of this network do not break");
    return;
  }
  (void)is_lost(link, link.cut);
}

/// Loses a process that falls silent, within the time.
void falls_silent(LinkUnderTest& link, const std::function<void()>& strike) {
  const auto after = is_lost(link, strike);
  CHECK(after >= link.silence / 2);  // and by nothing else
  CHECK(after < link.silence + kSlack);
}

void tells_that_a_process_stands_still(LinkUnderTest& link) {
  if (!link.stop) {
    SUCCEED("the launcher of this network finds silence");
    return;
  }
  falls_silent(link, link.stop);
}

void tells_that_a_connection_carries_nothing(LinkUnderTest& link) {
  if (!link.hold) {
    SUCCEED("the launcher of this network finds silence");
    return;
  }
  falls_silent(link, link.hold);
}

void drops_what_is_sent_to_the_lost(LinkUnderTest& link) {
  Talk talk(link);
  talk.watch(talk.there);
  CHECK(talk.answer(talk.there, echo_atom::value, 3) == 3);
  link.kill();
  talk.require_loss(1);
  CHECK(talk.failure(talk.there, echo_atom::value));
  talk.watch(talk.there);
  talk.require_loss(2);
}

void leaves_requests_to_their_limit(LinkUnderTest& link) {
  Talk talk(link);
  talk.watch(talk.there);
  talk.ask(talk.there, keep_atom::value, 5, 2000);
  CHECK(talk.answer(talk.there, echo_atom::value, 3) == 3);
  link.kill();
  talk.require_loss(1);
  CHECK((talk.next_failure() == caf::sec::request_timeout));
}

void does_not_mix_incarnations(LinkUnderTest& link) {
  Talk talk(link);
  talk.watch(talk.there);
  CHECK(talk.answer(talk.there, echo_atom::value, 3) == 3);
  link.kill();
  talk.require_loss(1);
  const caf::actor successor = link.start(talk.here, talk.notes);
  CHECK((successor.address() != talk.there.address()));
  caf::anon_send(talk.there, std::int64_t{0});
  CHECK(talk.answer(successor, heard_atom::value) == 0);
  talk.watch(talk.there);
  talk.require_loss(2);
  caf::anon_send(successor, std::int64_t{0});
  CHECK(talk.answer(successor, heard_atom::value) == 1);
}

void ends_requests_at_their_limit(LinkUnderTest& link) {
  Talk talk(link);
  CHECK((talk.failure(talk.there, keep_atom::value) == caf::sec::request_timeout));
  talk.tell(talk.there, late_atom::value);
  CHECK(talk.answer(talk.there, echo_atom::value, 6) == 6);
  CHECK(count(talk.notes.all(), Kind::Answer) == 1);
}

}  // namespace

const std::vector<LinkCase>& link_cases() {
  static const std::vector<LinkCase> cases{
      {"what actors of a process send arrives in order (NP-1)", keeps_the_order_of_a_process},
      {"what is sent to a process arrives in order (NP-1)", keeps_the_order_towards_a_process},
      {"an actor's end is told after all that it sent (NP-2, NP-4)", tells_the_end_of_an_actor},
      {"a process that is killed is told lost (NP-3)", tells_that_a_process_was_killed},
      {"a process that is cut off is told lost (NP-3)", tells_that_a_process_was_cut_off},
      {"a process that stands still is told lost (NP-3)", tells_that_a_process_stands_still},
      {"a process behind a connection that carries nothing is told lost (NP-3)",
       tells_that_a_connection_carries_nothing},
      {"what is sent to a lost process is dropped (NP-4)", drops_what_is_sent_to_the_lost},
      {"a request that waits for a lost process fails at its limit (NP-5)",
       leaves_requests_to_their_limit},
      {"a successor and its predecessor do not mix (NP-6)", does_not_mix_incarnations},
      {"a request fails at its limit, and a late answer is dropped (NP-7)",
       ends_requests_at_their_limit},
  };
  return cases;
}

}  // namespace stagecraft::simulation
