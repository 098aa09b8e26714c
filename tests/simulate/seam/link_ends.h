/// The actors of both ends of a link under test, and the notes of what arrives. Their messages
/// consist of words and numbers, which CAF sends without registration.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <caf/all.hpp>

namespace stagecraft::simulation {

/// Note is one thing that a listener has heard.
struct Note {
  enum class Kind { Number, End, Answer, Failure };
  Kind kind = Kind::Number;
  caf::actor_addr from;                    ///< of a number: its sender; of an end: who has ended
  std::int64_t number = 0;                 ///< of a number or an answer
  caf::error why{};                        ///< of an end or a failure
  caf::strong_actor_ptr sender = nullptr;  ///< of a number
};

/// Notes are those of one listener, in order. Its mutex guards them, because the case reads them.
class Notes {
 public:
  void add(Note note);
  [[nodiscard]] std::vector<Note> all() const;
  /// Waits by the thread's clock until the condition is true, at most a minute.
  [[nodiscard]] bool wait(const std::function<bool(const std::vector<Note>&)>& condition) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Note> all_;
};

// ---- here ---------------------------------------------------------------------------------------

using watch_atom = caf::atom_constant<caf::atom("watch")>;
using ask_atom = caf::atom_constant<caf::atom("ask")>;

/// The listener notes numbers, ends of actors that it is told to watch, and answers.
///   (watch, actor)                        monitors the actor
///   (ask, actor, word, number, limit_ms)  sends it a request
[[nodiscard]] caf::behavior listener(caf::event_based_actor* self,
                                     const std::shared_ptr<Notes>& notes);

// ---- both ---------------------------------------------------------------------------------------

using turn_atom = caf::atom_constant<caf::atom("turn")>;

/// Sends the numbers below `count` to `to`, each from another actor of four, which take turns: each
/// is told when the one before has sent. `made` is called with each actor.
void send_in_turns(caf::actor_system& system,
                   const caf::actor& to,
                   std::int64_t count,
                   const std::function<void(const caf::actor&)>& made);

// ---- there --------------------------------------------------------------------------------------

/// A process greets its listener with this number.
inline constexpr std::int64_t kGreeting = -1;

using turns_atom = caf::atom_constant<caf::atom("turns")>;
using child_atom = caf::atom_constant<caf::atom("child")>;
using last_atom = caf::atom_constant<caf::atom("last")>;
using flood_atom = caf::atom_constant<caf::atom("flood")>;
using echo_atom = caf::atom_constant<caf::atom("echo")>;
using keep_atom = caf::atom_constant<caf::atom("keep")>;
using late_atom = caf::atom_constant<caf::atom("late")>;
using heard_atom = caf::atom_constant<caf::atom("heard")>;

/// The root of a process greets `listener`, and does what words of it say:
///   (turns, n)  sends n numbers in turns (send_in_turns)
///   (child, 0)  makes an actor, which greets too, and at (last, n) sends n numbers and ends
///   (flood, 0)  sends 0, 1, 2 and so on without end, ten in a millisecond
///   (echo, n)   answers n
///   (keep, n)   answers n when (late, 0) comes, or never
///   (heard, 0)  answers how many numbers have come as they should: 0, then 1 and so on
[[nodiscard]] caf::behavior root(caf::event_based_actor* self,
                                 const caf::actor& listener,
                                 const std::function<void(const caf::actor&)>& made);

}  // namespace stagecraft::simulation
