/// IssueOrder: which instructions of a rank are over when another begins, by its streams and waits
/// alone.
///
/// Lowering asks it which waits are needed, verify() whether they are there. Instructions are added
/// in the order of the rank's list. A value, used by one thread.
///
/// IO-1: what is said to be over is so however far the streams drift apart, and in whichever order
///       the blocks of an overlap group are issued (P-2). One count per stream and instruction says
///       it: "the first n of this stream"; inside a group the count stays where the group begins.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class IssueOrder {
 public:
  /// A wait for an instruction that was not added orders nothing.
  void add(const Instruction& instruction);

  /// Whether `earlier` is over when `next`, which is to be added now, begins.
  /// Requires: `earlier` was added.
  [[nodiscard]] bool is_over(InstructionId earlier, const Instruction& next) const;

 private:
  /// By stream: how many of its first instructions are over.
  using Counts = std::array<std::size_t, kStreams>;

  struct Place {
    Stream stream = Stream::Compute;
    std::size_t position = 0;  ///< in its stream
    Counts over{};             ///< when it begins
    int group = -1;            ///< which overlap group of the list, counted; -1: none
    int block = -1;            ///< which of the group's tasks, counted
    Counts group_begin{};      ///< positions at which its group begins in each stream
  };

  /// The overlap group at the end of what was added, while it may go on.
  struct OpenGroup {
    int overlap = -1;
    Task task;
    Counts begin{};
    int block = -1;
  };

  [[nodiscard]] Place place_of(const Instruction& next) const;
  [[nodiscard]] static bool goes_on(const OpenGroup& group, const Instruction& next);
  void leave_group();

  static void join(Counts& into, const Counts& other);

  std::unordered_map<InstructionId, Place> places_;
  Counts issued_{};  // instructions per stream
  std::array<Counts, kStreams>
      behind_{};  // what is over behind all of a stream, its open group apart
  std::array<Counts, kStreams> in_group_{};  // likewise, of the open group
  std::array<Counts, kStreams> in_block_{};  // likewise, of the open group's last block
  OpenGroup open_;
  int groups_ = 0;
};

}  // namespace stagecraft
