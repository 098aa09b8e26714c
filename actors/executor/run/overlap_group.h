/// OverlapGroup holds the tasks of one overlap group while a rank runs them.
///
/// The rank issues one task after the other and prefers a task whose tensors have arrived, so that
/// the transfers of one overlap the computation of the others. Each task is a block of
/// instructions: its receives, the run, its sends. The executor makes it and uses it on its plan
/// thread.
/// OG-1: forwards of one stage keep their order (batch statistics), and so do its backwards.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class OverlapGroup {
 public:
  /// Block holds a task's positions in the list, [begin, end).
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// Makes the group that starts at `begin`. Views the list.
  OverlapGroup(const std::vector<Instruction>& list, std::size_t begin);

  [[nodiscard]] bool done() const { return left_.empty(); }
  /// Returns the end of the group in the list.
  [[nodiscard]] std::size_t end() const { return end_; }

  /// Takes the next task to run: the first possible one whose tensors have arrived; if there is
  /// none, the first.
  [[nodiscard]] Block take(const std::function<bool(const Block&)>& has_arrived);

 private:
  [[nodiscard]] bool may_go(std::size_t block) const;

  const std::vector<Instruction>* list_;
  std::vector<Block> left_;
  std::size_t end_;
};

}  // namespace stagecraft
