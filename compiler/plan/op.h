/// Op is the kind of a plan's instruction. It is separate from Instruction because programs without
/// LibTorch read traces of a run.
#pragma once

#include <cstdint>

namespace stagecraft {

enum class Op : std::uint8_t {
  Run,         ///< a stage's forward or backward of one microbatch, or some chunks of it
  Send,        ///< hands a slot's tensor to a peer
  Recv,        ///< fills a slot from a peer
  Start,       ///< begins a collective of a group, with gradients or weights of a stage
  Finish,      ///< waits for a collective's result, and takes it
  Free,        ///< empties a slot
  Accumulate,  ///< adds a microbatch's parameter gradients into a bucket
  Vote,        ///< checks that gradients are finite, adds up norms; the commit point of the step
  Update,      ///< runs the optimizer on a bucket
  Regroup,     ///< makes one tensor of rows of others, for a stage of another microbatch size
  Release,     ///< gives back the weights that a group has gathered for tasks
};

}  // namespace stagecraft
