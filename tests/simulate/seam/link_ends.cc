#include "stagecraft/tests/simulate/seam/link_ends.h"

#include <memory>
#include <utility>

#include "stagecraft/base/clock.h"

namespace stagecraft::simulation {
namespace {

/// Actors that take turns, and whom they send to.
struct Turns {
  caf::actor to;
  std::int64_t count = 0;
  std::vector<caf::actor> speakers;
};

caf::behavior speaker(caf::event_based_actor* self, const std::shared_ptr<Turns>& turns) {
  return {[self, turns](turn_atom, std::int64_t turn) {
    if (turn == turns->count) {
      for (const caf::actor& one : std::exchange(turns->speakers, {})) {
        caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
      }
      return;
    }
    self->send(turns->to, turn);
    const auto next = static_cast<std::size_t>(turn + 1) % turns->speakers.size();
    self->send(turns->speakers[next], turn_atom::value, turn + 1);
  }};
}

caf::behavior child(caf::event_based_actor* self, const caf::actor& listener) {
  self->send(listener, kGreeting);
  return {[self, listener](last_atom, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      self->send(listener, i);
    }
    self->quit(caf::exit_reason::user_shutdown);
  }};
}

}  // namespace

void Notes::add(Note note) {
  const std::scoped_lock lock(mutex_);
  all_.push_back(std::move(note));
  changed_.notify_all();
}

std::vector<Note> Notes::all() const {
  const std::scoped_lock lock(mutex_);
  return all_;
}

bool Notes::wait(const std::function<bool(const std::vector<Note>&)>& condition) const {
  const auto clock = Clock::current();
  std::unique_lock lock(mutex_);
  return clock->wait_until(
      changed_, lock, clock->now() + std::chrono::minutes(1), [&] { return condition(all_); });
}

caf::behavior listener(caf::event_based_actor* self, const std::shared_ptr<Notes>& notes) {
  self->set_down_handler([notes](const caf::down_msg& down) {
    notes->add({.kind = Note::Kind::End, .from = down.source, .why = down.reason});
  });
  return {
      [self, notes](std::int64_t number) {
        const caf::strong_actor_ptr& sender = self->current_sender();
        notes->add(
            {.from = caf::actor_cast<caf::actor_addr>(sender), .number = number, .sender = sender});
      },
      [self](watch_atom, const caf::actor& actor) { self->monitor(actor); },
      [self, notes](ask_atom,
                    const caf::actor& actor,
                    caf::atom_value word,
                    std::int64_t number,
                    std::int64_t limit) {
        self->request(actor, caf::timespan(std::chrono::milliseconds(limit)), word, number)
            .then(
                [notes](std::int64_t answer) {
                  notes->add({.kind = Note::Kind::Answer, .number = answer});
                },
                [notes](const caf::error& why) {
                  notes->add({.kind = Note::Kind::Failure, .why = why});
                });
      }};
}

void send_in_turns(caf::actor_system& system,
                   const caf::actor& to,
                   std::int64_t count,
                   const std::function<void(const caf::actor&)>& made) {
  const auto turns = std::make_shared<Turns>(Turns{.to = to, .count = count, .speakers = {}});
  for (int i = 0; i < 4; ++i) {
    turns->speakers.push_back(system.spawn(speaker, turns));
    made(turns->speakers.back());
  }
  caf::anon_send(turns->speakers.front(), turn_atom::value, std::int64_t{0});
}

caf::behavior root(caf::event_based_actor* self,
                   const caf::actor& listener,
                   const std::function<void(const caf::actor&)>& made) {
  struct State {
    std::int64_t flooded = 0, heard = 0, kept = 0;
    caf::response_promise promise;
  };
  const auto state = std::make_shared<State>();
  self->send(listener, kGreeting);
  return {[self, listener, made](turns_atom, std::int64_t count) {
            send_in_turns(self->system(), listener, count, made);
          },
          [self, listener, made](child_atom, std::int64_t) {
            made(self->system().spawn(child, listener));
          },
          [self, listener, state](flood_atom, std::int64_t) {
            for (int i = 0; i < 10; ++i) {
              self->send(listener, state->flooded++);
            }
            self->delayed_send(
                self, std::chrono::milliseconds(1), flood_atom::value, std::int64_t{0});
          },
          [](echo_atom, std::int64_t number) { return number; },
          [self, state](keep_atom, std::int64_t number) -> caf::result<std::int64_t> {
            state->kept = number;
            state->promise = self->make_response_promise();
            return caf::delegated<std::int64_t>();
          },
          [state](late_atom, std::int64_t) { state->promise.deliver(state->kept); },
          [state](heard_atom, std::int64_t) { return state->heard; },
          [state](std::int64_t number) { state->heard += number == state->heard ? 1 : 0; }};
}

}  // namespace stagecraft::simulation
