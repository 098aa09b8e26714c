/// IssueOrder computes, from streams and waits alone, which instructions of a list are over when
/// another begins.
///
/// Lowering uses it to find the waits that are needed, verify() to check that they are there.
/// Instructions are added in the order of the list. It is a value that one thread uses.
///
/// IO-1: the answer "is over" holds for any drift of the streams, and for any order in which the
///       blocks of an overlap group are issued (P-2). It keeps one count per stream and
///       instruction: "the first n of this stream". Inside a group the count stays at the beginning
///       of the group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class IssueOrder {
 public:
  /// Makes an order for a list of this many streams and instructions, whose ids are the numbers
  /// below the second (P-1).
  IssueOrder(std::size_t streams, std::size_t instructions);

  /// Adds the next instruction. A wait for an instruction that was not added orders nothing.
  void add(const Instruction& instruction);

  /// Returns whether `earlier` is over when `next`, the instruction to be added now, begins.
  /// Requires: `earlier` was added.
  [[nodiscard]] bool is_over(InstructionId earlier, const Instruction& next) const;

 private:
  using Count = std::uint32_t;
  /// Holds, by stream, how many of its first instructions are over.
  using Counts = std::vector<Count>;

  struct Place {
    std::uint32_t stream = 0;
    Count position = 0;  ///< in its stream
    int group = -1;      ///< the number of its overlap group in the list; -1 for none
    int block = -1;      ///< the number of its task in the group
    bool added = false;
  };

  /// OpenGroup is the overlap group at the end of the added instructions, as long as it may
  /// continue.
  struct OpenGroup {
    int overlap = -1;
    Task task;
    int block = -1;
  };

  /// Sets over_next_ to what is over when `next` begins. Returns its place.
  Place place_of(const Instruction& next) const;
  [[nodiscard]] bool goes_on(const Instruction& next) const {
    return open_.overlap >= 0 && open_.overlap == next.overlap;
  }
  void leave_group();

  [[nodiscard]] const Count* over(std::size_t id) const { return &over_[id * streams_]; }
  void join(Count* into, const Count* other) const;

  const std::size_t streams_;
  std::vector<Place> places_;        // by id
  std::vector<Count> over_;          // by id, then stream: at the time when it begins
  std::vector<Counts> group_begin_;  // by number of group: positions at which it begins
  Counts issued_;                    // instructions per stream
  // By stream, then stream: what is over after all of a stream except its open group, after the
  // open group, and after its last block.
  std::vector<Count> behind_, in_group_, in_block_;
  OpenGroup open_;
  mutable Counts over_next_;
};

}  // namespace stagecraft
