/// IssueOrder says which instructions of a rank are over when another begins, by its streams and
/// waits alone.
///
/// Lowering uses it to find the waits that are needed, verify() to check that they are there.
/// Instructions are added in the order of the rank's list. It is a value that one thread uses.
///
/// IO-1: its answer "is over" holds however far the streams drift apart, and in whichever order the
///       blocks of an overlap group are issued (P-2). It keeps one count per stream and
///       instruction: "the first n of this stream". Inside a group the count stays where the group
///       begins.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class IssueOrder {
 public:
  /// Adds the next instruction. A wait for an instruction that was not added orders nothing.
  void add(const Instruction& instruction);

  /// Returns whether `earlier` is over when `next`, the instruction to be added now, begins.
  /// Requires: `earlier` was added.
  [[nodiscard]] bool is_over(InstructionId earlier, const Instruction& next) const;

 private:
  /// Counts holds, by stream, how many of its first instructions are over.
  using Counts = std::array<std::size_t, kStreams>;

  struct Place {
    Stream stream = Stream::Compute;
    std::size_t position = 0;  ///< in its stream
    Counts over{};             ///< at the time when it begins
    int group = -1;            ///< the number of its overlap group in the list; -1 for none
    int block = -1;            ///< the number of its task in the group
    Counts group_begin{};      ///< positions at which its group begins in each stream
  };

  /// OpenGroup is the overlap group at the end of the added instructions, as long as it may
  /// continue.
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
      behind_{};  // what is over after all of a stream except its open group
  std::array<Counts, kStreams> in_group_{};  // what is over after the open group
  std::array<Counts, kStreams> in_block_{};  // what is over after its last block
  OpenGroup open_;
  int groups_ = 0;
};

}  // namespace stagecraft
