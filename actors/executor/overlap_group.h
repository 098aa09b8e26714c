/// OverlapGroup: the tasks of one overlap group while a rank runs them.
///
/// They are issued one after the other, whoever's tensors are here first, so that the transfers of
/// one hide behind the compute of the others. Each task is a block of instructions: its receives,
/// the run, its sends. Made and used by the executor on its plan thread.
/// OG-1: forwards of one stage keep their order (batch statistics), and backwards theirs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class OverlapGroup {
 public:
  /// A task's positions in the list, [begin, end).
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// The group that starts at `begin`. Views the list.
  OverlapGroup(const std::vector<Instruction>& list, std::size_t begin);

  [[nodiscard]] bool done() const { return left_.empty(); }
  /// Where the group ends in the list.
  [[nodiscard]] std::size_t end() const { return end_; }

  /// Takes the next task to run: the first that may go and whose tensors have arrived, else the
  /// first of all.
  [[nodiscard]] Block take(const std::function<bool(const Block&)>& has_arrived);

 private:
  [[nodiscard]] bool may_go(std::size_t block) const;

  const std::vector<Instruction>* list_;
  std::vector<Block> left_;
  std::size_t end_;
};

}  // namespace stagecraft
